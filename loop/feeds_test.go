package loop

import (
	"fmt"
	"testing"
)

// TestWakeTouchesDirtyFeeds: of many feeds a turn walks the streams of those
// that have something new, whatever the number of the others.
func TestWakeTouchesDirtyFeeds(t *testing.T) {
	const feeds = 300
	r := newRig(t, func(as *setup) { as.feeds = feeds })
	peers := make([]*peer, feeds)
	for i, tl := range r.tails {
		tl.open(1)
		peers[i] = r.dial().get(fmt.Sprint("/f", i))
	}
	r.settle()
	for _, dirty := range [][]int{{}, {0}, {feeds - 1}, {7, 8, 9, 150, 151}} {
		for _, s := range r.l.feeds {
			s.beatAt = 0 // the beginning of a pass sets it
		}
		events := r.l.counts.events
		for _, i := range dirty {
			r.tails[i].produce(0, "one", "two")
			r.tails[i].produce(0, "three")
		}
		r.turn()
		var walked int
		for _, s := range r.l.feeds {
			if s.beatAt != 0 {
				walked++
			}
		}
		if walked != len(dirty) {
			t.Errorf("feeds %v have something new, and %d were walked", dirty, walked)
		}
		if got := r.l.counts.events - events; got != uint64(3*len(dirty)) {
			t.Errorf("feeds %v: %d events, want three of each", dirty, got)
		}
		for _, i := range dirty {
			if got := peers[i].data(); got != "one two three" {
				t.Errorf("feed %d: got %q", i, got)
			}
		}
		if r.l.waker.awake.Load() {
			t.Errorf("feeds %v: the loop is to be woken again", dirty)
		}
	}
}
