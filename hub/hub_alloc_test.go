//go:build !race

package hub

import (
	"testing"
	"time"

	"tailcast/frame"
)

// TestAppendAllocs: a record costs no allocation, whatever the number of
// partitions. A segment that begins costs its table, once in about a thousand
// records; that is less than one in the average of a batch.
func TestAppendAllocs(t *testing.T) {
	for _, n := range []int{1, 12, 100} {
		g := newRig(t, Options{LogBytes: 4 << 20, LogBytesTotal: 1 << 30, Heartbeat: testOptions.Heartbeat}, "events")
		f := newFeeder(g.sinks[0], n)
		f.append(100_000) // the log is full, every buffer as large as it gets
		took := make([]*Reader, 0, 4)
		rolls := 0
		if allocs := testing.AllocsPerRun(100, func() {
			first := g.feed.log.first
			f.append(100)
			g.sinks[0].Flush(nil)
			took = g.box.Take(took[:0])
			if g.feed.log.first != first {
				rolls++
			}
		}); allocs != 0 {
			t.Errorf("%d partitions: %v allocations for 100 records", n, allocs)
		}
		if rolls == 0 {
			t.Errorf("%d partitions: no segment was used again", n)
		}
	}
}

func TestReaderAllocs(t *testing.T) {
	g := newRig(t, testOptions, "events")
	f := newFeeder(g.sinks[0], 12)
	f.append(3000)
	g.sinks[0].Flush(nil)
	took := make([]*Reader, 0, 4)
	times := make([]int64, 0, 4000)
	dst := make([]byte, 0, 4096)
	now := time.Now()
	last := f.behind(100)
	tags := frame.Position{{Tag: frame.MakeTag("events", topicID(2))}}
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"a turn", func() { g.box.Enter(); g.box.Leave() }},
		{"Take", func() { g.feed.mark(nil); took = g.box.Take(took[:0]) }},
		{"Read at the head", func() { g.r.Read(g.r.Head()) }},
		{"Read of the newest", func() { g.r.Read(g.r.Head() - 1) }},
		{"Read of the oldest", func() { g.r.Read(g.feed.log.first) }},
		{"Times", func() { g.r.seen -= 100; times = g.r.Times(times[:0], g.r.Head()) }},
		{"Boundary", func() { g.r.Boundary(g.feed.log.first + 1) }},
		{"a heartbeat", func() {
			now = now.Add(testOptions.Heartbeat)
			g.feed.tick(now, nil)
			took = g.box.Take(took[:0])
		}},
		{"Records", func() { g.r.Records(g.feed.log.first, g.r.Head()) }},
		{"Attach at the head", func() { g.r.Attach(Start{}, 1000, dst) }},
		{"Attach with an id", func() { g.r.Attach(Start{Position: last}, 1000, dst) }},
		{"Attach with an id of another incarnation", func() { g.r.Attach(Start{Position: tags}, 1000, dst) }},
	} {
		c.do()
		if allocs := testing.AllocsPerRun(100, c.do); allocs != 0 {
			t.Errorf("%s: %v allocations", c.name, allocs)
		}
	}
}

// TestOwnStepAllocs: a personal stream costs some allocations, its events none.
func TestOwnStepAllocs(t *testing.T) {
	g := newRig(t, testOptions, "events")
	f := newFeeder(g.sinks[0], 2)
	f.append(3000)
	g.sinks[0].Flush(nil)
	dst := make([]byte, 0, 64<<10)
	run := func(n int) float64 {
		start := Start{Position: f.behind(0)}
		start.Position[0].Parts[0].Next -= int64(n)
		return testing.AllocsPerRun(100, func() { dst = lacking(t, g, start, dst, n) })
	}
	if few, many := run(10), run(1000); many > few {
		t.Errorf("%v allocations for 1000 events, %v for 10", many, few)
	}
}

// TestLabelAllocs: nor do fields cost any, whatever they are, nor finding the
// streams of a record.
func TestLabelAllocs(t *testing.T) {
	g := &rig{t: t}
	g.box = NewMailbox(func() { g.wakes++ })
	g.hub = New(testOptions, []*Mailbox{g.box})
	g.feed, g.sinks = openFeed(t, g.hub, Spec{Topics: []string{"events"}, Fields: []Field{
		{Kind: KeyField}, {HeaderField, "region"}, {JSONField, "tenant.id"}, {JSONField, "name"},
	}})
	f := newFeeder(g.sinks[0], 1)
	f.recs[0].Key = []byte("user-000017")
	f.recs[0].Headers = []frame.Header{{Name: "region", Value: []byte("eu")}, {Name: "region", Value: []byte("us")}}
	f.recs[0].Value = []byte(`{"name":"a\u0062c","tenant":{"id":[1,"two",null,{"x":[]},3]}}`)
	f.append(100_000)
	if allocs := testing.AllocsPerRun(1000, func() { f.append(10); g.sinks[0].Flush(nil) }); allocs != 0 {
		t.Errorf("%v allocations for 10 records", allocs)
	}
	table, _ := users(t, g.feed, 100, true)
	g.feed.mu.Lock()
	b := g.feed.held(&g.feed.labels, g.feed.labelAt(g.feed.index.entries.first))
	g.feed.mu.Unlock()
	found := make([]*Watch, 0, 4)
	place := int64(0)
	if allocs := testing.AllocsPerRun(100, func() {
		l, _ := NextLabel(b)
		place++
		l.Place = place
		found = table.Find(found[:0], &l)
	}); allocs != 0 || len(found) != 1 {
		t.Errorf("%v allocations for finding %d streams", allocs, len(found))
	}
}
