package loop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// neverReads is a client with a small window that reads nothing.
func (s *site) neverReads() *client {
	s.t.Helper()
	c := s.narrow()
	s.asks(c)
	return c
}

// narrow connects with a small window, which is to be chosen before.
func (s *site) narrow() *client {
	s.t.Helper()
	c, err := s.connect(net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		cerr := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return errors.Join(cerr, err)
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// asks asks for a stream, and waits until it is open without reading.
func (s *site) asks(c *client) {
	s.t.Helper()
	before := s.stats().Streams
	c.send(req("GET /events HTTP/1.1"))
	eventually(s.t, "the stream is open", func() bool { return s.stats().Streams > before })
}

// wasReset reads what the client's kernel had when the connection was reset.
func (c *client) wasReset() {
	c.t.Helper()
	n, err := io.Copy(io.Discard, c.tcp)
	if !errors.Is(err, syscall.ECONNRESET) {
		c.t.Errorf("after %d bytes: %v, want a reset", n, err)
	}
}

// TestSlowStreamIsDropped: one client does not read. The others get
// everything, and it is reset when the head of five seconds ago is too far away.
func TestSlowStreamIsDropped(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		t.Parallel()
		s := start(t, func(as *setup) { with(as); as.byHand, as.MaxLag, as.Stall = true, 256<<10, time.Hour })
		s.open(1)
		slow := s.neverReads()
		var pages []*page
		for range 5 {
			pages = append(pages, s.page("HTTP/1.1", "/events"))
		}
		value := strings.Repeat("x", 10_000)
		for i := range 60 {
			s.produce(0, fmt.Sprint(i, " ", value))
			for _, p := range pages { // none of which is ever behind by more than that
				if e := p.next(); !strings.HasPrefix(e.Data, fmt.Sprint(i, " ")) {
					t.Fatalf("got %.20q, want %d", e.Data, i)
				}
			}
		}
		s.ticks(10) // the first of them took note of the head
		s.looks()
		if got := s.stats(); got.Streams != 6 || got.Lagging != 1 {
			t.Fatalf("before the time there are %d streams, %d lagging", got.Streams, got.Lagging)
		}
		s.ticks(1)
		s.closed(closeLag, 1)
		slow.wasReset()
		if got := s.stats(); got.Streams != 5 || got.Lagging != 0 {
			t.Errorf("%d streams, %d lagging", got.Streams, got.Lagging)
		}
	})
}

// TestStalledStreamIsDropped: a socket that takes nothing for --stall. The
// loop and the kernel (TCP_USER_TIMEOUT) look at the same time; both count. The
// other stream never has more than its socket takes at once, so it can't stall
// however late its client reads.
func TestStalledStreamIsDropped(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		t.Parallel()
		s := start(t, func(as *setup) { with(as); as.byHand, as.Stall = true, time.Second })
		s.open(1)
		slow := s.neverReads()
		s.produce(0, strings.Repeat("x", 1<<20-100))
		idle := s.page("HTTP/1.1", "/events")
		s.produce(0, "small")
		idle.next()
		s.closed(closeStall, 1)
		slow.wasReset()
		if got := s.stats(); got.Streams != 1 {
			t.Errorf("%d streams", got.Streams)
		}
	})
}

// TestOverwrittenStreamIsDropped: the log moves on over the stream's place.
func TestOverwrittenStreamIsDropped(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		t.Parallel()
		s := start(t, func(as *setup) { with(as); as.byHand, as.hub.LogBytes, as.Stall = true, 512<<10, time.Hour })
		s.open(1)
		slow := s.neverReads()
		value := strings.Repeat("x", 10_000)
		for range 500 {
			s.produce(0, value)
		}
		// It is noticed when the socket takes bytes again; until then the stream
		// costs nothing.
		slow.wasReset()
		s.closed(closeOverwritten, 1)
	})
}

// TestLagRule follows one burst and then another, longer ago than five seconds
// each, with streams that take none of them. One that was live is dropped; one
// that began behind is spared until it has caught up once.
func TestLagRule(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(as *setup) { as.MaxLag = 1 << 40 })
	r.open(1)
	live := r.dial().get("/events")
	liveConn := r.l.all[0]
	burst := func() {
		value := strings.Repeat("x", 10_000)
		for range 200 {
			r.produce(0, value)
		}
		r.settle()
	}
	long := func() { // until the head is that of five seconds ago
		reader := r.l.feeds[r.feeds[0]].reader
		for n := 0; reader.LagMark() < reader.Head(); n++ {
			if dropped := r.l.counts.closed[closeLag]; n > 10 || dropped > 0 && r.l.lagging.len() > 1 {
				t.Fatalf("after %d ticks the mark is %d of %d, and %d are dropped", n, reader.LagMark(), reader.Head(), dropped)
			}
			r.ticks(1)
			r.settle()
		}
		r.later(time.Second) // whatever the last look has cost
	}
	burst()
	behind := r.dial().get("/events", "Last-Event-ID: v1:")
	if r.l.lagging.len() != 2 {
		t.Fatalf("%d streams lag, want both", r.l.lagging.len())
	}
	long()
	lag := &r.l.srv.cfg.MaxLag
	*lag = r.l.feeds[r.feeds[0]].reader.LagMark() - liveConn.place
	if r.later(time.Second); !live.near.open {
		t.Fatalf("dropped as far behind as it may be: closed %v", r.l.counts.closed)
	}
	*lag--
	r.later(time.Second)
	if r.l.counts.closed[closeLag] != 1 || live.near.open || !behind.near.open {
		t.Fatalf("closed: %v", r.l.counts.closed)
	}
	for n := 0; r.l.lagging.len() > 0; n++ {
		behind.events()
		r.later(lookEvery)
		if n > 1000 {
			t.Fatal("it does not catch up")
		}
	}
	behind.events()
	*lag = 100_000
	burst()
	if r.l.lagging.len() != 1 {
		t.Fatal("the second burst fits into the socket")
	}
	long()
	if r.l.counts.closed[closeLag] != 2 || behind.near.open {
		t.Fatalf("closed: %v", r.l.counts.closed)
	}
}

// TestBurstDropsNobody: far more than --max-lag at once, looked at many times
// within five seconds, and then read.
func TestBurstDropsNobody(t *testing.T) {
	s := start(t, func(as *setup) { as.byHand, as.MaxLag, as.Stall = true, 64<<10, time.Hour })
	s.open(1)
	var clients []*client
	for range 10 {
		c := s.narrow()
		s.asks(c)
		clients = append(clients, c)
	}
	value := strings.Repeat("x", 10_000)
	const records = 40
	for range records {
		s.produce(0, value)
	}
	eventually(t, "all lag", func() bool { return s.stats().Lagging == len(clients) })
	for range 10 {
		s.ticks(1)
		s.looks()
	}
	for _, c := range clients {
		c.head()
		c.expect("retry: ")
		c.expect(slices.Repeat([]string{value}, records)...)
	}
	eventually(t, "nobody lags", func() bool { return s.stats().Lagging == 0 })
	s.ticks(20)
	s.produce(0, "the last")
	for _, c := range clients {
		c.expect("data: the last\n")
	}
}

// TestSlowReaderLosesNothing reads a few bytes at a time while the log grows:
// what the socket refuses is neither lost nor sent twice.
func TestSlowReaderLosesNothing(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, nil)
			r.open(1)
			p := r.dial()
			p.buf = make([]byte, 7777)
			p.send(req("GET /events " + version))
			next, want := 0, 0
			for range 300 {
				for range 20 {
					r.produce(0, fmt.Sprint(next, strings.Repeat("y", next%3000)))
					next++
				}
				r.later(lookEvery)
				want = checkSome(t, p, want)
			}
			for n := 0; want < next; n++ {
				r.later(lookEvery)
				if want = checkSome(t, p, want); n > 10_000 {
					t.Fatalf("came to a halt at %d of %d", want, next)
				}
			}
			if got := r.l.counts.events; got != uint64(next) {
				t.Errorf("counted %d events of %d", got, next)
			}
		})
	}
}

// checkSome reads once from p and checks the events that are whole; it returns
// the number of the next one.
func checkSome(t *testing.T, p *peer, want int) int {
	t.Helper()
	n, err := syscall.Read(p.fd, p.buf)
	if err == syscall.EAGAIN {
		return want
	}
	events, serr := p.stream.Feed(p.buf[:max(n, 0)])
	if err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	for _, e := range events {
		if e.Data != fmt.Sprint(want, strings.Repeat("y", want%3000)) {
			t.Fatalf("got %.20q, want event %d", e.Data, want)
		}
		want++
	}
	return want
}

// TestManyLaggards: their sockets become writable at once. No turn serves all
// of them, so that requests are answered in between, and none is forgotten.
func TestManyLaggards(t *testing.T) {
	r := newRig(t, func(as *setup) { as.MaxConns = 5000 })
	r.open(1)
	var peers []*peer
	for range 600 {
		peers = append(peers, r.dial().get("/events"))
	}
	value := strings.Repeat("x", 10_000)
	for range 40 {
		r.produce(0, value)
	}
	r.settle()
	if r.l.lagging.len() != len(peers) {
		t.Fatalf("%d streams lag", r.l.lagging.len())
	}
	buf, cut := make([]byte, 1<<20), 0
	for looks := 0; r.l.lagging.len() > 0; looks++ {
		for _, p := range peers {
			p.discard(buf)
		}
		r.l.began = r.l.began.Add(-time.Second)
		for r.turn(); r.l.looking; r.turn() {
			cut++
		}
		if looks > 100 {
			t.Fatal("they do not catch up")
		}
	}
	if cut == 0 {
		t.Error("one turn served them all")
	}
	if want := uint64(40 * len(peers)); r.l.counts.events != want {
		t.Errorf("sent %d events, want %d", r.l.counts.events, want)
	}
}
