package hub

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tailcast/frame"
)

// users are filters of as many users, of their keys alone or with a region.
func users(t testing.TB, f *Feed, n int, region bool) (*Table, []*Watch) {
	t.Helper()
	var table Table
	watches := make([]*Watch, n)
	for i := range watches {
		item := []Term{{Field{Kind: KeyField}, []string{fmt.Sprintf("user-%06d", i)}}}
		if region {
			item = append([]Term{{Field{HeaderField, "region"}, []string{"eu"}}}, item...)
		}
		filter, err := f.NewFilter([][]Term{item})
		if err != nil {
			t.Fatal(err)
		}
		watches[i] = &Watch{Filter: filter}
		table.Add(watches[i])
	}
	return &table, watches
}

// filterRig is a rig whose feed keeps keys and regions.
func filterRig(t testing.TB, opts Options) *rig {
	t.Helper()
	g := &rig{t: t}
	g.box = NewMailbox(func() { g.wakes++ })
	g.hub = New(opts, []*Mailbox{g.box})
	g.feed, g.sinks = openFeed(t, g.hub, Spec{Topics: []string{"events"}, Fields: []Field{{Kind: KeyField}, {HeaderField, "region"}}})
	g.r = g.feed.Reader(g.box)
	return g
}

// BenchmarkTable is what a record costs a loop for finding the one of its
// filtered streams that it is for.
func BenchmarkTable(b *testing.B) {
	for _, region := range []bool{false, true} {
		for _, n := range []int{1000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("and=%v/streams=%d", region, n), func(b *testing.B) {
				g := filterRig(b, testOptions)
				table, _ := users(b, g.feed, n, region)
				rnd := rand.New(rand.NewPCG(1, 2))
				rec := frame.Record{Headers: []frame.Header{{Name: "region", Value: []byte("eu")}}}
				var labels []byte
				lb := newLabeler(g.feed.fields)
				for i := range 4096 {
					rec.Key = fmt.Appendf(nil, "user-%06d", rnd.IntN(n))
					at := len(labels)
					labels = lb.appendValues(appendLabel(labels, LabelRecord, int64(i), 300), &rec)
					endLabel(labels[at:])
				}
				var found []*Watch
				b.ReportAllocs()
				rest, place := labels, int64(0)
				for b.Loop() {
					if len(rest) == 0 {
						rest = labels
					}
					l, size := NextLabel(rest)
					rest = rest[size:]
					l.Place = place
					place++
					if found = table.Find(found[:0], &l); len(found) != 1 {
						b.Fatal(len(found))
					}
				}
			})
		}
	}
}

// BenchmarkAppendLabeled is BenchmarkAppend for a feed with a key and a header
// that filters compare.
func BenchmarkAppendLabeled(b *testing.B) {
	g := filterRig(b, Options{LogBytes: 4 << 20, LogBytesTotal: 1 << 30, Heartbeat: testOptions.Heartbeat})
	f := newFeeder(g.sinks[0], 1)
	f.recs[0].Key = []byte("user-000017")
	f.recs[0].Headers = []frame.Header{{Name: "region", Value: []byte("eu")}}
	f.append(30_000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f.append(1)
		if i++; i%64 == 0 {
			g.sinks[0].Flush(nil)
		}
	}
}

// BenchmarkMatch is what a stream that looks for itself pays a record that is
// not for it.
func BenchmarkMatch(b *testing.B) {
	g := filterRig(b, testOptions)
	_, watches := users(b, g.feed, 1, true)
	rec := frame.Record{Key: []byte("user-000017"), Headers: []frame.Header{{Name: "region", Value: []byte("eu")}}}
	labels := newLabeler(g.feed.fields).appendValues(appendLabel(nil, LabelRecord, 0, 300), &rec)
	endLabel(labels)
	for b.Loop() {
		l, _ := NextLabel(labels)
		if watches[0].Filter.Match(&l) {
			b.Fatal("matches")
		}
	}
}
