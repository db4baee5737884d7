package hub

import (
	"testing"

	"tailcast/frame"
)

// TestWarm: a log is filled before its streams are placed; they start behind
// what it was filled with, and ids from before find their place in it.
func TestWarm(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Warm(topicID(1), parts(5, frame.Unknown))
	if at, _ := g.r.Attach(Start{}, 1000, nil); !at.Waiting || g.feed.IsOpen() {
		t.Fatalf("placed at %+v, open %v", at, g.feed.IsOpen())
	}
	produce(s, 0, 5, 8)
	s.Advance(0, 9)
	s.Flush(nil)
	if g.wakes != 0 {
		t.Errorf("%d wakes while its streams wait", g.wakes)
	}
	s.Open(topicID(1), parts(9, 4))
	if !g.feed.IsOpen() || g.wakes != 1 {
		t.Fatalf("open %v with %d wakes", g.feed.IsOpen(), g.wakes)
	}
	T := tagOf("t", 1)
	if got, want := g.latest(), "v1:0-8.1-3"+T; got != want {
		t.Errorf("latest is at %s, want %s", got, want)
	}
	head := g.r.Head()
	produce(s, 0, 9, 10)
	if got := g.values(head); got != "0/9" {
		t.Errorf("behind the place of latest is %q", got)
	}
	at, _ := g.resume("v1:0-5.1-3" + T)
	if got := g.goesOn(at); at.Resync != "" || got != "0/6 0/7 then 0/9" { // the ids of 6 and 7 don't know partition 1
		t.Errorf("goes on with %q (resync %q)", got, at.Resync)
	}
}

// TestRecreatedWhileWarm: what was filled is of another topic; its positions
// hold nothing of it.
func TestRecreatedWhileWarm(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Warm(topicID(1), parts(5))
	produce(s, 0, 5, 8)
	s.Recreated(topicID(2), parts(0))
	if g.feed.IsOpen() || g.wakes != 0 {
		t.Errorf("open %v with %d wakes", g.feed.IsOpen(), g.wakes)
	}
	s.Open(topicID(2), parts(0))
	produce(s, 0, 0, 2)
	if got, want := g.latest(), "v1:0-1"+tagOf("t", 2); got != want {
		t.Errorf("latest is at %s, want %s", got, want)
	}
	if at, _ := g.resume("v1:" + tagOf("t", 2)); at.Resync != "" || g.values(at.Place) != "0/0 0/1" {
		t.Errorf("goes on with %q (resync %q)", g.values(at.Place), at.Resync)
	}
}
