package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/ssetest"
)

// rig is a hub with one loop and one feed, driven by hand.
type rig struct {
	t     testing.TB
	hub   *Hub
	box   *Mailbox
	feed  *Feed
	sinks []Sink // one a topic
	r     *Reader
	wakes int
}

// testOptions are small enough for a test to pass every bound.
var testOptions = Options{LogBytes: 4 * segmentBytes, LogBytesTotal: 1 << 30, Heartbeat: 15 * time.Second}

func newRig(t testing.TB, opts Options, topics ...string) *rig {
	t.Helper()
	g := &rig{t: t}
	g.box = NewMailbox(func() { g.wakes++ })
	g.hub = New(opts, []*Mailbox{g.box})
	g.feed, g.sinks = openFeed(t, g.hub, Spec{Topics: topics})
	g.r = g.feed.Reader(g.box)
	return g
}

// openFeed opens a feed and returns it with its sinks, in the order of its topics.
func openFeed(t testing.TB, h *Hub, spec Spec) (*Feed, []Sink) {
	t.Helper()
	var sinks []Sink
	f, err := h.Open(spec, sourceFunc(func(_ string, s Sink) { sinks = append(sinks, s) }))
	if err != nil {
		t.Fatal(err)
	}
	f.log.size = segmentBytes // so that tests can count them
	return f, sinks
}

// topicIDs are ids of incarnations, by their number.
func topicID(n byte) frame.TopicID { return frame.TopicID{n} }

// parts are partitions 0, 1, ... at the given next offsets.
func parts(next ...int64) []frame.Partition {
	var p []frame.Partition
	for i, n := range next {
		p = append(p, frame.Partition{ID: int32(i), Next: n})
	}
	return p
}

// produce appends records from offset from to to (exclusive), whose values are
// "partition/offset", and flushes.
func produce(s Sink, partition int32, from, to int64) {
	for o := from; o < to; o++ {
		s.Append(partition, []frame.Record{record(partition, o)})
	}
	s.Flush(nil)
}

func record(partition int32, offset int64) frame.Record {
	return frame.Record{Partition: partition, Offset: offset, Time: -1, Value: fmt.Appendf(nil, "%d/%d", partition, offset)}
}

// id parses an event id.
func id(t testing.TB, text string) frame.Position {
	t.Helper()
	pos, err := frame.ParseID([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return pos
}

// resume attaches with an id and returns what Attach does.
func (g *rig) resume(text string) (Placement, string) {
	g.t.Helper()
	at, b := g.r.Attach(Start{Position: id(g.t, text)}, 0, nil)
	return at, blocks(b)
}

// goesOn returns the records that a stream gets: of a personal one those under
// its own ids, and what comes then.
func (g *rig) goesOn(at Placement) string {
	g.t.Helper()
	if at.Own == nil {
		return g.values(at.Place)
	}
	defer at.Own.Close()
	var got []byte
	state := OwnMore
	for state == OwnMore {
		got, state = at.Own.Step(got, 1, time.Unix(1000, 0))
	}
	var own []string
	for _, e := range events(g.t, got) {
		own = append(own, e.Data)
	}
	if state == OwnShared {
		return strings.Join(own, " ") + " then " + g.values(at.Own.Place())
	}
	return strings.Join(own, " ") + " waits"
}

// latest attaches at the head and returns the stream's id.
func (g *rig) latest() string {
	g.t.Helper()
	_, b := g.r.Attach(Start{}, 0, nil)
	return strings.TrimSuffix(strings.TrimPrefix(blocks(b), "id: "), "\n\n")
}

// rest reads from place to the head.
func (g *rig) rest(place int64) []byte {
	g.t.Helper()
	var all []byte
	for {
		b, ok := g.r.Read(place)
		if !ok {
			g.t.Fatalf("place %d is not held", place)
		}
		if len(b) == 0 {
			return all
		}
		all = append(all, b...)
		place += int64(len(b))
	}
}

// values are the data of the records from place on, joined by blanks; a resync
// is shown by its reason.
func (g *rig) values(place int64) string {
	g.t.Helper()
	var all []string
	for _, e := range events(g.t, g.rest(place)) {
		if e.Type == "resync" {
			e.Data = e.Data[len(`{"reason":"`):strings.Index(e.Data, `",`)]
		}
		all = append(all, e.Data)
	}
	return strings.Join(all, " ")
}

// blocks are frames without their chunks.
func blocks(b []byte) string {
	var all []byte
	for ; len(b) > 0; b = b[frame.Len(b):] {
		all = append(all, frame.Unchunk(b[:frame.Len(b)])...)
	}
	return string(all)
}

// events decodes frames as a browser would.
func events(t testing.TB, b []byte) []ssetest.Event {
	t.Helper()
	var chunks ssetest.Chunks
	data, err := chunks.Feed(b)
	if err != nil {
		t.Fatal(err)
	}
	var p ssetest.Parser
	return p.Feed(data)
}
