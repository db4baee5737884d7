package loop

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNextTurn: the timer takes a turn when the earliest of what is due is,
// and in a second at the latest.
func TestNextTurn(t *testing.T) {
	r := newRig(t, func(as *setup) { as.Drain = time.Minute })
	within := func(what string, most time.Duration) {
		t.Helper()
		if in := r.l.armed - r.l.now; in > most || r.l.armed == 0 {
			t.Errorf("%s: the next turn comes in %v, want %v at most", what, in, most)
		}
	}
	r.settle()
	within("idle", idleTurn)
	if in := r.l.armed - r.l.now; in < idleTurn/2 {
		t.Errorf("idle: the next turn comes in %v already", in)
	}
	r.open(1)
	r.dial()
	within("deadline", wheelTick)
	peers := []*peer{r.dial().get("/events"), r.dial().get("/events"), r.dial().get("/events")}
	r.produce(0, strings.Repeat("x", 900_000))
	r.settle()
	within("laggards", lookEvery)
	for _, p := range peers {
		for range 10 {
			p.read()
			r.later(time.Second)
		}
	}
	r.l.order(orderDrain)
	r.turn()
	within("drain", drainEvery)
}

// TestKeepPace: a turn that is due is taken behind the next event of a socket,
// not behind all that gnet has brought.
func TestKeepPace(t *testing.T) {
	r := newRig(t, func(as *setup) { as.waits.turn = 0 })
	r.open(1)
	p, q, gone := r.dial().get("/events"), r.dial(), r.dial().get("/events")
	r.settle()
	p.read()
	for i, event := range []func(){
		func() { q.send("GET /no") },
		func() { r.dial() },
		q.hangUp,
	} {
		r.l.turnCost = 0
		r.produce(0, strconv.Itoa(i))
		if got, _ := p.read(); got != "" {
			t.Fatalf("before event %d: %q", i, got)
		}
		event()
		if got, _ := p.read(); !strings.Contains(got, fmt.Sprint("data: ", i, "\n")) {
			t.Errorf("behind event %d: %q", i, got)
		}
	}
	// The turn closes the connection whose event is the last.
	_ = unix.Close(gone.fd)
	r.l.turnCost = 0
	r.produce(0, "more")
	gone.send("x")
	gone.fd = -1
	if gone.c.state != stateGone || gone.near.open {
		t.Errorf("state %d, open: %t", gone.c.state, gone.near.open)
	}
	// In the middle of a pass the rest between two turns is a third of the turn.
	r.l.turned, r.l.turnCost = time.Since(r.l.began), time.Minute
	r.produce(0, "soon")
	p.read()
	r.l.passes = append(r.l.passes, r.l.feeds[r.feeds[0]])
	for _, tc := range []struct {
		since time.Duration
		turns uint64
	}{{10 * time.Second, 0}, {20 * time.Second, 1}} {
		turns := r.l.counts.turns
		r.l.turned = time.Since(r.l.began) - tc.since
		r.dial()
		if got := r.l.counts.turns - turns; got != tc.turns {
			t.Errorf("in a pass, %v behind a turn of a minute: %d turns", tc.since, got)
		}
	}
	// Turns that take long are taken less often.
	r.l.turnCost = time.Hour
	r.produce(0, "late")
	p.read()
	r.dial()
	if got, _ := p.read(); got != "" {
		t.Errorf("behind a turn of an hour: %q", got)
	}
}

// TestLoopGivesWay: threads that bring records get the processor now and then while
// strangers keep the loop busy, and not more often.
func TestLoopGivesWay(t *testing.T) {
	r := newRig(t, nil)
	r.l.tell()
	gave := r.l.now
	r.l.gave = gave
	r.later(giveWayEvery)
	c := r.dial()
	if r.l.gave < gave+giveWayEvery {
		t.Error("it has not given way")
	}
	gave = r.l.now + time.Hour
	r.l.gave = gave
	c.send("GET /no")
	if r.l.gave != gave {
		t.Error("it gives way too often")
	}
}

// TestLookLeast: streams that catch up have half of the share that they are of
// all while others wait, an eighth of a turn at least.
func TestLookLeast(t *testing.T) {
	r := newRig(t, nil)
	for _, tc := range []struct {
		lagging, streams int
		want             time.Duration
	}{
		{1, 1000, turnMax / 8},
		{250, 1000, turnMax / 8},
		{500, 1000, turnMax / 4},
		{1000, 1000, turnMax / 2},
		{1, 0, turnMax / 2}, // its last stream is closing
		{9, 1, turnMax},
	} {
		r.l.lagging, r.l.counts.streams = roster{}, tc.streams
		for range tc.lagging {
			r.l.lagging.add(&conn{})
		}
		if got := r.l.lookLeast(); got != tc.want {
			t.Errorf("%d of %d lagging: %v, want %v", tc.lagging, tc.streams, got, tc.want)
		}
	}
	r.l.lagging, r.l.counts.streams = roster{}, 0
}

// TestLookRest: a look that took long, because the loop had to wait for a CPU,
// does not keep it from the next one.
func TestLookRest(t *testing.T) {
	r := newRig(t, nil)
	r.open(1)
	r.dial().get("/events")
	r.produce(0, strings.Repeat("x", 900_000))
	r.settle()
	if r.l.lagging.len() != 1 {
		t.Fatal("it does not lag")
	}
	r.l.looking, r.l.lookCost = true, time.Second
	r.turn()
	if rest := r.l.lookDue - r.l.now; r.l.looking || rest > lookRestMax {
		t.Errorf("the next look comes in %v", rest)
	}
}

// TestLookSoon: behind a look that found sockets ready the next one comes soon,
// so that who catches up over a fast network is not held up; behind others
// there is a rest.
func TestLookSoon(t *testing.T) {
	r := newRig(t, nil)
	r.open(1)
	p := r.dial().get("/events")
	for range 50 {
		r.produce(0, strings.Repeat("x", 900_000))
	}
	r.settle()
	for range 10 {
		r.later(lookEvery)
		if rest := r.l.lookDue - r.l.now; rest < lookEvery {
			t.Fatalf("%v until the next look, and no socket took anything", rest)
		}
	}
	for tries := 0; ; tries++ { // a look may take long on a busy machine
		p.read()
		r.later(lookEvery)
		if r.l.lagging.len() != 1 || tries == 100 {
			t.Fatal("no look came soon")
		}
		if r.l.lookDue-r.l.now == lookSoon {
			return
		}
	}
}
