package loop

import (
	"container/list"
	"crypto/tls"
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
// some 20 KB each. When all are taken the oldest gives way: an honest client
// is through in a few round trips, so those that wait longest are those that
// only take places.
const handshakesMax = 1024

// handshakes brings accepted connections through the TLS handshake, each on a
// goroutine of its own, and hands them on. Half of the CPUs at most compute
// for them, so that loops find one.
type handshakes struct {
	accepter *accepter     // gets each when it is done
	cpus     chan struct{} // a place for each that may compute
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
	early   []byte // read already
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
	return &handshakes{accepter: a, cpus: make(chan struct{}, share.Aside())}
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
	default:
		answerPlain(err)
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
	s := newSession(hs, h.accepter.srv.cfg.TLS)
	if !hs.compute() {
		return nil, errHandshakeBusy
	}
	defer hs.rest()
	return s, s.tls.Handshake()
}

// compute waits for a CPU; false when the handshake was evicted.
func (hs *handshake) compute() bool {
	select {
	case hs.all.cpus <- struct{}{}:
		return true
	case <-hs.gone:
		return false
	}
}

func (hs *handshake) rest() { <-hs.all.cpus }

// Read waits for the client without a CPU.
func (hs *handshake) Read(b []byte) (int, error) {
	if len(hs.early) > 0 {
		n := copy(b, hs.early)
		hs.early = hs.early[n:]
		return n, nil
	}
	hs.rest()
	n, err := hs.TCPConn.Read(b)
	hs.all.cpus <- struct{}{}
	return n, err
}

// answerPlain tells a client that speaks HTTP where TLS is spoken.
func answerPlain(err error) {
	var bad tls.RecordHeaderError
	if !errors.As(err, &bad) || bad.Conn == nil {
		return
	}
	switch string(bad.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH", "CONNE", "TRACE":
		_, _ = bad.Conn.Write(http1.AppendAnswer(nil, &http1.Answer{ // it is told if it can be
			Status: 400, Close: true, Body: "this port speaks TLS: ask for https",
		}))
	}
}
