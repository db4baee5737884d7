package loop

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"tailcast/http1"
	"tailcast/internal/share"
)

// handshakesMax bounds the TLS handshakes under way: as many goroutines, of
// some 20 KB each, three times that with the longest ClientHello. When all are
// taken the oldest gives way: an honest client is through in a few round trips,
// so those that wait longest are those that only take places.
const handshakesMax = 1024

// handshakes brings accepted connections through the TLS handshake, each on a
// goroutine of its own, and hands them on or ends them. Half of the CPUs at most
// compute for them, so that loops find one.
type handshakes struct {
	accepter *accepter     // gets each when it is done
	cpus     chan struct{} // a place for each that may compute
	begins   chan struct{} // the place of the one that is next to begin
	begun    atomic.Uint64 // those that have computed
	wg       sync.WaitGroup

	mu      sync.Mutex
	running list.List // of *handshake, the oldest first
}

// handshake is one of them. It is the net.Conn that its session talks to, and
// gives its CPU away while it waits for the client.
type handshake struct {
	*net.TCPConn
	all     *handshakes
	place   *list.Element
	early   early // read already
	evicted atomic.Bool
	gone    chan struct{} // closed with evicted
}

// What becomes of handshakes, beside those that succeed.
var (
	errHandshakeBusy = errors.New("another handshake needed its place")
	errNoProxy       = errors.New("PROXY protocol")
	errHandshakeLate = errors.New("the handshake did not end in time")
)

func newHandshakes(a *accepter) *handshakes {
	h := &handshakes{accepter: a, cpus: make(chan struct{}, share.Aside()), begins: make(chan struct{}, 1)}
	h.wg.Go(func() { h.settle(a.done, collect) })
	return h
}

// begin begins the handshake of a connection. One accepter calls it.
func (h *handshakes) begin(a *arrival) {
	hs := &handshake{TCPConn: a.tcp, all: h, gone: make(chan struct{})}
	_ = hs.SetDeadline(time.Now().Add(h.accepter.srv.cfg.HeaderTimeout)) // it fails on a closed connection only
	h.mu.Lock()
	if h.running.Len() == handshakesMax {
		h.evict(h.running.Front())
	}
	hs.place = h.running.PushBack(hs)
	h.mu.Unlock()
	h.wg.Go(func() { h.run(a, hs) })
}

// stop ends all handshakes under way.
func (h *handshakes) stop() {
	h.mu.Lock()
	for h.running.Len() > 0 {
		h.evict(h.running.Front())
	}
	h.mu.Unlock()
	h.wg.Wait()
}

// evict takes a handshake's place, which ends it. h.mu is held.
func (h *handshakes) evict(place *list.Element) {
	hs := h.running.Remove(place).(*handshake)
	hs.evicted.Store(true)
	close(hs.gone)
	_ = hs.SetDeadline(time.Unix(1, 0)) // ends its read or write; the connection is its own to close
}

func (h *handshakes) run(a *arrival, hs *handshake) {
	s, err := h.shake(a, hs)
	if err != nil { // clients that came together are given up together: one behind the other
		hs.goOn()
		defer hs.rest()
	}
	h.mu.Lock()
	if !hs.evicted.Load() {
		h.running.Remove(hs.place)
	}
	h.mu.Unlock()
	switch {
	case hs.evicted.Load():
		err = errHandshakeBusy
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errHandshakeLate
	case err == nil:
		err = hs.SetDeadline(time.Time{})
		if a.edge == nil {
			a.edge = &edge{}
		}
		a.edge.tls = s
	case errors.Is(err, errNoHello):
		hs.answerPlain()
	}
	h.accepter.shaken(a, err)
}

// shake does what is to be done on the socket.
func (h *handshakes) shake(a *arrival, hs *handshake) (*session, error) {
	if a.edge != nil && a.edge.proxy {
		if err := hs.readProxy(h.accepter, a.edge); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoProxy, err)
		}
	}
	if err := hs.readHello(); err != nil {
		return nil, err
	}
	s := newSession(hs, h.accepter.srv.cfg.TLS)
	if !hs.compute() {
		return nil, errHandshakeBusy
	}
	defer hs.rest()
	return s, s.tls.Handshake()
}

// compute waits for a CPU to begin with; false when the handshake was evicted.
func (hs *handshake) compute() bool {
	select {
	case hs.all.begins <- struct{}{}:
	case <-hs.gone:
		return false
	}
	hs.goOn()
	<-hs.all.begins
	hs.all.begun.Add(1)
	return true
}

// goOn waits for a CPU to go on with. That comes before those that begin but for
// one of them: what its client has answered holds ten times their memory, and is
// soon over.
func (hs *handshake) goOn() { hs.all.cpus <- struct{}{} }

func (hs *handshake) rest() {
	share.GiveWay()
	<-hs.all.cpus
}

// Read waits for the client without a CPU.
func (hs *handshake) Read(b []byte) (int, error) {
	if n := hs.early.read(b); n > 0 {
		return n, nil
	}
	hs.rest()
	n, err := hs.TCPConn.Read(b)
	hs.goOn()
	return n, err
}

// answerPlain tells a client that speaks HTTP where TLS is spoken.
func (hs *handshake) answerPlain() {
	switch string(hs.early[:recordHead]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH", "CONNE", "TRACE":
		_, _ = hs.Write(http1.AppendAnswer(nil, &http1.Answer{ // it is told if it can be
			Status: 400, Close: true, Body: "this port speaks TLS: ask for https",
		}))
	}
}
