package loop

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tailcast/frame"
	"tailcast/hub"
	"tailcast/internal/ssetest"
)

func TestStreamLive(t *testing.T) {
	s := start(t, nil)
	s.open(2)
	c := s.get("/events")
	c.expect("retry: ")
	s.produce(0, "one", "two\nlines")
	s.produce(1, "three")
	c.expect("id: v1:0-0~", "data: two\ndata: lines\n\n", "id: v1:0-1.1-0~")
}

// TestRefusedFeed: streams of a feed whose ids are too long are told to come
// back later, those that wait for it too.
func TestRefusedFeed(t *testing.T) {
	var many []frame.Partition
	for i := range int32(1000) {
		many = append(many, frame.Partition{ID: i, Next: 1 << 40})
	}
	r := newRig(t, nil)
	waiting := r.dial().get("/events")
	waiting.events()
	r.sink.Open(topicID, many)
	r.settle()
	late := r.dial().get("/events")
	for name, p := range map[string]*peer{"waiting": waiting, "late": late} {
		p.events()
		retry, _ := p.stream.Parser.Retry()
		if !p.stream.Chunks.Done || retry < shedRetryMin || retry > shedRetryMax || p.stream.Parser.LastEventID() != "" {
			t.Errorf("%s: done: %t, retry %d, id %.50q", name, p.stream.Chunks.Done, retry, p.stream.Parser.LastEventID())
		}
	}
	if r.l.counts.streams != 0 {
		t.Errorf("%d streams", r.l.counts.streams)
	}
}

// TestStreamRetry spreads the reconnection time: half to one and a half of
// --retry, and never less than a second.
func TestStreamRetry(t *testing.T) {
	r := newRig(t, func(as *setup) { as.Retry = 1500 * time.Millisecond })
	r.open(1)
	low, high := 1<<30, 0
	for range 300 {
		p := r.dial().get("/events")
		p.events()
		got, ok := p.stream.Parser.Retry()
		if !ok || got < 1000 || got > 2250 {
			t.Fatalf("got %d, %t", got, ok)
		}
		low, high = min(low, got), max(high, got)
		p.hangUp()
	}
	if low > 1010 || high < 2200 {
		t.Errorf("spread from %d to %d", low, high)
	}
}

// TestStreamsWait opens many streams before the feed is open: they get a
// heartbeat now and then, and their places when it is, also those with an id.
func TestStreamsWait(t *testing.T) {
	r := newRig(t, nil)
	fresh, resuming := make([]*peer, 100), make([]*peer, 100)
	for i := range fresh {
		fresh[i] = r.dial().get("/events")
		resuming[i] = r.dial().get("/events", "Last-Event-ID: v1:0-4")
		if i%3 == 0 {
			resuming[i].hangUp()
		}
	}
	gone := resuming[0]
	for range 3 {
		beatWaiting(r)
		for _, p := range fresh {
			p.events()
		}
	}
	for i, p := range fresh {
		if p.stream.Head == nil || p.stream.Parser.Comments != 4 || p.stream.Parser.LastEventID() != "" {
			t.Fatalf("stream %d: head %v, %d comments, id %q", i, p.stream.Head, p.stream.Parser.Comments, p.stream.Parser.LastEventID())
		}
	}
	beatWaiting(r) // and open in the middle of it
	r.turn()
	r.openAt(0, 10)
	r.settle()
	r.produce(0, "first")
	r.settle()
	for i, p := range fresh {
		if got := p.data(); got != "first" || p.stream.Parser.LastEventID()[:7] != "v1:0-10" {
			t.Fatalf("stream %d: got %q, id %q", i, got, p.stream.Parser.LastEventID())
		}
		if p := resuming[i]; i%3 != 0 {
			if got := p.data(); got != `{"reason":"unknown","topics":{}} first` {
				t.Fatalf("resuming %d: got %q", i, got)
			}
		}
	}
	if s := r.l.feeds[r.feeds[0]]; s.waiting.len() != 0 || s.live.len() != s.n || s.n != 166 || gone.near.open {
		t.Errorf("%d wait, %d live, %d in all", s.waiting.len(), s.live.len(), s.n)
	}
}

// beatWaiting makes the feed send its heartbeat to the streams that wait.
func beatWaiting(r *rig) {
	r.t.Helper()
	r.l.began = r.l.began.Add(-20 * time.Second)
	for _, s := range r.l.feeds {
		r.l.tell()
		r.l.pass(s.reader)
	}
	r.settle()
}

// TestStreamWaitsForItsFeed is the same by the hub's own clock.
func TestStreamWaitsForItsFeed(t *testing.T) {
	t.Parallel()
	s := start(t, func(as *setup) { as.hub.Heartbeat = time.Second })
	c := s.get("/events")
	c.expect("retry: ", ":\n", ":\n")
	s.open(1)
	c.expect("id: v1:~")
	s.produce(0, "first")
	c.expect("data: first")
}

// TestStreamHeartbeats of an open feed are frames of the log, for all.
func TestStreamHeartbeats(t *testing.T) {
	t.Parallel()
	s := start(t, func(as *setup) { as.hub.Heartbeat = time.Second })
	s.open(1)
	c, d := s.get("/events"), s.get("/events")
	for _, c := range []*client{c, d} {
		c.expect("retry: ", ":\n", ":\n")
	}
}

// TestBigEvent sends events that are larger than a segment, than what a turn
// writes and than any socket buffer, between small ones.
func TestBigEvent(t *testing.T) {
	s := start(t, nil)
	s.open(1)
	big := strings.Repeat("0123456789abcdef", 60_000)
	var want []string
	for i := range 4 {
		want = append(want, fmt.Sprint("small ", i), fmt.Sprint(i, big[:len(big)-i]))
	}
	early, late := s.page("HTTP/1.1", "/events"), s.page("HTTP/1.0", "/events")
	s.produce(0, want...)
	resumed := s.page("HTTP/1.1", "/events", "Last-Event-ID: v1:")
	for _, p := range []*page{early, late, resumed} {
		for i, w := range want {
			if got := p.next(); got.Data != w {
				t.Fatalf("event %d: got %d bytes, want %d", i, len(got.Data), len(w))
			}
		}
	}
	eventually(t, "nobody lags", func() bool { return s.stats().Lagging == 0 })
}

// TestHTTP10 streams without chunks: the same events, ended by the connection.
func TestHTTP10(t *testing.T) {
	s := start(t, nil)
	s.open(1)
	p := s.page("HTTP/1.0", "/events")
	if len(p.stream.Head.TransferEncoding) != 0 || p.stream.Head.ContentLength >= 0 {
		t.Fatalf("head: %v", p.stream.Head)
	}
	s.produce(0, "one", "two\nlines", "")
	for i, want := range []string{"one", "two\nlines", ""} {
		if got := p.next(); got.Data != want || got.LastEventID[:6] != fmt.Sprint("v1:0-", i) {
			t.Fatalf("got %v, want %q", got, want)
		}
	}
	s.srv.loops[0].order(orderDrain)
	if rest, err := p.rest(); len(rest) != 0 || err != io.EOF {
		t.Fatalf("got %v, %v at the end", rest, err)
	}
}

// TestFeedsAreApart opens streams of many feeds on one loop.
func TestFeedsAreApart(t *testing.T) {
	r := newRig(t, func(as *setup) { as.feeds = 200 })
	peers := make([][]*peer, len(r.tails))
	for i, tl := range r.tails {
		tl.open(1)
		for range 3 {
			peers[i] = append(peers[i], r.dial().get(fmt.Sprint("/f", i)))
		}
	}
	for i, tl := range r.tails {
		tl.produce(0, fmt.Sprint("of ", i))
	}
	r.settle()
	for i := range peers {
		for _, p := range peers[i] {
			if got := p.data(); got != fmt.Sprint("of ", i) {
				t.Fatalf("feed %d: got %q", i, got)
			}
			p.hangUp()
		}
	}
	if len(r.l.feeds) != 0 || len(r.l.passes) != 0 {
		t.Errorf("%d feeds, %d passes remembered", len(r.l.feeds), len(r.l.passes))
	}
}

// TestRecordDuringPass: what is made while a pass runs reaches the streams that
// the pass has met, too.
func TestRecordDuringPass(t *testing.T) {
	r := newRig(t, nil)
	r.open(1)
	peers := r.crowd(3*clockEvery, "HTTP/1.1")
	r.produce(0, "one")
	r.l.tell()
	r.l.pass(r.l.feeds[r.feeds[0]].reader)
	r.l.slice(r.l.passes[0])
	r.produce(0, "two")
	r.settle()
	for i, p := range peers {
		if got := p.data(); got != "one two" {
			t.Fatalf("stream %d: got %q", i, got)
		}
	}
}

// TestFeedLeftInPass: the last stream of a feed leaves, and another comes,
// while a pass over it runs.
func TestFeedLeftInPass(t *testing.T) {
	r := newRig(t, nil)
	r.open(1)
	var peers []*peer
	for range 3 * clockEvery {
		peers = append(peers, r.dial().get("/events"))
	}
	r.produce(0, "one")
	r.l.tell()
	r.l.pass(r.l.feeds[r.feeds[0]].reader)
	r.l.slice(r.l.passes[0])
	for _, p := range peers {
		p.hangUp()
	}
	late := r.dial().get("/events")
	r.produce(0, "two")
	r.settle()
	if got := late.data(); got != "two" {
		t.Errorf("got %q", got)
	}
	late.hangUp()
	if len(r.l.feeds) != 0 || len(r.l.passes) != 0 {
		t.Errorf("%d feeds, %d passes remembered", len(r.l.feeds), len(r.l.passes))
	}
}

// TestClientGoneAtOnce: a client is gone before its stream is told that it has
// caught up, its first write, with the head, having been taken.
func TestClientGoneAtOnce(t *testing.T) {
	r := newRig(t, func(as *setup) { as.serving.Start = hub.Policy{From: hub.FromEarliest} })
	r.open(1)
	p := r.dialTCP()
	if err := unix.Close(p.fd); err != nil {
		t.Fatal(err)
	}
	p.fd, p.near.reading = -1, true
	p.get("/events")
	if len(r.l.all) != 0 || r.l.counts.closed[closePeer] != 1 || r.l.counts.streams != 0 {
		t.Errorf("%d connections, %d streams; closed: %v", len(r.l.all), r.l.counts.streams, r.l.counts.closed)
	}
}

// page is a client that reads events as a browser does.
type page struct {
	*client
	stream ssetest.Stream
	events []ssetest.Event
	buf    []byte
	last   []byte // of what was read, at least 50 bytes
}

// page asks for a stream and reads its head.
func (s *site) page(version, path string, fields ...string) *page {
	s.t.Helper()
	p := &page{client: s.dial(), buf: make([]byte, 64<<10)}
	p.send(req("GET "+path+" "+version, fields...))
	for p.stream.Head == nil {
		if err := p.more(); err != nil {
			s.t.Fatal(err)
		}
	}
	return p
}

// more reads what there is.
func (p *page) more() error {
	n, err := p.Read(p.buf)
	events, ferr := p.stream.Feed(p.buf[:n])
	p.last = append(p.last, p.buf[:n]...)
	p.last = p.last[max(0, len(p.last)-100):]
	p.events = append(p.events, events...)
	if ferr != nil {
		return ferr
	}
	return err
}

// next waits for the next event.
func (p *page) next() ssetest.Event {
	p.t.Helper()
	for len(p.events) == 0 {
		if err := p.more(); err != nil {
			p.t.Fatal(err)
		}
	}
	e := p.events[0]
	p.events = p.events[1:]
	return e
}

// rest reads to the end of the connection; io.EOF is a clean one.
func (p *page) rest() ([]ssetest.Event, error) {
	for {
		if err := p.more(); err != nil {
			return p.events, err
		}
	}
}
