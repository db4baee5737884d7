package hub

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
)

// TestTopicAppearsLater: a topic that does not exist is open without id and
// partitions; when it appears, streams from before get all of it.
func TestTopicAppearsLater(t *testing.T) {
	g := newRig(t, testOptions, "a", "b")
	a, b := g.sinks[0], g.sinks[1]
	a.Open(topicID(1), parts(5))
	if g.feed.IsOpen() {
		t.Fatal("open before its second topic")
	}
	b.Open(frame.TopicID{}, nil)
	if !g.feed.IsOpen() || g.wakes != 1 {
		t.Fatalf("open %v with %d wakes", g.feed.IsOpen(), g.wakes)
	}
	old := g.latest()
	if want := "v1:0-4" + tagOf("a", 1) + "," + tagOf("b", 2)[:3]; old != want {
		t.Fatalf("latest is at %s, want %s", old, want)
	}
	head := g.r.Head()
	produce(a, 0, 5, 6)
	b.Open(topicID(2), parts(0, 0))
	produce(b, 1, 0, 2)
	produce(b, 0, 0, 1)

	all := events(t, g.rest(head))
	if got, want := all[len(all)-1].LastEventID, "v1:0-5"+tagOf("a", 1)+",0-0.1-1"+tagOf("b", 2); got != want {
		t.Errorf("the last id is %s, want %s", got, want)
	}
	for from, want := range map[string]string{old: "0/5 1/0 1/1 0/0", all[0].LastEventID: "1/0 1/1 0/0"} {
		at, _ := g.resume(from)
		if got := g.values(at.Place); at.Resync != "" || got != want {
			t.Errorf("%s goes on with %q (resync %q), want %q", from, got, at.Resync, want)
		}
	}
	// A node that has not seen the topic yet lets one who has wait for it.
	young := newRig(t, testOptions, "a", "b")
	young.sinks[0].Open(topicID(1), parts(6))
	young.sinks[1].Open(frame.TopicID{}, nil)
	at, _ := young.resume(g.latest())
	if at.Own == nil || at.Resync != "" {
		t.Fatalf("placed at %+v", at)
	}
	defer at.Own.Close()
	if b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0)); state != OwnIdle || len(b) > 0 {
		t.Errorf("got %q, state %d", b, state)
	}
}

// TestOpenAgain moves no position back.
func TestOpenAgain(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(5, frame.Unknown, 7))
	s.Open(topicID(1), parts(3, 8, 9))
	if got, want := g.latest(), "v1:0-4.1-7.2-8"+tagOf("t", 1); got != want {
		t.Fatalf("latest is at %s, want %s", got, want)
	}
	if g.wakes != 1 {
		t.Errorf("%d wakes", g.wakes)
	}
	// Partitions ascend in ids, in whatever order they became known.
	s.Advance(9, 1)
	s.Advance(4, 2)
	s.Open(topicID(1), []frame.Partition{{ID: 6, Next: 3}, {ID: 3, Next: 4}})
	if got, want := g.latest(), "v1:0-4.1-7.2-8.3-3.4-1.6-2.9-0"+tagOf("t", 1); got != want {
		t.Fatalf("latest is at %s, want %s", got, want)
	}
}

func TestLost(t *testing.T) {
	for _, c := range []struct {
		reason frame.Reason
		next   int64
		lost   frame.Range
		data   string
		after  string // values behind the resync
	}{
		{frame.Expired, 500, frame.Range{Topic: "t", Partition: 1, From: 12, To: 499}, `{"reason":"expired","topics":{"t":[{"partition":1,"from":12,"to":499}]}}`, "1/500 1/501 0/7"},
		{frame.Truncated, 11, frame.Range{Topic: "t", Partition: 1, From: 11, To: -1}, `{"reason":"truncated","topics":{"t":[{"partition":1,"from":11,"to":null}]}}`, "1/11 1/12 0/7"},
	} {
		t.Run(string(c.reason), func(t *testing.T) {
			g := newRig(t, testOptions, "t")
			s := g.sinks[0]
			T := tagOf("t", 1)
			s.Open(topicID(1), parts(5, 10))
			produce(s, 0, 5, 7)
			produce(s, 1, 10, 12)
			g.r.Attached()
			g.r.Attached()
			g.box.Take(nil)
			wakes, head := g.wakes, g.r.Head()

			s.Lost(c.reason, []frame.Range{c.lost}, []frame.Partition{{ID: 1, Next: c.next}})
			if g.wakes != wakes+1 {
				t.Errorf("%d wakes without a flush", g.wakes-wakes)
			}
			produce(s, 1, c.next, c.next+2)
			produce(s, 0, 7, 8)

			now := fmt.Sprintf("v1:0-6.1-%d%s", c.next-1, T)
			all := events(t, g.rest(head))
			if e := all[0]; e.Type != "resync" || e.Data != c.data || e.LastEventID != now {
				t.Errorf("the streams get %+v, want %s, %s", e, c.data, now)
			}
			if at, _ := g.resume(now); at.Resync != "" || g.values(at.Place) != c.after {
				t.Errorf("%s goes on with %q (resync %q), want %q", now, g.values(at.Place), at.Resync, c.after)
			}
			if got := g.feed.Snapshot().Stats.Resyncs[c.reason]; got != 2 {
				t.Errorf("%d resyncs are counted for 2 streams", got)
			}
			// A position from before can't be told from one that lost records.
			for _, old := range []string{"v1:0-6.1-9" + T, fmt.Sprintf("v1:0-5.1-%d%s", c.next-1, T)} {
				if at, _ := g.resume(old); at.Resync != frame.UnknownID {
					t.Errorf("%s: resync %q, goes on with %q", old, at.Resync, g.values(at.Place))
				}
			}
		})
	}
}

// TestLostBeforeOpen: nobody reads a feed that is not open, so nobody is told.
func TestLostBeforeOpen(t *testing.T) {
	g := newRig(t, testOptions, "a", "b")
	g.r.Attached()
	g.sinks[0].Open(topicID(1), parts(5))
	g.sinks[0].Lost(frame.Expired, nil, parts(50))
	if n := g.feed.Snapshot().Stats.Resyncs[frame.Expired]; n != 0 || g.wakes != 0 {
		t.Fatalf("%d resyncs counted, %d wakes", n, g.wakes)
	}
	g.sinks[1].Open(topicID(2), nil)
	if got, want := g.latest(), "v1:0-49"+tagOf("a", 1)+","+tagOf("b", 2); got != want {
		t.Fatalf("latest is at %s, want %s", got, want)
	}
}

func TestRecreated(t *testing.T) {
	g := newRig(t, testOptions, "a", "b")
	a, b := g.sinks[0], g.sinks[1]
	a.Open(topicID(1), parts(5, 5))
	b.Open(topicID(2), parts(50, 60))
	produce(b, 1, 60, 62)
	produce(a, 1, 5, 7)
	old := g.latest()
	g.r.Attached()
	head := g.r.Head()

	a.Recreated(topicID(9), parts(0))
	now := "v1:" + tagOf("a", 9) + ",0-49.1-61" + tagOf("b", 2)
	if got := g.latest(); got != now {
		t.Fatalf("latest is at %s, want %s", got, now)
	}
	produce(a, 0, 0, 2)
	produce(b, 1, 62, 63)
	produce(b, 0, 50, 51)
	all := events(t, g.rest(head))
	if e := all[0]; e.Type != "resync" || e.Data != `{"reason":"recreated","topics":{"a":[]}}` || e.LastEventID != now {
		t.Errorf("the streams get %+v", e)
	}
	if got, want := all[len(all)-1].LastEventID, "v1:0-1"+tagOf("a", 9)+",0-50.1-62"+tagOf("b", 2); got != want {
		t.Errorf("the last id is %s, want %s", got, want)
	}
	if at, _ := g.resume(now); at.Resync != "" || g.values(at.Place) != "0/0 0/1 1/62 0/50" {
		t.Errorf("%s goes on with %q (resync %q)", now, g.values(at.Place), at.Resync)
	}
	at, told := g.resume(old)
	if at.Resync != frame.Recreated || g.values(at.Place) != "" || !strings.Contains(told, `{"reason":"recreated","topics":{"a":[]}}`) {
		t.Errorf("%s: resync %q, is told %q", old, at.Resync, told)
	}
	if n := g.feed.Snapshot().Stats.Resyncs[frame.Recreated]; n != 2 { // the stream, the id
		t.Errorf("%d resyncs are counted", n)
	}
}

// TestSilentRecords: what a route's policies pass over moves the id at the
// flush, in one block, unless an event has told it.
func TestSilentRecords(t *testing.T) {
	g := &rig{t: t, box: NewMailbox(func() {})}
	g.hub = New(testOptions, []*Mailbox{g.box})
	g.feed, g.sinks = openFeed(t, g.hub, Spec{Topics: []string{"t"}, Format: frame.Format{Delete: frame.DeleteSkip}})
	g.r = g.feed.Reader(g.box)
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	silent := func(from, to int64) {
		for o := from; o < to; o++ {
			s.Append(0, []frame.Record{{Offset: o, Key: []byte("k")}})
		}
	}
	T := tagOf("t", 1)
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"three", func() { silent(0, 3) }, "id: v1:0-2" + T + "\n\n"},
		{"nothing more", func() {}, ""},
		{"before an event", func() { silent(3, 5); s.Append(0, []frame.Record{record(0, 5)}) }, "id: v1:0-5" + T + "\ndata: 0/5\n\n"},
		{"behind an event", func() { s.Append(0, []frame.Record{record(0, 6)}); silent(7, 8) }, "id: v1:0-6" + T + "\ndata: 0/6\n\nid: v1:0-7" + T + "\n\n"},
		{"before a resync", func() { silent(8, 9); s.Lost(frame.Expired, nil, parts(20)) }, "id: v1:0-19" + T + "\nevent: resync\ndata: {\"reason\":\"expired\",\"topics\":{}}\n\n"},
	} {
		head := g.r.Head()
		c.do()
		s.Flush(nil)
		if got := blocks(g.rest(head)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if n := g.feed.Snapshot().Stats.Silent; n != 7 {
		t.Errorf("%d silent records are counted, want 7", n)
	}
}

// TestAdvance: offsets without records move the position, but nobody is woken
// for them; the next frame tells it.
func TestAdvance(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	T := tagOf("t", 1)
	s.Open(topicID(1), parts(5, frame.Unknown))
	for _, c := range []struct {
		partition int32
		next      int64
		want      string
	}{
		{0, 8, "v1:0-7.1-*"},
		{0, 6, "v1:0-7.1-*"},
		{0, 8, "v1:0-7.1-*"},
		{0, frame.Unknown, "v1:0-7.1-*"},
		{1, frame.Unknown, "v1:0-7.1-*"},
		{1, 3, "v1:0-7.1-2"},
		{4, frame.Unknown, "v1:0-7.1-2.4-*"},
		{4, 0, "v1:0-7.1-2"},
		{4, 9, "v1:0-7.1-2.4-8"},
		{3, 0, "v1:0-7.1-2.4-8"},
		{2, 1, "v1:0-7.1-2.2-0.4-8"},
	} {
		s.Advance(c.partition, c.next)
		if got := g.latest(); got != c.want+T {
			t.Errorf("partition %d to %d: at %s, want %s", c.partition, c.next, got, c.want)
		}
	}
	s.Flush(nil)
	if g.r.Head() != 0 || g.wakes != 1 {
		t.Errorf("head %d, %d wakes", g.r.Head(), g.wakes)
	}
	produce(s, 0, 8, 9)
	if e := events(t, g.rest(0)); len(e) != 1 || e[0].LastEventID != "v1:0-8.1-2.2-0.4-8"+T {
		t.Errorf("the next event is %+v", e)
	}
	// The offsets passed over were nothing: whoever stood among them goes on.
	if at, _ := g.resume("v1:0-5.1-2.2-0.4-2" + T); at.Resync != "" || g.values(at.Place) != "0/8" {
		t.Errorf("goes on with %q, resync %q", g.values(at.Place), at.Resync)
	}
}

// TestAppendToUnknownPartition: its first record says where it starts.
func TestAppendToUnknownPartition(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			g := newRig(t, testOptions, "t")
			s := g.sinks[0]
			T := tagOf("t", 1)
			s.Open(topicID(1), parts(5))
			if known {
				s.Advance(1, frame.Unknown)
			}
			s.Append(1, nil) // says nothing
			produce(s, 1, 40, 42)
			if e := events(t, g.rest(0)); len(e) != 2 || e[1].Data != "1/41" || e[1].LastEventID != "v1:0-4.1-41"+T {
				t.Fatalf("the streams get %+v", e)
			}
			for from, want := range map[string]string{"v1:0-4.1-39" + T: "1/40 1/41", "v1:0-4.1-38" + T: ""} {
				if at, _ := g.resume(from); (at.Resync != "") != (want == "") || g.values(at.Place) != want {
					t.Errorf("%s goes on with %q, resync %q", from, g.values(at.Place), at.Resync)
				}
			}
		})
	}
}

// TestPartitionNumbersAreBounded: a number costs memory up to itself.
func TestPartitionNumbersAreBounded(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), []frame.Partition{{ID: 1 << 30, Next: 4}, {ID: 2, Next: 4}})
	for _, p := range []int32{-1, partitionsMax, 1<<31 - 1} {
		s.Advance(p, 7)
		s.Append(p, []frame.Record{{Partition: p, Offset: 1, Value: []byte("x")}, {Partition: p, Offset: 2}})
		s.Lost(frame.Expired, nil, []frame.Partition{{ID: p, Next: 8}})
	}
	s.Recreated(topicID(2), []frame.Partition{{ID: -5, Next: 4}, {ID: 3, Next: 4}})
	s.Advance(partitionsMax-1, 7)
	if got, want := g.latest(), fmt.Sprintf("v1:3-3.%d-6%s", partitionsMax-1, tagOf("t", 2)); got != want {
		t.Errorf("latest is at %s, want %s", got, want)
	}
	if n := g.feed.Snapshot().Stats.Refused; n != 6 {
		t.Errorf("%d records are counted as refused, want 6", n)
	}
	if n := cap(g.feed.topics[0].byParts); n > 2*partitionsMax {
		t.Errorf("%d partition numbers are kept", n)
	}
}

// TestLongIDs: a feed whose ids no request should have to bring back is refused,
// from when it is so until it is so no more.
func TestLongIDs(t *testing.T) {
	g := newRig(t, testOptions, "t")
	var many []frame.Partition
	for i := range int32(900) { // of 5 bytes each in v2 and as base64 of 6.7
		many = append(many, frame.Partition{ID: i, Next: 1 << 21})
	}
	s := g.sinks[0]
	s.Open(topicID(1), many)
	if n := g.feed.ids.Len(); g.feed.Refused() || n > frame.IDMax {
		t.Errorf("%d partitions are refused, with ids of %d bytes", len(many), n)
	}
	for i := int32(900); !g.feed.Refused(); i++ {
		s.Advance(i, 1<<21)
		if n := g.feed.ids.Len(); g.feed.Refused() != (n > frame.IDMax) {
			t.Fatalf("%d partitions, ids of %d bytes: refused: %t", i+1, n, g.feed.Refused())
		}
	}
	if s.Recreated(topicID(2), parts(1, 1)); g.feed.Refused() {
		t.Error("refused with two partitions")
	}
}

func TestStats(t *testing.T) {
	open := func(f frame.Format) (*Feed, Sink) {
		h := New(testOptions, nil)
		feed, sinks := openFeed(t, h, Spec{Topics: []string{"t"}, Format: f})
		sinks[0].Open(topicID(1), parts(0))
		return feed, sinks[0]
	}
	v := func(s string) frame.Record { return frame.Record{Value: []byte(s)} }
	for _, c := range []struct {
		name   string
		format frame.Format
		recs   []frame.Record
		want   Stats
	}{
		{"events", frame.Format{}, []frame.Record{v("a"), v("b")}, Stats{Records: 2}},
		{"deletes", frame.Format{}, []frame.Record{v("a"), {Key: []byte("k")}}, Stats{Records: 2}},
		{"deletes passed over", frame.Format{Delete: frame.DeleteSkip}, []frame.Record{v("a"), {Key: []byte("k")}}, Stats{Records: 1, Silent: 1}},
		{"too large", frame.Format{MaxEvent: 3}, []frame.Record{v("abc"), v("abcd")}, Stats{Records: 2, Skipped: 1}},
		{"not UTF-8", frame.Format{}, []frame.Record{v("\xff"), v("a")}, Stats{Records: 2, Replaced: 1}},
		{"not UTF-8, dropped", frame.Format{Binary: frame.Drop}, []frame.Record{v("\xff"), v("a")}, Stats{Records: 1, Silent: 1, Dropped: 1}},
		{"not UTF-8, in envelopes", frame.Format{Binary: frame.Drop, Envelope: true}, []frame.Record{v("\xff"), v("a")}, Stats{Records: 1, Silent: 1, Dropped: 1}},
		{"a key that is not UTF-8", frame.Format{Binary: frame.Drop}, []frame.Record{{Key: []byte("\xff")}}, Stats{Silent: 1, Dropped: 1}},
		{"bad names", frame.Format{Event: frame.EventName{Header: "n"}}, []frame.Record{
			{Value: []byte("a"), Headers: []frame.Header{{Name: "n", Value: []byte("challenge")}}},
			{Value: []byte("a"), Headers: []frame.Header{{Name: "n", Value: []byte("fine")}}},
		}, Stats{Records: 2, Unnamed: 1}},
	} {
		feed, s := open(c.format)
		for i := range c.recs {
			c.recs[i].Offset = int64(i)
		}
		s.Append(0, c.recs)
		s.Append(0, c.recs) // a tail that reads them again
		c.want.Repeated = uint64(len(c.recs))
		if got := feed.Snapshot().Stats; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestResyncsCountEvents: a personal stream reads of a loss by itself, and is
// not counted among those that the log tells.
func TestResyncsCountEvents(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(5, 5))
	at, _ := g.resume("v1:0-6.1-4" + tagOf("t", 1)) // ahead of this node
	if at.Own == nil {
		t.Fatalf("placed at %+v", at)
	}
	for range 3 { // two in the log, and that one
		g.r.Attached()
	}
	told := func(reason frame.Reason) uint64 { return g.feed.Snapshot().Stats.Resyncs[reason] }
	s.Lost(frame.Truncated, []frame.Range{{Topic: "t", Partition: 0, From: 3, To: 4}}, []frame.Partition{{ID: 0, Next: 3}})
	if n := told(frame.Truncated); n != 2 {
		t.Errorf("the log told 2 streams, and %d are counted", n)
	}
	b, _ := at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
	if n := told(frame.Truncated); n != 3 || !strings.Contains(string(b), "event: resync") {
		t.Errorf("then %d are counted, when the third is told %q", n, b)
	}
	at.Own.Close()
	s.Lost(frame.Expired, nil, parts(9))
	if n := told(frame.Expired); n != 3 {
		t.Errorf("the log told 3 streams, and %d are counted", n)
	}
}

func TestSnapshot(t *testing.T) {
	g := newRig(t, testOptions, "a", "b")
	if s := g.feed.Snapshot(); s.Open || s.LogBytes != 0 || s.Head != 0 || s.ID != "v1:"+tagOf("a", 1)[:3]+","+tagOf("b", 1)[:3] {
		t.Errorf("before it opens: %+v", s)
	}
	g.sinks[0].Open(topicID(1), parts(0))
	g.sinks[1].Open(topicID(2), parts(7))
	produce(g.sinks[0], 0, 0, 3)
	g.sinks[0].Append(0, []frame.Record{record(0, 3)})
	box := NewMailbox(func() {})
	other := g.feed.Reader(box)
	g.r.Attached()
	g.r.Attached()
	g.r.Detached()
	other.Attached()
	s := g.feed.Snapshot()
	if !s.Open || s.LogBytes != segmentBytes || s.First != 0 || s.Head != g.r.Head() || s.Indexed != 4 || s.Streams != 2 ||
		s.ID != "v1:0-3"+tagOf("a", 1)+",0-6"+tagOf("b", 2) || strings.Join(s.Topics, " ") != "a b" {
		t.Errorf("%+v", s)
	}
	other.Close()
	if n := g.feed.Snapshot().Streams; n != 1 {
		t.Errorf("%d streams after a loop left", n)
	}
}

// TestSnapshotWhileResyncing: metrics are gathered while tails write.
func TestSnapshotWhileResyncing(t *testing.T) {
	g := newRig(t, testOptions, "t")
	g.sinks[0].Open(topicID(1), parts(0))
	g.r.Attached()
	n := int64(0)
	stop := background(func() { n++; g.sinks[0].Lost(frame.Expired, nil, parts(n)) })
	total := uint64(0)
	for range 200 {
		for _, k := range g.feed.Snapshot().Stats.Resyncs {
			total = max(total, k)
		}
	}
	stop()
	if got := g.feed.Snapshot().Stats.Resyncs[frame.Expired]; got != uint64(n) || total > got {
		t.Errorf("%d resyncs are counted, %d were sent", got, n)
	}
}

// TestAppendBorrows: a sink keeps nothing of a record.
func TestAppendBorrows(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0))
	recs := []frame.Record{{Value: []byte("first")}, {Offset: 1, Value: []byte("second")}}
	s.Append(0, recs)
	for i := range recs {
		copy(recs[i].Value, bytes.Repeat([]byte("?"), 10))
	}
	clear(recs)
	s.Flush(nil)
	if got := g.values(0); got != "first second" {
		t.Errorf("the streams get %q", got)
	}
}
