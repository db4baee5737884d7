package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
)

// tagOf is the suffix of a topic in ids.
func tagOf(name string, n byte) string {
	tag := frame.MakeTag(name, topicID(n))
	return "~" + string(tag.Name[:]) + string(tag.ID[:])
}

// TestResume: a topic of four partitions. 0 has records 0 to 4; all of 1 have
// expired (it starts and ends at 500); 2 is empty; 3 has 10 and 11, older ones
// have expired.
func TestResume(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0, 500, 0, 10))
	if got, want := g.latest(), "v1:1-499.3-9"+tagOf("t", 1); got != want {
		t.Fatalf("the first position is %s, want %s", got, want)
	}
	produce(s, 0, 0, 2)
	produce(s, 3, 10, 11)
	produce(s, 0, 2, 3)
	produce(s, 3, 11, 12)
	produce(s, 0, 3, 5)

	T := tagOf("t", 1)
	end := "v1:0-4.1-499.3-11" + T
	for _, c := range []struct {
		name, id string
		want     string // the records that follow; a resync's reason is in brackets
		first    string // the id of the first block, if not id
	}{
		{"at the end", end, "", ""},
		{"before the last", "v1:0-3.1-499.3-11" + T, "0/4", ""},
		{"before the last two", "v1:0-2.1-499.3-11" + T, "0/3 0/4", ""},
		{"before the last of another partition", "v1:0-2.1-499.3-10" + T, "3/11 0/3 0/4", ""},
		{"in the middle", "v1:0-1.1-499.3-10" + T, "0/2 3/11 0/3 0/4", ""},
		{"behind one of two that follow each other", "v1:0-0.1-499.3-9" + T, "0/1 3/10 0/2 3/11 0/3 0/4", ""},
		{"at the start", "v1:1-499.3-9" + T, "0/0 0/1 3/10 0/2 3/11 0/3 0/4", ""},
		{"has 3/10 without 0/1", "v1:0-0.1-499.3-10" + T, "0/1 then 0/2 3/11 0/3 0/4", ""},
		{"has 0/4 without 3/11", "v1:0-4.1-499.3-10" + T, "3/11 then ", ""},
		{"expired by one", "v1:0-4.1-499.3-8" + T, "[unknown]", end},
		{"long expired", "v1:0-4.1-2.3-11" + T, "[unknown]", end},
		{"knows no partition that starts above 0", "v1:" + T, "[unknown]", end},
		{"lacks one that starts above 0", "v1:0-4.3-11" + T, "[unknown]", end},
		{"ahead by one", "v1:0-5.1-499.3-11" + T, " waits", ""},
		{"ahead in the empty one", "v1:0-4.1-499.2-0.3-11" + T, " waits", ""},
		{"knows a partition more", "v1:0-4.1-499.3-11.4-7" + T, " waits", ""},
		{"knows an unknown partition more", "v1:0-4.1-499.3-11.4-*" + T, "", end},
		{"unknown in one", "v1:0-*.1-499.3-11" + T, "", end},
		{"unknown in an empty one", "v1:0-4.1-499.2-*.3-11" + T, "", end},
		{"unknown in the others", "v1:0-3.1-*.3-*" + T, "0/4", "v1:0-3.1-499.3-11" + T},
		{"no tag", "v1:0-3.1-499.3-11", "0/4", "v1:0-3.1-499.3-11" + T},
		{"no topic id", "v1:0-3.1-499.3-11" + T[:3], "0/4", "v1:0-3.1-499.3-11" + T},
		{"another topic", "v1:0-3.1-499.3-11" + tagOf("u", 1), "[unknown]", end},
		{"another topic's name alone", "v1:0-3.1-499.3-11" + tagOf("u", 1)[:3], "[unknown]", end},
		{"created again", "v1:0-3.1-499.3-11" + tagOf("t", 2), "[recreated]", end},
		{"this topic twice", "v1:0-3.1-499.3-11" + T + ",0-4.1-499.3-11" + T, "[unknown]", end},
		{"this topic and another", "v1:0-3.1-499.3-11" + T + "," + tagOf("u", 1), "[unknown]", end},
		{"a group without a tag beside it", "v1:0-3.1-499.3-11" + T + ",0-4", "[unknown]", end},
	} {
		started := g.feed.Snapshot().Stats
		before := started.Resyncs
		at, first := g.resume(c.id)
		got := g.goesOn(at)
		if at.Resync != "" {
			got = strings.TrimSpace("[" + string(at.Resync) + "] " + got)
		}
		if got != c.want {
			t.Errorf("%s: %s goes on with %q, want %q", c.name, c.id, got, c.want)
			continue
		}
		want := c.first
		if want == "" {
			want = c.id
		}
		if id, _, _ := strings.Cut(first, "\n"); id != "id: "+want {
			t.Errorf("%s: the first block has %q, want %s", c.name, id, want)
		}
		if behind := c.want != "" && at.Resync == "" && at.Own == nil; at.Behind != behind || at.Waiting {
			t.Errorf("%s: behind %v, waiting %v, want %v, false", c.name, at.Behind, at.Waiting, behind)
		}
		stats := g.feed.Snapshot().Stats
		if counted := stats.Behind - started.Behind; counted != 0 != at.Behind || counted > 1 {
			t.Errorf("%s: behind %v, counted %d times", c.name, at.Behind, counted)
		}
		after := stats.Resyncs
		if at.Resync != "" && after[at.Resync] != before[at.Resync]+1 || at.Resync == "" && fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: resyncs went from %v to %v", c.name, before, after)
		}
	}
}

// TestResumeFromEveryID: the id of each event selects the place behind it, also
// when it was given for an event that is not flushed yet.
func TestResumeFromEveryID(t *testing.T) {
	g := newRig(t, testOptions, "a", "b")
	g.sinks[0].Open(topicID(1), parts(0, 7, 0))
	g.sinks[1].Open(topicID(2), parts(3))
	next := []int64{0, 7, 0}
	for i := range 60 {
		p := i * i % 3
		if i%7 == 0 {
			produce(g.sinks[1], 0, int64(3+i), int64(4+i))
			continue
		}
		g.sinks[0].Append(int32(p), []frame.Record{record(int32(p), next[p])})
		next[p]++
	}
	unflushed := g.feed.log.end - g.r.Head()
	if unflushed == 0 {
		t.Fatal("every event is flushed")
	}
	latest := g.latest()
	at, _ := g.resume(latest)
	if at.Place != g.feed.log.end || at.Behind {
		t.Errorf("the position of latest is placed at %d of %d", at.Place, g.feed.log.end)
	}
	for _, s := range g.sinks {
		s.Flush(nil)
	}
	all := events(t, g.rest(0))
	for i, e := range all {
		at, _ := g.resume(e.LastEventID)
		if got, want := len(events(t, g.rest(at.Place))), len(all)-i-1; got != want || at.Resync != "" {
			t.Errorf("after event %d, %s: %d events follow, want %d (resync %q)", i, e.LastEventID, got, want, at.Resync)
		}
	}
	if last := all[len(all)-1].LastEventID; last != latest {
		t.Errorf("latest said %s, the last event %s", latest, last)
	}
}

func TestResumeDoesNotChangeThePosition(t *testing.T) {
	g := newRig(t, testOptions, "t")
	g.sinks[0].Open(topicID(1), parts(5, 6))
	pos := id(t, "v1:0-*.1-5"+tagOf("t", 1))
	for range 2 {
		g.r.Attach(Start{Position: pos}, 0, nil)
		if got := string(frame.AppendID(nil, pos)); got != "v1:0-*.1-5"+tagOf("t", 1) {
			t.Fatalf("Attach made %s of its caller's position", got)
		}
	}
}

// TestPartitionWithoutLeader: where the node does not know a position, it says
// so; who does know keeps it.
func TestPartitionWithoutLeader(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	T := tagOf("t", 1)
	s.Open(topicID(1), parts(5, frame.Unknown))
	if got := g.latest(); got != "v1:0-4.1-*"+T {
		t.Fatalf("latest is at %s", got)
	}
	for _, c := range []struct {
		id, want string
		resync   frame.Reason
	}{
		{"v1:0-4.1-*" + T, "v1:0-4.1-*" + T, ""},
		{"v1:0-4.1-9" + T, "v1:0-4.1-9" + T, ""}, // keeps its place in 1 until a leader answers
		{"v1:0-4" + T, "v1:0-4" + T, ""},         // wants all of 1
	} {
		if at, first := g.resume(c.id); at.Resync != c.resync || !strings.HasPrefix(first, "id: "+c.want+"\n") {
			t.Errorf("%s: resync %q, first block %q, want %q, %s", c.id, at.Resync, first, c.resync, c.want)
		}
	}
	s.Advance(1, 10) // a leader answers
	produce(s, 1, 10, 12)
	for _, c := range []struct {
		id, want string
		resync   frame.Reason
	}{
		{"v1:0-4.1-9" + T, "1/10 1/11", ""},
		{"v1:0-4.1-10" + T, "1/11", ""},
		{"v1:0-4.1-*" + T, "", ""},
		{"v1:0-4.1-8" + T, "", frame.UnknownID},
	} {
		at, _ := g.resume(c.id)
		if got := g.values(at.Place); at.Resync != c.resync || got != c.want {
			t.Errorf("%s: goes on with %q, resync %q, want %q, %q", c.id, got, at.Resync, c.want, c.resync)
		}
	}
	if got := g.latest(); got != "v1:0-4.1-11"+T {
		t.Errorf("latest is at %s", got)
	}
}

// TestKnownPositionIsKept: a stream that knows where it is in a partition never
// gets an id that does not, neither while this node has no leader to ask nor
// from frames of that time: resumed with it, the stream would leave out what it
// had not got.
//
// It happened on real brokers, whose partitions have no leader for seconds
// when one is killed; the ones of this process always have one.
func TestKnownPositionIsKept(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	T := tagOf("t", 1)
	s.Open(topicID(1), parts(5, frame.Unknown))
	produce(s, 0, 5, 8)
	for _, c := range []struct {
		id    string
		known bool
	}{
		{"v1:0-4.1-9" + T, false},
		{"v1:0-4" + T, false}, // wants all of 1
		{"v1:0-4.1-9" + T, true},
		{"v1:0-5.1-9" + T, true},
		{"v1:0-7.1-9" + T, true},
	} {
		if c.known {
			s.Advance(1, 10) // a leader answers
			produce(s, 1, 10, 11)
		}
		at, _ := g.resume(c.id)
		var got string
		if at.Own != nil {
			b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
			if got = string(b); state == OwnShared {
				got += string(g.rest(at.Own.Place()))
			} else if c.known {
				t.Errorf("%s: state %v", c.id, state)
			}
			at.Own.Close()
		} else {
			got = string(g.rest(at.Place))
		}
		all := events(t, []byte(got))
		if len(all) == 0 {
			t.Errorf("%s: nothing comes", c.id)
		}
		for _, e := range all {
			if strings.Contains(e.LastEventID, "*") {
				t.Errorf("%s: got event %+v", c.id, e)
			}
		}
	}
}

// TestPartitionTheIDDoesNotKnow: it was made after the id, so the stream gets
// all of it, as long as the log has all of it.
func TestPartitionTheIDDoesNotKnow(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(100, 100))
	produce(s, 0, 100, 102)
	old := g.latest()
	s.Advance(3, 0)
	s.Advance(2, 0)
	produce(s, 2, 0, 2)
	produce(s, 0, 102, 103)
	produce(s, 3, 0, 1)

	at, first := g.resume(old)
	if got := g.values(at.Place); at.Resync != "" || got != "2/0 2/1 0/102 3/0" {
		t.Errorf("%s goes on with %q (resync %q)", old, got, at.Resync)
	}
	if first != "id: "+old+"\n\n" {
		t.Errorf("the first block is %q", first)
	}

	for o := int64(103); g.feed.index.parts[2].base != 1; o++ { // until the log has lost 2/0
		produce(s, 0, o, o+1)
	}
	if at, _ := g.resume(old); at.Resync != frame.UnknownID {
		t.Errorf("%s, with 2/0 out of the log: resync %q", old, at.Resync)
	}
}

// TestResumeFallsOutOfTheLog: a position is good for as long as everything
// behind it is held, to the record.
func TestResumeFallsOutOfTheLog(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	value := []byte(strings.Repeat("x", 20_000))
	for o := range int64(200) {
		s.Append(0, []frame.Record{{Offset: o, Value: value}})
	}
	s.Flush(nil)
	base := g.feed.index.parts[0].base
	if base == 0 {
		t.Fatal("nothing fell out of the log")
	}
	T := tagOf("t", 1)
	if at, _ := g.resume(fmt.Sprintf("v1:0-%d%s", base-1, T)); at.Resync != "" || at.Place != g.feed.log.first {
		t.Errorf("before the oldest record: place %d, resync %q, want %d", at.Place, at.Resync, g.feed.log.first)
	}
	if at, _ := g.resume(fmt.Sprintf("v1:0-%d%s", base-2, T)); at.Resync != frame.UnknownID || at.Place != g.feed.log.end {
		t.Errorf("one before that: place %d, resync %q", at.Place, at.Resync)
	}
}

func TestSeveralTopics(t *testing.T) {
	g := newRig(t, testOptions, "a", "b", "c")
	A, B, C := tagOf("a", 1), tagOf("b", 2), tagOf("c", 3)
	g.sinks[0].Open(topicID(1), parts(0))
	g.sinks[1].Open(topicID(2), parts(10))
	g.sinks[2].Open(topicID(3), parts(20))
	produce(g.sinks[0], 0, 0, 2)
	produce(g.sinks[1], 0, 10, 12)
	produce(g.sinks[2], 0, 20, 22)
	end := "v1:0-1" + A + ",0-11" + B + ",0-21" + C

	for _, c := range []struct {
		name, id string
		want     string
		first    string
		resync   frame.Reason
	}{
		{"at the end", end, "", end, ""},
		{"in the feed's order", "v1:0-1" + A + ",0-10" + B + ",0-19" + C, "0/11 0/20 0/21", "", ""},
		{"in another order", "v1:0-19" + C + ",0-1" + A + ",0-10" + B, "0/11 0/20 0/21", "v1:0-1" + A + ",0-10" + B + ",0-19" + C, ""},
		{"from the beginning of one", "v1:" + A + ",0-9" + B + ",0-19" + C, "0/0 0/1 0/10 0/11 0/20 0/21", "", ""},
		{"lacks a topic, which is at its end", "v1:0-1" + A + ",0-11" + B, "", end, ""},
		{"lacks a topic, which has records behind the others' place", "v1:0-1" + A + ",0-10" + B, "0/11 then ", "v1:0-1" + A + ",0-10" + B + ",0-21" + C, ""},
		{"lacks the topics before", "v1:0-20" + C, "0/21", "v1:0-1" + A + ",0-11" + B + ",0-20" + C, ""},
		{"no tag", "v1:0-1", "", end, frame.UnknownID},
		{"a topic more", "v1:0-1" + A + ",0-11" + B + ",0-21" + C + ",0-1" + tagOf("d", 4), "", end, frame.UnknownID},
		{"one created again", "v1:0-1" + A + ",0-11" + tagOf("b", 9) + ",0-21" + C, "", end, frame.Recreated},
		{"a partition of another topic", "v1:0-1" + A + ",0-11.1-0" + B + ",0-21" + C, " waits", "", ""},
	} {
		at, first := g.resume(c.id)
		if c.first == "" {
			c.first = c.id
		}
		if got := g.goesOn(at); at.Resync != c.resync || got != c.want || !strings.HasPrefix(first, "id: "+c.first+"\n") {
			t.Errorf("%s: goes on with %q, resync %q, first block %q; want %q, %q, %s", c.name, got, at.Resync, first, c.want, c.resync, c.first)
		}
	}
}

func TestFirstBlock(t *testing.T) {
	g := newRig(t, testOptions, "t")
	attach := func(s Start, retry int) string {
		_, b := g.r.Attach(s, retry, []byte("head|"))
		rest, ok := strings.CutPrefix(string(b), "head|")
		if !ok {
			t.Fatalf("Attach does not append: %q", b)
		}
		return blocks([]byte(rest))
	}
	old := Start{Position: id(t, "v1:0-3"+tagOf("t", 1))}
	lost := Start{Position: id(t, "v1:0-1"+tagOf("t", 1))}
	anew := Start{Position: id(t, "v1:0-1"+tagOf("t", 2))}
	want := func(name, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}

	want("not open", attach(old, 2500), "retry: 2500\n:\n")
	want("still not open", attach(old, 0), "")
	if at, _ := g.r.Attach(old, 2500, nil); !at.Waiting || at.Behind || at.Resync != "" {
		t.Errorf("not open: %+v", at)
	}
	g.sinks[0].Open(topicID(1), parts(4))
	produce(g.sinks[0], 0, 4, 6)
	mine, node := "id: v1:0-3"+tagOf("t", 1)+"\n", "id: v1:0-5"+tagOf("t", 1)+"\n"
	resync := func(reason string) string {
		return node + "event: resync\ndata: {\"reason\":\"" + reason + "\",\"topics\":{}}\n\n"
	}
	want("latest", attach(Start{}, 1500), "retry: 1500\n"+node+"\n")
	want("latest that waited", attach(Start{}, 0), node+"\n")
	want("resumed", attach(old, 1500), "retry: 1500\n"+mine+"\n")
	want("resumed that waited", attach(old, 0), mine+"\n")
	want("lost", attach(lost, 1500), "retry: 1500\n"+resync("unknown"))
	want("lost that waited", attach(lost, 0), resync("unknown"))
	want("created again", attach(anew, 1500), "retry: 1500\n"+resync("recreated"))
	want("foreign", attach(Start{Foreign: true}, 1500), "retry: 1500\n"+resync("unknown"))
	if at, _ := g.r.Attach(Start{Foreign: true}, 0, nil); at.Resync != frame.UnknownID || at.Behind || at.Place != g.r.Head() {
		t.Errorf("foreign: %+v", at)
	}
}

// TestPersonalWithoutHistory: a personal stream may come to lack what the log
// does not hold. Where nothing else can be read, it is told so.
func TestPersonalWithoutHistory(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(s Sink)
	}{
		{"expired", func(s Sink) { s.Lost(frame.Expired, nil, parts(500, 500)) }},
		{"out of the log", func(s Sink) { fillLog(s, 6) }},
	} {
		g := newRig(t, testOptions, "t")
		s := g.sinks[0]
		s.Open(topicID(1), parts(5, 5))
		produce(s, 0, 5, 6)
		produce(s, 1, 5, 6)
		at, _ := g.resume("v1:0-4.1-5" + tagOf("t", 1))
		if at.Own == nil {
			t.Fatal("there is one place for the position")
		}
		c.lose(s)
		now := g.latest()
		b, state := at.Own.Step(nil, 1<<20, g.feed.beatAt)
		all := events(t, b)
		if state != OwnMore || len(all) != 1 || all[0].Type != "resync" || all[0].LastEventID != now {
			t.Errorf("%s: state %d, events %+v, want a resync at %s", c.name, state, all, now)
			continue
		}
		if b, state = at.Own.Step(nil, 1<<20, g.feed.beatAt); state != OwnShared || len(b) != 0 || at.Own.Place() != g.r.Head() {
			t.Errorf("%s: state %d, %q, place %d, head %d", c.name, state, b, at.Own.Place(), g.r.Head())
		}
		at.Own.Close()
	}
}

// TestWhoHasGoneIsNotCounted: a feed wakes its loops twice a second for streams
// that look at the time, and for nobody once these are gone.
func TestWhoHasGoneIsNotCounted(t *testing.T) {
	g := newRig(t, testOptions, "t")
	g.sinks[0].Open(topicID(1), parts(10))
	at, _ := g.resume("v1:0-11" + tagOf("t", 1)) // ahead of this node
	g.r.Watched()
	now := time.Unix(1000, 0)
	for _, step := range []struct {
		leave func()
		marks int
	}{{func() {}, 1}, {at.Own.Close, 1}, {g.r.Unwatched, 0}} {
		step.leave()
		g.box.Take(nil)
		now = now.Add(tickEvery)
		g.feed.tick(now, nil)
		if got := len(g.box.Take(nil)); got != step.marks {
			t.Errorf("with %d personal streams, and %d that look at the time, it marks %d loops", g.feed.owns.Load(), g.feed.timed.Load(), got)
		}
	}
	if n := g.feed.owns.Load(); n != 0 {
		t.Errorf("%d personal streams are counted", n)
	}
}
