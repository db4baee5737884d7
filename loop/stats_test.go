package loop

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestObserve(t *testing.T) {
	const now = 1_000_000_000
	var n counts
	ago := []int64{0, 1, 2, 3, 5, 6, 999, 1000, 1001, 10_000, 10_001, 1 << 40}
	var times []int64
	for _, d := range ago {
		times = append(times, now-d)
	}
	times = append(times, -1, now+5) // no timestamp; from the future
	n.observe(times, now)
	// Bounds: 1 2 5 10 25 50 100 250 500 1000 2500 5000 10000. The last time is
	// below zero, and so none.
	want := []uint64{2, 1, 2, 1, 0, 0, 0, 0, 0, 2, 1, 0, 1, 1}
	if !slices.Equal(n.latency[:], want) {
		t.Errorf("got %v, want %v", n.latency, want)
	}
	if n.negative != 1 || n.latencySum != 0+1+2+3+5+6+999+1000+1001+10_000+10_001 {
		t.Errorf("negative %d, sum %d", n.negative, n.latencySum)
	}
	bounds := LatencyBounds()
	if len(bounds) != len(want)-1 || !slices.IsSorted(bounds) || bounds[0] != 0.001 || bounds[len(bounds)-1] != 10 {
		t.Errorf("bounds %v", bounds)
	}
}

func TestAnswered(t *testing.T) {
	var n counts
	n.answered(200)
	n.answered(505)
	n.answered(999)
	var s stats
	s.publishArrays(&n)
	if got := s.snapshot(time.Now()).Answers; got[200] != 1 || got[505] != 1 || got[400] != 1 {
		t.Errorf("got %v", got)
	}
}

// TestStats follows the counts of a server from the outside.
func TestStats(t *testing.T) {
	s := start(t, func(as *setup) { as.Loops = 2 })
	s.open(1)
	pages := []*page{s.page("HTTP/1.1", "/events"), s.page("HTTP/1.1", "/f0"), s.page("HTTP/1.1", "/events")}
	c := s.dial()
	c.send(req("GET /nope HTTP/1.1"))
	c.head()
	for i := range 10 {
		s.produce(0, strconv.Itoa(i))
		for _, p := range pages {
			p.next()
		}
	}
	pages[0].Close()
	eventually(t, "all is counted", func() bool {
		got := s.stats()
		return got.Connections == 3 && got.Streams == 2 && got.Lagging == 0 && got.Events == 30 &&
			got.Closed["peer"] == 1 && got.Answers[200] == 3 && got.Answers[404] == 1 &&
			sum(got.Latency) == 20 // once a record and loop
	})
	got := s.stats()
	if got.LatencySum < 0 || got.LatencySum > 20*5 || got.Bytes < 30*30 || got.Turns == 0 {
		t.Errorf("got %+v", got)
	}
	for i, l := range s.srv.Stats() {
		if age := time.Since(l.Turned); age < 0 || age > 5*time.Second {
			t.Errorf("loop %d turned %v ago", i, age)
		}
	}
	for _, why := range SlowReasons {
		if _, ok := got.Closed[why]; !ok {
			t.Errorf("%s is no close reason", why)
		}
	}
	if accepted, refused := s.srv.Accepted(); accepted != 4 || len(refused) != 6 {
		t.Errorf("accepted %d, refused %v", accepted, refused)
	}
}

// TestObservedWhenWritten: a record that comes while a pass runs is written to
// most streams by the next one, and is observed behind that.
func TestObservedWhenWritten(t *testing.T) {
	r := newRig(t, nil)
	r.open(1)
	r.crowd(3*clockEvery, "HTTP/1.1")
	r.settle()
	observed := func() uint64 { return sum(r.l.counts.latency[:]) + r.l.counts.negative }
	begin := observed()
	r.produce(0, "first")
	for _, reader := range r.l.box.Take(nil) {
		r.l.pass(reader)
	}
	s := r.l.passes[0]
	if r.l.slice(s) {
		t.Fatal("the pass is over too soon for this test")
	}
	r.produce(0, "second")
	r.l.runPasses()
	for len(r.l.passes) > 0 {
		r.l.runPasses()
	}
	if n := observed() - begin; n != 1 {
		t.Errorf("%d records are observed, and 1 is written to every stream", n)
	}
	r.settle()
	if n := observed() - begin; n != 2 {
		t.Errorf("then %d are observed", n)
	}
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestIdleTurns: a loop with nothing to do turns once a second, so that health
// checks see it alive.
func TestIdleTurns(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.srv.Stats()[0]
	eventually(t, "two turns without a reason", func() bool { return s.srv.Stats()[0].Turns >= first.Turns+2 })
	last := s.srv.Stats()[0].Turned
	if took := last.Sub(first.Turned); took < idleTurn/2 {
		t.Errorf("two turns took %v", took)
	}
	if !strings.Contains(last.String(), " m=") {
		t.Errorf("%v is a time by the machine's clock: when that is set forward, the loop would seem stuck", last)
	}
}
