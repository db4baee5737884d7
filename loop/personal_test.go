package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// aside makes a log of two partitions in turns: a stream that has all of one
// and nothing of the other has no place in it.
func aside(r *rig, records, size int) {
	r.t.Helper()
	r.open(2)
	for i := range records {
		r.produce(0, fmt.Sprint("a", i))
		r.produce(1, fmt.Sprint("b", i, strings.Repeat("y", size)))
	}
}

func TestPersonalStream(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, nil)
			aside(r, 5, 0)
			p := r.dial()
			p.send(req("GET /events "+version, "Last-Event-ID: v1:0-4.1-1"))
			if got := p.data(); got != "b2 b3 b4" || !strings.HasPrefix(p.stream.Parser.LastEventID(), "v1:0-4.1-4~") {
				t.Fatalf("got %q, stands at %q", got, p.stream.Parser.LastEventID())
			}
			if s := p.c.stream; p.c.own != nil || p.c.list != &s.live {
				t.Fatal("it has not joined the others")
			}
			r.produce(0, "a5")
			r.settle()
			if got := p.data(); got != "a5" {
				t.Errorf("then got %q", got)
			}
		})
	}
}

// TestPersonalStreamAhead brings an id of another node that is ahead of this
// one, on a socket that is full when there is nothing more to send: the rest
// must come although nothing new is made.
func TestPersonalStreamAhead(t *testing.T) {
	r := newRig(t, nil)
	r.sndbuf = 4096
	aside(r, 5, 10_000)
	p := r.dial()
	p.buf = make([]byte, 1000)
	p.send(req("GET /events HTTP/1.1", "Last-Event-ID: v1:0-9"))
	events := 0
	for n := 0; events < 5; n++ {
		events += len(p.events())
		if r.later(lookEvery); n > 1000 {
			t.Fatalf("came to a halt behind %d events", events)
		}
	}
	if p.c.list != &p.c.stream.idle || r.l.ownHeld != 0 {
		t.Errorf("it does not wait; %d bytes are held", r.l.ownHeld)
	}
	for i := 5; i < 11; i++ {
		r.produce(0, fmt.Sprint("a", i))
	}
	r.settle()
	if got := p.data(); got != "a10" || p.c.own != nil {
		t.Errorf("then got %q", got)
	}
}

// TestPersonalStreamEnds in the middle of what it lacks: the frames that were
// begun are whole, then comes the farewell.
func TestPersonalStreamEnds(t *testing.T) {
	r := newRig(t, nil)
	aside(r, 100, 10_000)
	p := r.dial().get("/events", "Last-Event-ID: v1:0-99")
	if p.c.list != &r.l.lagging || p.c.own == nil || r.l.ownHeld == 0 {
		t.Fatalf("it does not lag; %d bytes are held", r.l.ownHeld)
	}
	r.l.end(p.c, closeDrain)
	for n := 0; !p.ended; n++ {
		for i, e := range p.events() {
			if len(e.Data) < 10_000 {
				t.Fatalf("event %d has %d bytes", i, len(e.Data))
			}
		}
		if r.later(lookEvery); n > 100 {
			t.Fatal("it does not end")
		}
	}
	if !p.stream.Chunks.Done {
		t.Error("no last chunk")
	}
	if p.c.own != nil {
		t.Error("it still follows the feed, while it waits for its client")
	}
	p.hangUp()
	if r.l.ownHeld != 0 {
		t.Errorf("%d bytes held", r.l.ownHeld)
	}
}

// TestPersonalStreamHoldsWhenItJoins: a stream joins the others while its socket
// is full. What it holds then counts until it is sent, and no longer.
func TestPersonalStreamHoldsWhenItJoins(t *testing.T) {
	r := newRig(t, nil)
	r.sndbuf = 4096
	aside(r, 5, 10_000)
	p := r.dial()
	p.buf = make([]byte, 1000)
	p.get("/events", "Last-Event-ID: v1:0-4.1-2")
	if p.c.own != nil || p.c.list != &r.l.lagging || r.l.ownHeld == 0 {
		t.Fatalf("it has not joined, or lags not; %d bytes are held", r.l.ownHeld)
	}
	events := 0
	for n := 0; events < 2; n++ {
		events += len(p.events())
		if r.later(lookEvery); n > 1000 {
			t.Fatalf("came to a halt behind %d events", events)
		}
	}
	if r.l.ownHeld != 0 {
		t.Errorf("%d bytes are held, when all are sent", r.l.ownHeld)
	}
}

// TestPersonalStreamsShareABudget: over it they wait, which is not their fault.
func TestPersonalStreamsShareABudget(t *testing.T) {
	r := newRig(t, nil)
	aside(r, 5, 10_000)
	r.l.ownHeld = ownHeldMax + 1
	p := r.dial().get("/events", "Last-Event-ID: v1:0-4")
	for range 10 {
		r.later(r.srv.cfg.Stall / 2)
	}
	if got := p.events(); len(got) != 0 || !p.near.open || p.c.list != &r.l.lagging {
		t.Fatalf("got %d events; open: %t", len(got), p.near.open)
	}
	r.l.ownHeld = 0
	r.later(time.Second)
	if got := p.events(); len(got) != 5 {
		t.Errorf("got %d events when there was room", len(got))
	}
}

// TestPersonalStreamsHoldLess each when they hold much together.
func TestPersonalStreamsHoldLess(t *testing.T) {
	r := newRig(t, nil)
	r.sndbuf = 4096
	aside(r, 200, 1000)
	if held := r.dial().get("/events", "Last-Event-ID: v1:0-99").c.ownHeld; held < ownStepLess {
		t.Errorf("alone it holds %d bytes", held)
	}
	r.l.ownHeld += ownHeldMuch
	if held := r.dial().get("/events", "Last-Event-ID: v1:0-99").c.ownHeld; held == 0 || held > ownStepLess+2000 {
		t.Errorf("one of many holds %d bytes", held)
	}
	r.l.ownHeld -= ownHeldMuch
}

// TestPersonalStreamStalls like any other.
func TestPersonalStreamStalls(t *testing.T) {
	r := newRig(t, nil)
	aside(r, 100, 10_000)
	p := r.dial().get("/events", "Last-Event-ID: v1:0-99")
	r.later(r.srv.cfg.Stall - time.Second)
	if !p.near.open {
		t.Fatal("dropped before the time")
	}
	r.later(2 * time.Second)
	if p.near.open || r.l.counts.closed[closeStall] != 1 || r.l.ownHeld != 0 {
		t.Errorf("closed: %v; %d bytes held", r.l.counts.closed, r.l.ownHeld)
	}
}
