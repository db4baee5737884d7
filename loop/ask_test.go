package loop

import (
	"strings"
	"sync"
	"testing"
	"time"

	"tailcast/hub"
	"tailcast/route"
)

// oracle is a Serving.Open whose answers the test gives.
type oracle struct {
	hub   *hub.Hub
	mu    sync.Mutex
	feed  *hub.Feed
	err   error
	asked []func()
	waits []bool // of each call
}

func (o *oracle) open(_ *route.Values, wait bool) (*hub.Feed, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = append(o.waits, wait)
	switch {
	case o.feed != nil:
		f, _ := o.hub.Find(hub.Spec{Topics: []string{"lent"}})
		return f, nil
	case o.err != nil:
		return nil, o.err
	}
	return nil, &Later{func(ready func()) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asked = append(o.asked, ready)
	}}
}

// newAsking is a rig whose only stream is the oracle's. The feed that it may
// lend is open.
func newAsking(t *testing.T) (*rig, *oracle, *hub.Feed) {
	r := newRig(t, nil)
	o := &oracle{hub: r.hub}
	r.l.srv.site.Serves = []Serving{{Open: o.open}}
	tl := &tail{topic: "lent"}
	f, err := r.hub.Lend(hub.Spec{Topics: []string{"lent"}}, tl, hub.NewLot())
	if err != nil {
		t.Fatal(err)
	}
	tl.open(1)
	return r, o, f
}

func (o *oracle) answer(f *hub.Feed, err error) {
	o.mu.Lock()
	o.feed, o.err = f, err
	asked := o.asked
	o.asked = nil
	o.mu.Unlock()
	for _, ready := range asked {
		ready()
	}
}

func TestRequestWaitsForAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cut   int // of the request, in two reads
		given func(o *oracle, f *hub.Feed)
		want  string // begins the answer
		more  string // what it holds
	}{
		{"a feed", 0, func(o *oracle, f *hub.Feed) { o.answer(f, nil) }, "HTTP/1.1 200 ", "retry: "},
		{"a feed, for a head that came in two reads", 20, func(o *oracle, f *hub.Feed) { o.answer(f, nil) }, "HTTP/1.1 200 ", "retry: "},
		{"no topic", 0, func(o *oracle, _ *hub.Feed) { o.answer(nil, &route.Refusal{Status: 404, Reason: "no such topic"}) }, "HTTP/1.1 404 ", "no such topic"},
		{"a full route", 0, func(o *oracle, _ *hub.Feed) { o.answer(nil, ErrFull) }, "HTTP/1.1 200 ", "0\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, o, f := newAsking(t)
			p := r.dial()
			text := req("GET /events HTTP/1.1", "Origin: https://app.test")
			p.send(text[:tc.cut])
			p.send(text[tc.cut:])
			r.settle()
			if got := now(p); got != "" || r.l.asks != 1 {
				t.Fatalf("answers %q before it is asked, %d wait", got, r.l.asks)
			}
			tc.given(o, f)
			r.settle()
			got := now(p)
			if !strings.HasPrefix(got, tc.want) || !strings.Contains(got, tc.more) || !strings.Contains(got, "Access-Control-Allow-Origin: https://app.test") {
				t.Fatalf("answers %q", got)
			}
			if r.l.asks != 0 {
				t.Errorf("%d requests wait still", r.l.asks)
			}
		})
	}
}

// A HEAD is told what a GET would be, without content, and begins no stream.
func TestHeadWaitsForAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given func(o *oracle, f *hub.Feed)
		want  string // begins the answer
	}{
		{"a feed", func(o *oracle, f *hub.Feed) { o.answer(f, nil) }, "HTTP/1.1 200 "},
		{"no topic", func(o *oracle, _ *hub.Feed) { o.answer(nil, &route.Refusal{Status: 404, Reason: "no such topic"}) }, "HTTP/1.1 404 "},
		{"a full route", func(o *oracle, _ *hub.Feed) { o.answer(nil, ErrFull) }, "HTTP/1.1 200 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, o, f := newAsking(t)
			p := r.dial()
			p.send(req("HEAD /events HTTP/1.1"))
			r.settle()
			tc.given(o, f)
			r.settle()
			if got := now(p); !strings.HasPrefix(got, tc.want) || strings.Index(got, "\r\n\r\n") != len(got)-4 {
				t.Errorf("answers %q", got)
			}
			if r.l.asks != 0 || r.l.counts.streams != 0 {
				t.Errorf("%d requests wait, %d streams", r.l.asks, r.l.counts.streams)
			}
		})
	}
}

// What is not answered in time is opened without.
func TestAnswerIsLate(t *testing.T) {
	r, o, f := newAsking(t)
	p := r.dial()
	p.send(req("GET /events HTTP/1.1"))
	r.settle()
	o.mu.Lock()
	o.feed = f // nobody is told
	late := o.asked[0]
	o.mu.Unlock()
	r.later(askMax + time.Second)
	if got := now(p); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Fatalf("answers %q", got)
	}
	if last := o.waits[len(o.waits)-1]; last {
		t.Error("is asked to wait on")
	}
	late() // changes nothing
	r.settle()
	if r.l.asks != 0 || r.l.counts.streams != 1 {
		t.Errorf("%d requests wait, %d streams", r.l.asks, r.l.counts.streams)
	}
}

// A client that leaves while it waits is forgotten, and so is its question.
func TestLeavesWhileItWaits(t *testing.T) {
	r, o, f := newAsking(t)
	p := r.dial()
	p.send(req("GET /events HTTP/1.1"))
	r.settle()
	r.l.close(p.c, closePeer)
	o.answer(f, nil)
	r.settle()
	if r.l.asks != 0 || r.l.counts.streams != 0 || len(r.l.all) != 0 {
		t.Errorf("%d wait, %d streams, %d connections", r.l.asks, r.l.counts.streams, len(r.l.all))
	}
}

// The requests that wait are bounded; who comes then is sent away, and a drain
// sends away those who wait.
func TestWaitingIsBounded(t *testing.T) {
	r, _, _ := newAsking(t)
	first := r.dial()
	first.send(req("GET /events HTTP/1.1"))
	r.settle()
	r.l.asks = asksMax
	p := r.dial()
	p.send(req("GET /events HTTP/1.1"))
	r.settle()
	if got := now(p); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, "retry: ") {
		t.Fatalf("answers %q", got)
	}
	r.l.asks = 1
	r.l.order(orderDrain)
	r.settle()
	r.later(time.Second)
	if got := now(first); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, "retry: ") || r.l.asks != 0 {
		t.Fatalf("answers %q to one who waits, %d wait", got, r.l.asks)
	}
}

// now is what has arrived at a peer.
func now(p *peer) string {
	got, _ := p.read()
	return got
}
