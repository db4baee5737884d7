package hub

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
)

// ticks calls tick every tickEvery for d, from now on, and returns the new now.
func (g *rig) ticks(now time.Time, d time.Duration) time.Time {
	for end := now.Add(d); now.Before(end); {
		now = now.Add(tickEvery)
		g.feed.tick(now, nil)
	}
	return now
}

// beats counts the heartbeats in the log from place on.
func (g *rig) beats(place int64) int { return strings.Count(string(g.rest(place)), frame.Heartbeat) }

func TestHeartbeat(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	now := g.feed.beatAt
	beat := testOptions.Heartbeat

	now = g.ticks(now, beat-tickEvery)
	if n := g.beats(0); n != 0 {
		t.Fatalf("%d heartbeats before the silence was long enough", n)
	}
	g.box.Take(nil)
	wakes := g.wakes
	now = g.ticks(now, tickEvery)
	if n := g.beats(0); n != 1 || g.wakes != wakes+1 {
		t.Fatalf("%d heartbeats, %d wakes after %v of silence", n, g.wakes-wakes, beat)
	}
	now = g.ticks(now, 3*beat)
	if n := g.beats(0); n != 4 {
		t.Fatalf("%d heartbeats after %v", n, 4*beat)
	}

	// While records flow, even slowly, there is none.
	head := g.r.Head()
	for o := range int64(20) {
		produce(s, 0, o, o+1)
		now = g.ticks(now, beat-tickEvery)
	}
	if n := g.beats(head); n != 0 {
		t.Errorf("%d heartbeats among records", n)
	}
	now = g.ticks(now, tickEvery)
	if n := g.beats(head); n != 0 {
		t.Errorf("a heartbeat %v after a record", beat-tickEvery)
	}
	g.ticks(now, tickEvery)
	if n := g.beats(head); n != 1 {
		t.Errorf("%d heartbeats when the records stopped", n)
	}
	if n := g.feed.Snapshot().Stats.Heartbeat; n != 5 {
		t.Errorf("%d heartbeats are counted, want 5", n)
	}
}

// TestOffsetsWithoutRecordsAreSilence: nothing is written for them.
func TestOffsetsWithoutRecordsAreSilence(t *testing.T) {
	g := newRig(t, testOptions, "t")
	g.sinks[0].Open(topicID(1), parts(0))
	now := g.feed.beatAt
	for n := range int64(30) {
		g.sinks[0].Advance(0, n)
		g.sinks[0].Flush(nil)
		now = g.ticks(now, time.Second)
	}
	if n := g.beats(0); n != 2 {
		t.Errorf("%d heartbeats in 30 s", n)
	}
}

// TestWaitingStreamsAreMarked: a feed that is not open has no place for a
// heartbeat. Its loops are marked when one is due and at no other time,
// whatever its other topics do.
func TestWaitingStreamsAreMarked(t *testing.T) {
	g := newRig(t, testOptions, "a", "b")
	a, b := g.sinks[0], g.sinks[1]
	now := g.feed.beatAt
	marks := 0
	for i := range 90 {
		if i == 10 {
			a.Open(topicID(1), parts(0))
		}
		if i > 30 && i <= 60 {
			produce(a, 0, int64(i), int64(i+1))
		}
		now = g.ticks(now, tickEvery)
		marks += len(g.box.Take(nil))
	}
	if marks != 3 { // 45 s
		t.Errorf("marked %d times in 45 s", marks)
	}
	if n := g.beats(0); n != 0 || g.feed.Snapshot().Stats.Heartbeat != 0 {
		t.Errorf("%d heartbeats in the log", n)
	}
	b.Open(topicID(2), parts(0))
	if n := len(g.box.Take(nil)); n != 1 {
		t.Error("not marked when it opened")
	}
	produce(a, 0, 99, 100)
	if n := len(g.box.Take(nil)); n != 1 {
		t.Error("not marked by a record once open")
	}
}

// TestTrimIsNoGrowth: what a silent feed gives up does not put off its heartbeat.
func TestTrimIsNoGrowth(t *testing.T) {
	g := newRig(t, testOptions, "t")
	g.sinks[0].Open(topicID(1), parts(0))
	fillLog(g.sinks[0], 4)
	now := g.ticks(g.feed.beatAt, tickEvery)
	head := g.r.Head()
	for range int(testOptions.Heartbeat / (5 * time.Second)) {
		if !g.feed.dropOldest() {
			t.Fatal("nothing to give up")
		}
		now = g.ticks(now, 5*time.Second)
	}
	if n := g.beats(head); n != 1 {
		t.Errorf("%d heartbeats in %v", n, testOptions.Heartbeat)
	}
}

// fillLog appends records for n full segments.
func fillLog(s Sink, n int) {
	value := []byte(strings.Repeat("x", 8100))
	at := s.(*sink).feed.parts[0].next
	for i := range int64(n * 32) {
		s.Append(0, []frame.Record{{Offset: at + i, Value: value}})
	}
	s.Flush(nil)
}

func TestLagMark(t *testing.T) {
	g := newRig(t, testOptions, "t")
	g.sinks[0].Open(topicID(1), parts(0))
	now := g.feed.beatAt
	var heads []int64
	for i := range 40 {
		produce(g.sinks[0], 0, int64(i), int64(i+1))
		g.sinks[0].Append(1, []frame.Record{record(1, int64(i))}) // not published
		heads = append(heads, g.r.Head())
		now = g.ticks(now, tickEvery)
		want := int64(0)
		if ago := i - int(lagWindow/tickEvery); ago >= 0 {
			want = heads[ago]
		}
		if got := g.r.LagMark(); got != want {
			t.Fatalf("tick %d: the mark is %d, the head %v ago was %d", i, got, lagWindow, want)
		}
	}
	g.ticks(now, lagWindow+tickEvery)
	if g.r.LagMark() != g.r.Head() {
		t.Errorf("after a silence the mark is %d, the head %d", g.r.LagMark(), g.r.Head())
	}
}

// TestTotalCeiling: the feed with most bytes a subscriber gives up its oldest
// segments, those that hold one segment nothing.
func TestTotalCeiling(t *testing.T) {
	for _, c := range []struct {
		name    string
		total   int64 // segments
		size    []int // segments of each feed
		streams []int
		want    []int
	}{
		{"below the ceiling", 13, []int{8, 4, 1}, []int{0, 0, 0}, []int{8, 4, 1}},
		{"the largest", 11, []int{8, 4, 1}, []int{0, 0, 0}, []int{6, 4, 1}},
		{"the largest, then both", 5, []int{8, 4, 1}, []int{0, 0, 0}, []int{2, 2, 1}},
		{"the one with fewer streams", 11, []int{8, 4, 1}, []int{9, 0, 0}, []int{8, 2, 1}},
		{"both in the proportion of their streams", 5, []int{8, 8, 1}, []int{2, 0, 0}, []int{3, 1, 1}},
		{"not one with nothing to give", 5, []int{8, 4, 1}, []int{9, 9, 0}, []int{2, 2, 1}},
		{"what can't be kept", 1, []int{8, 4, 1}, []int{0, 0, 0}, []int{1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := NewMailbox(func() {})
			h := New(Options{LogBytes: 64 * segmentBytes, LogBytesTotal: c.total * segmentBytes, Heartbeat: time.Minute}, []*Mailbox{box})
			var feeds []*Feed
			for i, name := range []string{"a", "b", "c"} {
				f, sinks := openFeed(t, h, Spec{Topics: []string{name}})
				sinks[0].Open(topicID(1), parts(0))
				fillLog(sinks[0], c.size[i])
				r := f.Reader(box)
				for range c.streams[i] {
					r.Attached()
				}
				feeds = append(feeds, f)
			}
			h.trim(h.Feeds())
			var got []int
			for _, f := range feeds {
				s := f.Snapshot()
				got = append(got, int(s.LogBytes/segmentBytes))
				if place := f.index.entries.front().place; place != s.First {
					t.Errorf("the log begins at %d, the index at %d", s.First, place)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v segments are left, want %v", got, c.want)
			}
		})
	}
}

// TestIndexIsBounded: a log of tiny records gives up its oldest before the
// index outgrows it, and a position is good as far as both reach.
func TestIndexIsBounded(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	ceiling := int(testOptions.LogBytes / frameBytesMean)
	var most int
	var part int32
	var o [4]int64
	for i := range 4 * ceiling {
		part = int32(i / ceiling) // the partitions are busy one after the other
		s.Append(part, []frame.Record{{Offset: o[part]}})
		o[part]++
		most = max(most, g.feed.index.entries.len())
	}
	s.Flush(nil)
	if most > ceiling || most < ceiling/2 {
		t.Errorf("up to %d records in the index, ceiling %d", most, ceiling)
	}
	e := g.feed.index.entries.front()
	if first := g.feed.log.first; e.place != first {
		t.Errorf("the log begins at %d, the index at %d", first, e.place)
	}
	bytes := 32 * len(g.feed.index.entries.ring)
	for i := range g.feed.index.parts {
		bytes += 8 * len(g.feed.index.parts[i].ordinals.ring)
	}
	if int64(bytes) > testOptions.LogBytes*3/2 {
		t.Errorf("the index takes %d bytes beside a log of %d", bytes, testOptions.LogBytes)
	}
	base := g.feed.index.parts[3].base
	if at, _ := g.r.Attach(Start{Position: frame.Position{{Parts: parts(o[0], o[1], o[2], base)}}}, 0, nil); at.Resync != "" || at.Place != e.place {
		t.Errorf("before the oldest: %+v, want place %d", at, e.place)
	}
}

// TestLongPoll: a tail may append more than the log holds before it flushes.
// Its streams are woken while there is still time.
func TestLongPoll(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	g.box.Take(nil)
	place, got := int64(0), 0
	value := []byte(strings.Repeat("x", 5000))
	const records = 1000
	recs := make([]frame.Record, 1)
	for o := range int64(records) {
		recs[0] = frame.Record{Offset: o, Time: o, Value: value}
		s.Append(0, recs)
		if unread := g.feed.log.end - g.r.Head(); unread >= segmentBytes {
			t.Fatalf("%d bytes are not readable", unread)
		}
		for range g.box.Take(nil) {
			for b, ok := g.r.Read(place); len(b) > 0 || !ok; b, ok = g.r.Read(place) {
				if !ok {
					t.Fatalf("the log rolled over place %d", place)
				}
				place += int64(len(b))
			}
			got += len(g.r.Times(nil, g.r.Head()))
		}
	}
	if got == records || got < records-segmentBytes/5000-1 {
		t.Errorf("%d of %d records were read before the flush", got, records)
	}
	s.Flush(nil)
	if got += len(g.r.Times(nil, g.r.Head())); got != records || g.feed.Snapshot().First == 0 {
		t.Errorf("%d of %d records were read, the log begins at %d", got, records, g.feed.log.first)
	}
}

func TestTimes(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	at := int64(0)
	add := func(n int) {
		for range n {
			s.Append(0, []frame.Record{{Offset: at, Time: 1000 + at}})
			at++
		}
	}
	add(2)
	s.Flush(nil)
	late := g.feed.Reader(g.box) // has no part in what was readable before
	var told int64
	check := func(name string, r *Reader, want ...int64) {
		t.Helper()
		if got := r.Times([]int64{7}, r.Head()); !slices.Equal(got[1:], want) || got[0] != 7 {
			t.Errorf("%s: times %v, want %v", name, got[1:], want)
		}
	}
	check("the first two", g.r, 1000, 1001)
	check("again", g.r)
	add(2)
	check("not flushed", g.r)
	s.Flush(nil)
	check("flushed", g.r, 1002, 1003)
	check("another loop", late, 1002, 1003)

	// What comes while a loop writes is told when it is written.
	upTo := g.r.Head()
	add(1)
	s.Flush(nil)
	if got := g.r.Times(nil, upTo); len(got) != 0 {
		t.Errorf("not written yet: times %v", got)
	}
	check("written", g.r, 1004)

	// What left the log meanwhile is not told.
	told = at
	fillLog(s, 6)
	first := *g.feed.index.entries.front()
	got := g.r.Times(nil, g.r.Head())
	if want := int(g.feed.parts[0].next - first.offset); len(got) != want || first.offset <= told {
		t.Errorf("%d times, %d records are held", len(got), want)
	}
	at = g.feed.parts[0].next
	add(1)
	s.Lost(frame.Expired, nil, parts(at)) // nor what a new generation forgot
	check("a generation", g.r)
	add(1)
	s.Flush(nil)
	check("after it", g.r, 1000+at-1)
}

func TestRecordsAndBoundary(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	produce(s, 0, 0, 2)
	g.ticks(g.feed.beatAt, tickEvery)
	g.ticks(g.feed.beatAt, testOptions.Heartbeat) // a frame of no record
	produce(s, 0, 2, 3)
	var begin []int64
	for place := int64(0); place < g.r.Head(); {
		begin = append(begin, place)
		b, _ := g.r.Read(place)
		place += int64(frame.Len(b))
	}
	if len(begin) != 4 || g.beats(0) != 1 {
		t.Fatalf("frames at %v, %d heartbeats", begin, g.beats(0))
	}
	head := g.r.Head()
	for _, c := range []struct {
		from, to int64
		want     int
	}{
		{0, head, 3},
		{0, 0, 0},
		{0, 1, 1},
		{1, begin[1], 0},
		{1, begin[1] + 1, 1},
		{begin[1], begin[3], 1},
		{begin[2], begin[3], 0},
		{begin[3], head, 1},
		{begin[3] + 1, head, 0},
	} {
		if got := g.r.Records(c.from, c.to); got != c.want {
			t.Errorf("%d records begin from %d to %d, want %d (frames at %v)", got, c.from, c.to, c.want, begin)
		}
	}
	for _, c := range []struct{ place, want int64 }{
		{0, 0},
		{1, begin[1]},
		{begin[1], begin[1]},
		{begin[2], begin[3]}, // a heartbeat is nothing to stop before
		{begin[2] + 1, begin[3]},
		{begin[3] + 1, head},
		{head, head},
	} {
		if got := g.r.Boundary(c.place); got != c.want {
			t.Errorf("the boundary from %d on is %d, want %d (frames at %v)", c.place, got, c.want, begin)
		}
	}
}
