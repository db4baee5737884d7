package loop

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"tailcast/frame"
	"tailcast/hub"
	"tailcast/internal/ssetest"
)

// rig is a loop that a test drives by hand, where gnet would: what happens,
// and in which order, is the test's choice, and so is the time. The
// connections are socket pairs.
type rig struct {
	*site
	l    *Loop
	wake net.Conn // the loop's end of its wake socket
	buf  [1]byte

	sndbuf int // of the connections that are dialled, if not 0
}

func newRig(t testing.TB, change func(*setup)) *rig {
	t.Helper()
	as := defaults()
	as.Log = slog.New(slog.DiscardHandler)
	as.waits.turn = time.Hour // a turn is the test's choice
	if change != nil {
		change(&as)
	}
	srv := &Server{cfg: as.Config, waits: as.waits, journal: newJournal(as.Log, as.AccessLog)}
	srv.accepter.init(srv)
	w, far, err := newWaker()
	if err != nil {
		t.Fatal(err)
	}
	l := makeLoop(srv, w)
	srv.loops = []*Loop{l}
	r := &rig{site: &site{t: t, srv: srv}, l: l, wake: far}
	l.el = rigLoop{r: r}
	r.hub = hub.New(as.hub, srv.Mailboxes())
	srv.site = r.serve(r.hub, &as)
	t.Cleanup(func() {
		for len(l.all) > 0 {
			l.close(l.all[0], closePeer)
		}
		l.timer.Stop()
		w.close()
		far.Close()
	})
	return r
}

// turn runs one turn of the loop, which has read the wake if there was one.
func (r *rig) turn() {
	if r.l.waker.awake.Load() {
		if _, err := r.wake.Read(r.buf[:]); err != nil {
			r.t.Fatal(err)
		}
	}
	r.l.turn()
}

// settle runs turns until the loop has nothing more to do at once.
func (r *rig) settle() {
	r.t.Helper()
	for range 10_000 {
		r.turn()
		if !r.l.waker.awake.Load() {
			return
		}
	}
	r.t.Fatal("the loop does not come to rest")
}

// later lets time pass, and gives the loop the turn that its timer would.
func (r *rig) later(d time.Duration) {
	r.t.Helper()
	r.l.began = r.l.began.Add(-d)
	r.settle()
}

// rigLoop is the part of a gnet event loop that Loop uses.
type rigLoop struct {
	gnet.EventLoop
	r *rig
}

func (e rigLoop) Close(gc gnet.Conn) error {
	near := gc.(*end)
	if near.reading {
		e.r.t.Error("a connection is closed while its OnTraffic runs")
	}
	if near.open {
		near.open = false
		e.r.l.OnClose(near, nil)
		if !near.shared {
			return unix.Close(near.fd)
		}
	}
	return nil
}

// end is the loop's end of a connection: the part of a gnet connection that
// Loop uses.
type end struct {
	gnet.Conn
	loop gnet.EventLoop
	ctx  any
	fd   int
	open bool
	in   []byte

	shared  bool // fd is somebody else's
	reading bool // a read that takes no turn begins: nothing may close it inside
}

func (e *end) Context() any              { return e.ctx }
func (e *end) Fd() int                   { return e.fd }
func (e *end) EventLoop() gnet.EventLoop { return e.loop }
func (e *end) RemoteAddr() net.Addr      { return nil }
func (e *end) Next(int) ([]byte, error)  { b := e.in; e.in = nil; return b, nil }

// peer is the test's end of a connection to a rig.
type peer struct {
	r    *rig
	c    *conn
	near *end
	fd   int
	buf  []byte

	stream ssetest.Stream
	ended  bool // the loop's side is shut or closed
}

// dial opens a connection.
func (r *rig) dial() *peer { return r.dialThrough(nil) }

// dialTLS opens a connection whose handshake is done and whose client has sent
// text. What the loop sends is not opened.
func (r *rig) dialTLS(text string) *peer {
	r.t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	as := defaults()
	withTLS(&as)
	s := newSession(far, as.TLS)
	done := make(chan error, 1)
	go func() { done <- s.tls.Handshake() }()
	memory := &wire{Conn: near}
	c := tls.Client(memory, clientTLS())
	if err := errors.Join(c.Handshake(), <-done); err != nil {
		r.t.Fatal(err)
	}
	var sealed []byte
	memory.Conn, memory.out = nil, &sealed
	if _, err := c.Write([]byte(text)); err != nil {
		r.t.Fatal(err)
	}
	p := r.dialThrough(&edge{tls: s})
	p.send(string(sealed))
	return p
}

// dialTCP opens a connection by TCP, whose client may be gone for a while before
// a write fails.
func (r *rig) dialTCP() *peer {
	r.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	near, err := ln.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	var fds [2]int
	for i, c := range []net.Conn{near, far} {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			r.t.Fatal(err)
		}
		if cerr := raw.Control(func(fd uintptr) { fds[i], err = unix.Dup(int(fd)) }); cerr != nil || err != nil {
			r.t.Fatal(cerr, err)
		}
		c.Close()
	}
	return r.join(fds, nil)
}

// dialThrough opens a connection with an edge.
func (r *rig) dialThrough(e *edge) *peer {
	r.t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.join(fds, e)
}

// join gives the loop the first of two sockets.
func (r *rig) join(fds [2]int, e *edge) *peer {
	r.t.Helper()
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.sndbuf != 0 {
		if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, r.sndbuf); err != nil {
			r.t.Fatal(err)
		}
	}
	c := &conn{edge: e}
	p := &peer{r: r, c: c, fd: fds[1], near: &end{loop: r.l.el, ctx: c, fd: fds[0], open: true}}
	r.srv.accepter.conns.Add(1)
	r.l.OnOpen(p.near)
	r.t.Cleanup(p.hangUp)
	return p
}

// mute opens a connection that takes everything for next to nothing, so that
// what is left is what the loop spends itself: to the null device, which is
// file's.
func (r *rig) mute(file *os.File) *peer {
	c := &conn{}
	p := &peer{r: r, c: c, fd: -1, near: &end{loop: r.l.el, ctx: c, fd: int(file.Fd()), open: true, shared: true}}
	r.srv.accepter.conns.Add(1)
	r.l.OnOpen(p.near)
	return p
}

// send gives the loop b as one read.
func (p *peer) send(b string) {
	p.near.in = []byte(b)
	if !p.near.open {
		return
	}
	action := p.r.l.OnTraffic(p.near)
	if p.near.reading = false; action == gnet.Close {
		_ = p.r.l.el.Close(p.near)
	}
}

// get asks for a stream.
func (p *peer) get(path string, fields ...string) *peer {
	p.send(req("GET "+path+" HTTP/1.1", fields...))
	return p
}

// read returns what has arrived, and whether the loop's side is shut or closed.
func (p *peer) read() (got string, ended bool) {
	p.r.t.Helper()
	var all []byte
	if p.buf == nil {
		p.buf = make([]byte, 64<<10)
	}
	for {
		n, err := unix.Read(p.fd, p.buf)
		switch {
		case err == unix.EAGAIN:
			return string(all), false
		case err == unix.ECONNRESET || err == nil && n == 0:
			return string(all), true
		case err != nil:
			p.r.t.Fatal(err)
		}
		all = append(all, p.buf[:n]...)
	}
}

// events returns the events that have arrived, as a page would see them.
func (p *peer) events() []ssetest.Event {
	p.r.t.Helper()
	raw, ended := p.read()
	events, err := p.stream.Feed([]byte(raw))
	if err != nil {
		p.r.t.Fatalf("%v in %.200q", err, raw)
	}
	p.ended = ended
	return events
}

// data joins the data of the events that have arrived.
func (p *peer) data() string {
	p.r.t.Helper()
	var all []string
	for _, e := range p.events() {
		all = append(all, e.Data)
	}
	return strings.Join(all, " ")
}

// discard reads what has arrived and forgets it. It allocates nothing.
func (p *peer) discard(buf []byte) {
	for {
		if n, err := unix.Read(p.fd, buf); n <= 0 || err != nil {
			return
		}
	}
}

// hangUp closes the peer's end, and lets the loop see it.
func (p *peer) hangUp() {
	if p.fd < 0 {
		return
	}
	_ = unix.Close(p.fd)
	p.fd = -1
	_ = p.r.l.el.Close(p.near)
}

// anew makes the connection another one, on the same socket.
func (p *peer) anew() {
	p.r.l.OnClose(p.near, nil)
	*p.c = conn{}
	p.r.srv.accepter.conns.Add(1)
	p.r.l.OnOpen(p.near)
}

// crowd opens n streams of the first feed.
func (r *rig) crowd(n int, version string) []*peer {
	r.t.Helper()
	var peers []*peer
	for range n {
		p := r.dial()
		p.send(req("GET /events " + version))
		peers = append(peers, p)
	}
	return peers
}

// appender returns what appends n records of size bytes and makes them
// readable. It allocates nothing.
func (s *tail) appender(size int) func(n int) {
	recs := []frame.Record{{Topic: s.topic, Time: time.Now().UnixMilli(), Value: bytes.Repeat([]byte("x"), size)}}
	return func(n int) {
		for range n {
			recs[0].Offset = s.next[0]
			s.next[0]++
			s.sink.Append(0, recs)
		}
		s.sink.Flush(nil)
	}
}

// sip is read of one buffer at most.
func (p *peer) sip() (got string, ended bool) {
	p.r.t.Helper()
	n, err := unix.Read(p.fd, p.buf)
	switch {
	case err == unix.EAGAIN:
		return "", false
	case err == unix.ECONNRESET || err == nil && n == 0:
		return "", true
	case err != nil:
		p.r.t.Fatal(err)
	}
	return string(p.buf[:n]), false
}
