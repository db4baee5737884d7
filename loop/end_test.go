package loop

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	farewell11 = regexp.MustCompile(`\r\nd\r\nretry: \d{4}\n\n\r\n0\r\n\r\n$`)
	farewell10 = regexp.MustCompile(`\n\nretry: \d{4}\n\n$`)
)

// endsCleanly checks that a stream got its farewell and the end of its
// response, and nothing behind it.
func endsCleanly(t *testing.T, p *page) {
	t.Helper()
	if _, err := p.rest(); err != io.EOF {
		t.Fatalf("got %v, want a clean end", err)
	}
	want := farewell10
	if len(p.stream.Head.TransferEncoding) > 0 {
		want = farewell11
	}
	if !want.Match(p.last) {
		t.Errorf("ends in %q", p.last)
	}
}

func TestDrainEndsStreams(t *testing.T) {
	s := start(t, nil)
	waiting := s.page("HTTP/1.1", "/events")
	waiting10 := s.page("HTTP/1.0", "/events")
	s.open(1)
	eventually(t, "both are placed", func() bool { return s.feeds[0].Snapshot().Streams == 2 })
	idle := s.dial()
	pages := []*page{waiting, waiting10, s.page("HTTP/1.1", "/events"), s.page("HTTP/1.0", "/events")}
	s.produce(0, "one")
	for _, p := range pages {
		p.next()
	}
	s.srv.loops[0].order(orderDrain)
	for _, p := range pages {
		endsCleanly(t, p)
		p.Close()
	}
	if b, err := io.ReadAll(idle.r); len(b) != 0 || err != nil {
		t.Errorf("idle connection: got %q, %v", b, err)
	}
	s.closed(closeDrain, 5)
}

// TestDrainEndsWaiting ends streams whose feed never opened.
func TestDrainEndsWaiting(t *testing.T) {
	r := newRig(t, nil)
	p, q := r.dial().get("/events"), r.dial()
	q.send("GET /events HTTP/1.0\r\n\r\n")
	r.l.order(orderDrain)
	r.later(0)
	r.later(time.Second)
	for _, x := range []*peer{p, q} {
		if x.events(); !x.ended || x == p && !x.stream.Chunks.Done {
			t.Errorf("ended: %t, last chunk: %t", x.ended, x.stream.Chunks.Done)
		}
	}
}

// TestDrainIsPaced: streams end one by one over half of --drain, or faster
// than that if they are few.
func TestDrainIsPaced(t *testing.T) {
	for _, tt := range []struct {
		name    string
		streams int
		drain   time.Duration
		each    time.Duration
	}{{"few", 40, 30 * time.Second, 10 * time.Millisecond}, {"many", 400, 4 * time.Second, 5 * time.Millisecond}} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(as *setup) { as.Drain = tt.drain })
			r.open(1)
			for range tt.streams {
				r.dial().get("/events")
			}
			r.l.order(orderDrain)
			half := time.Duration(tt.streams/2) * tt.each
			begin := time.Now()
			r.later(0)
			for done := tt.each; done <= half; done += tt.each {
				r.later(tt.each)
			}
			// Real time passed as well.
			most := tt.streams/2 + 2 + int(time.Since(begin)/tt.each)
			if n := r.l.counts.streams; n < tt.streams-most || n > tt.streams/2+2 {
				t.Errorf("%d of %d streams left at half time", n, tt.streams)
			}
			r.later(half + 2*tt.each)
			if n := r.l.counts.streams; n != 0 {
				t.Errorf("%d streams left at the end", n)
			}
		})
	}
}

// TestStreamsDuringDrain: a request that comes too late gets a stream that
// ends, for any other answer would stop EventSource for good.
func TestStreamsDuringDrain(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, nil)
			r.open(1)
			var late []*peer
			for range 50 {
				p := r.dial()
				p.send("GET /events " + version + "\r\nHost: gw.test\r\nOrigin: https://app.test\r\n")
				late = append(late, p)
			}
			r.l.order(orderDrain)
			r.later(time.Second)
			low, high := 1<<30, 0
			for _, p := range late {
				p.send("\r\n")
				p.events()
				h := p.stream.Head
				if h == nil || h.StatusCode != http.StatusOK || h.Header.Get("Access-Control-Allow-Origin") != "https://app.test" {
					t.Fatalf("head: %v", h)
				}
				if !p.ended || version == "HTTP/1.1" && !p.stream.Chunks.Done {
					t.Fatalf("ended: %t, last chunk: %t", p.ended, p.stream.Chunks.Done)
				}
				retry, _ := p.stream.Parser.Retry()
				low, high = min(low, retry), max(high, retry)
			}
			if low < 5000 || low > 8000 || high < 12_000 || high > 15_000 {
				t.Errorf("retry from %d to %d, want it spread from 5000 to 15000", low, high)
			}
		})
	}
}

// TestRequestsDuringDrain: other requests are answered, and their connections end.
func TestRequestsDuringDrain(t *testing.T) {
	r := newRig(t, nil)
	head, body := r.dial(), r.dial()
	head.send("GET /nope HTTP/1.1\r\nHost: gw.test\r\n")
	body.send(req("POST /events HTTP/1.1", "Content-Length: 3") + "ab")
	body.read()
	r.l.order(orderDrain)
	r.later(time.Second)
	head.send("\r\n")
	raw, ended := head.read()
	if got, err := answers(raw); got != "404 close vary=Origin" || err != nil || !ended {
		t.Errorf("got %q, %v, ended: %t", got, err, ended)
	}
	if body.send("c"); body.c.state != stateLinger {
		t.Errorf("behind a body the connection is in state %d", body.c.state)
	}
}

// TestDrainFinishesFrames: a stream in the middle of a frame gets the rest of
// it before its farewell, if it takes it in time, else a reset.
func TestDrainFinishesFrames(t *testing.T) {
	t.Parallel()
	s := start(t, func(as *setup) { as.waits.end, as.Drain = 4*time.Second, 0 }) // one a turn is told to end
	s.open(1)
	big := strings.Repeat("0123456789abcdef", 60_000)
	reads, stalls := s.dial(), s.neverReads()
	s.asks(reads)
	s.produce(0, big)
	s.produce(0, "not begun")
	eventually(t, "both lag", func() bool { return s.stats().Lagging == 2 })
	turns := s.stats().Turns
	s.srv.loops[0].order(orderDrain)
	// One that is read before that comes to the next frame.
	eventually(t, "the turn under way, and one for each", func() bool { return s.stats().Turns >= turns+3 })
	p := &page{client: reads, buf: make([]byte, 64<<10)}
	events, err := p.rest()
	if err != io.EOF || len(events) != 1 || events[0].Data != big || !p.stream.Chunks.Done {
		t.Errorf("got %d events, %v", len(events), err)
	}
	reads.Close()
	s.closed(closeDrain, 2)
	stalls.wasReset()
}

// TestFarewellWaitsForTheSocket: the socket takes the last frame whole and has
// no room for what comes behind it.
func TestFarewellWaitsForTheSocket(t *testing.T) {
	r := newRig(t, nil)
	r.open(1)
	p := r.dial().get("/events")
	p.events()
	for p.c.list != &r.l.lagging { // one frame more than the socket takes
		r.produce(0, strings.Repeat("x", 20_000))
		r.settle()
	}
	r.l.end(p.c, closeAge)
	if p.c.state != stateEnding && p.c.state != stateLast {
		t.Fatalf("state %d", p.c.state)
	}
	for n := 0; !p.ended; n++ {
		p.events()
		if r.later(lookEvery); n > 100 {
			t.Fatal("it does not end")
		}
	}
	if !p.stream.Chunks.Done || p.c.state != stateLinger {
		t.Errorf("last chunk: %t, state %d", p.stream.Chunks.Done, p.c.state)
	}
	p.hangUp()
	if r.l.counts.closed[closeAge] != 1 {
		t.Errorf("closed: %v", r.l.counts.closed)
	}
}

// TestMaxAge ends streams spread by a tenth around their age.
func TestMaxAge(t *testing.T) {
	const age = 1000 * time.Second
	r := newRig(t, func(as *setup) { as.MaxAge = age })
	r.open(1)
	const streams = 200
	var peers []*peer
	for range streams {
		peers = append(peers, r.dial().get("/events"))
	}
	r.later(age - age/10 - time.Second)
	if n := r.l.counts.streams; n != streams {
		t.Fatalf("%d streams left before the time", n)
	}
	r.later(age/10 + time.Second)
	if n := r.l.counts.streams; n < streams/4 || n > streams*3/4 {
		t.Errorf("%d streams left at their age", n)
	}
	r.later(age/10 + time.Second)
	for _, p := range peers {
		if p.events(); !p.ended || !p.stream.Chunks.Done {
			t.Fatalf("ended: %t, last chunk: %t", p.ended, p.stream.Chunks.Done)
		}
		p.hangUp()
	}
	if n := r.l.counts.closed[closeAge]; n != streams {
		t.Errorf("closed: %v", r.l.counts.closed)
	}
}

// TestStop ends everything: it returns when the clients have gone, and at the
// latest when the time is over.
func TestStop(t *testing.T) {
	t.Run("clients that go", func(t *testing.T) {
		s := start(t, func(as *setup) { as.Loops = 2 })
		s.open(1)
		var pages []*page
		for range 20 {
			pages = append(pages, s.page("HTTP/1.1", "/events"))
		}
		stopped := make(chan struct{})
		go func() { defer close(stopped); s.srv.Stop(context.Background()) }()
		for _, p := range pages {
			endsCleanly(t, p)
			p.Close()
		}
		<-stopped
		s.stopped()
	})
	t.Run("clients that stay", func(t *testing.T) {
		s := start(t, func(as *setup) { as.Drain = 300 * time.Millisecond })
		s.open(1)
		slow := s.neverReads()
		s.produce(0, strings.Repeat("x", 1_000_000), strings.Repeat("x", 1_000_000))
		eventually(t, "it lags", func() bool { return s.stats().Lagging == 1 })
		half := s.dial()
		half.send("GET /events")
		begin := time.Now()
		s.srv.Stop(context.Background())
		if took := time.Since(begin); took < 300*time.Millisecond {
			t.Errorf("gave up after %v", took)
		}
		s.stopped()
		slow.wasReset()
		half.wasReset()
	})
	t.Run("context", func(t *testing.T) {
		s := start(t, func(as *setup) { as.Drain = time.Hour })
		half := s.dial()
		half.send("GET /events")
		eventually(t, "it is there", func() bool { return s.srv.accepter.count() == 1 })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		s.srv.Stop(ctx)
		s.stopped()
	})
}

// TestStopWhileClientsCome stops a server that clients still connect to.
func TestStopWhileClientsCome(t *testing.T) {
	for range 5 {
		s := start(t, func(as *setup) { as.Loops, as.Drain = 2, 200*time.Millisecond })
		s.open(1)
		var clients sync.WaitGroup
		come := make(chan struct{})
		for range 8 {
			clients.Go(func() {
				for n := 0; ; n++ {
					c, err := net.Dial("tcp", s.addr)
					if err != nil {
						return
					}
					if n == 5 {
						select {
						case come <- struct{}{}:
						default:
						}
					}
					_, _ = io.WriteString(c, req("GET /events HTTP/1.1"))
					_, _ = io.CopyN(io.Discard, c, 10)
					_ = c.Close()
				}
			})
		}
		<-come
		s.srv.Stop(context.Background())
		clients.Wait()
		s.stopped()
	}
}

// stopped checks that a server has ended.
func (s *site) stopped() {
	s.t.Helper()
	if n := s.srv.accepter.count(); n != 0 {
		s.t.Errorf("%d connections are left", n)
	}
	if c, err := net.Dial("tcp", s.addr); err == nil {
		c.Close()
		s.t.Error("still listening")
	} else if op := (*net.OpError)(nil); !errors.As(err, &op) {
		s.t.Error(err)
	}
	s.isStopped = true
}
