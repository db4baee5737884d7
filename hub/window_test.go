package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"tailcast/frame"
)

const testWindow = 20 * time.Millisecond

// windowed runs f with a feed that has a flush window, and wakes that were taken.
func windowed(t *testing.T, f func(t *testing.T, g *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions
		opts.FlushWindow = testWindow
		g := newRig(t, opts, "t")
		g.sinks[0].Open(topicID(1), parts(0))
		g.box.Take(nil)
		g.wakes = 0
		f(t, g)
	})
}

// after lets time pass and returns how many wakes there were, taking the marks.
func (g *rig) after(d time.Duration) int {
	<-time.After(d) // by the test's own clock
	synctest.Wait()
	n := g.wakes
	g.wakes = 0
	g.box.Take(nil)
	return n
}

func TestFlushWindowGathersWakes(t *testing.T) {
	windowed(t, func(t *testing.T, g *rig) {
		for o := range int64(10) { // two milliseconds apart: two windows
			produce(g.sinks[0], 0, o, o+1)
			if got := len(events(t, g.rest(0))); got != int(o+1) {
				t.Fatalf("%d events are readable after %d", got, o+1)
			}
			if o == 9 {
				break
			}
			if n := g.after(2 * time.Millisecond); n != 0 {
				t.Fatalf("%d wakes within the window", n)
			}
		}
		if n := g.after(testWindow - 18*time.Millisecond); n != 1 {
			t.Errorf("%d wakes at the end of the window, want 1", n)
		}
		if n := g.after(time.Second); n != 0 {
			t.Errorf("%d wakes behind it", n)
		}
		produce(g.sinks[0], 0, 10, 11)
		if n := g.after(testWindow - 1); n != 0 {
			t.Errorf("%d wakes before the next window's end", n)
		}
		if n := g.after(1); n != 1 {
			t.Errorf("%d wakes at the next window's end", n)
		}
	})
}

func TestFlushWindowHoldsUpNothingElse(t *testing.T) {
	for name, do := range map[string]func(g *rig){
		"a heartbeat": func(g *rig) {
			g.feed.tick(g.feed.beatAt, nil) // takes note of the record
			g.feed.tick(g.feed.beatAt.Add(testOptions.Heartbeat), nil)
		},
		"a resync": func(g *rig) {
			g.sinks[0].Lost(frame.Expired, []frame.Range{{Topic: "t", From: 1, To: 2}}, parts(3))
		},
		"a segment of records": func(g *rig) {
			for o := int64(1); g.r.Head() < segmentBytes; o += 100 {
				produce(g.sinks[0], 0, o, o+100)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			windowed(t, func(t *testing.T, g *rig) {
				produce(g.sinks[0], 0, 0, 1)
				do(g)
				if g.wakes != 1 {
					t.Errorf("%d wakes at once, want 1", g.wakes)
				}
				if n := g.after(0); n != 1 {
					t.Errorf("%d wakes", n)
				}
				if n := g.after(time.Second); n != 0 && name != "a segment of records" {
					t.Errorf("%d wakes for what was told already", n)
				}
			})
		})
	}
}

func TestFlushWindowOfAnEndedFeed(t *testing.T) {
	windowed(t, func(t *testing.T, g *rig) {
		produce(g.sinks[0], 0, 0, 1)
		g.feed.mu.Lock()
		g.feed.ended = true
		g.feed.mu.Unlock()
		if n := g.after(time.Second); n != 0 {
			t.Errorf("%d wakes", n)
		}
	})
}
