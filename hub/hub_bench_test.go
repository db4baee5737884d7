package hub

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"tailcast/frame"
)

// benchRig is a rig of the default size, and how many records of 200 bytes
// more than fill its log; with -short they are few, for who counts instructions.
func benchRig(b *testing.B) (g *rig, full int) {
	opts := Options{LogBytes: 64 << 20, LogBytesTotal: 1 << 30, Heartbeat: testOptions.Heartbeat}
	full = 400_000
	if testing.Short() {
		opts.LogBytes, full = opts.LogBytes/16, full/16
	}
	return newRig(b, opts, "events"), full
}

// feeder appends records of 200 bytes round the partitions of an open topic.
type feeder struct {
	sink Sink
	recs []frame.Record // one
	next []int64
	part int32
}

func newFeeder(s Sink, partitions int) *feeder {
	f := &feeder{sink: s, next: make([]int64, partitions)}
	f.recs = []frame.Record{{Topic: "events", Time: 1_700_000_000_000, Value: bytes.Repeat([]byte("x"), 200)}}
	for i := range f.next {
		f.next[i] = 50_000_000
	}
	s.Open(topicID(1), parts(f.next...))
	return f
}

func (f *feeder) append(n int) {
	for range n {
		f.recs[0].Partition, f.recs[0].Offset = f.part, f.next[f.part]
		f.next[f.part]++
		f.sink.Append(f.part, f.recs)
		if f.part++; int(f.part) == len(f.next) {
			f.part = 0
		}
	}
}

// behind is the position before the last n records, which the feeder appended.
func (f *feeder) behind(n int) frame.Position {
	p := frame.Position{{Tag: frame.MakeTag("events", topicID(1)), Parts: parts(f.next...)}}
	part := int(f.part)
	for range n {
		part = (part + len(f.next) - 1) % len(f.next)
		p[0].Parts[part].Next--
	}
	return p
}

// BenchmarkAppend is what a tail pays for a record: id, encoding, log, index.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 12, 100} {
		b.Run(fmt.Sprintf("parts=%d/size=200", n), func(b *testing.B) {
			g, full := benchRig(b)
			f := newFeeder(g.sinks[0], n)
			f.append(full) // segments are used again
			b.SetBytes(200)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				f.append(1)
				if i++; i%64 == 0 {
					g.sinks[0].Flush(nil)
				}
			}
		})
	}
}

// BenchmarkFlush is what a batch of records costs beside them: the head is
// published, the loop marked and woken, and the mark taken.
func BenchmarkFlush(b *testing.B) {
	g, full := benchRig(b)
	f := newFeeder(g.sinks[0], 1)
	f.append(full)
	took := make([]*Reader, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		f.append(1)
		g.sinks[0].Flush(nil)
		took = g.box.Take(took[:0])
	}
	if len(took) != 1 {
		b.Fatal("not marked")
	}
}

// BenchmarkRead is what each stream pays in a pass for finding its bytes.
func BenchmarkRead(b *testing.B) {
	g, full := benchRig(b)
	f := newFeeder(g.sinks[0], 1)
	f.append(full)
	g.sinks[0].Flush(nil)
	depth := map[string]int64{
		"newest": g.r.Head() - 1,
		"middle": (g.r.Head() + g.feed.log.first) / 2,
		"oldest": g.feed.log.first,
	}
	for _, name := range []string{"newest", "middle", "oldest"} {
		b.Run("place="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := g.r.Read(depth[name]); !ok {
					b.Fatal("not held")
				}
			}
		})
	}
	b.Run("while=appending", func(b *testing.B) {
		stop := background(func() { f.append(64); g.sinks[0].Flush(nil) })
		defer stop()
		for b.Loop() {
			g.r.Read(g.r.Head() - 1)
		}
	})
}

// background runs f again and again in another goroutine until stop.
func background(f func()) (stop func()) {
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !ended.Load() {
			f()
		}
	}()
	return func() { ended.Store(true); <-done }
}

// BenchmarkAttach is what a reconnecting client costs under the feed's lock.
func BenchmarkAttach(b *testing.B) {
	deep := 10_000
	if testing.Short() {
		deep = 1000
	}
	for _, n := range []int{1, 12, 100} {
		for _, behind := range []int{0, 100, deep} {
			b.Run(fmt.Sprintf("parts=%d/behind=%d", n, behind), func(b *testing.B) {
				g, full := benchRig(b)
				f := newFeeder(g.sinks[0], n)
				f.append(full)
				g.sinks[0].Flush(nil)
				start := Start{Position: f.behind(behind)}
				var dst []byte
				b.ReportAllocs()
				for b.Loop() {
					var at Placement
					if at, dst = g.r.Attach(start, 1500, dst[:0]); at.Resync != "" || at.Behind != (behind > 0) {
						b.Fatal(at)
					}
				}
			})
		}
	}
	b.Run("parts=100/latest", func(b *testing.B) {
		g, full := benchRig(b)
		newFeeder(g.sinks[0], 100).append(full)
		var dst []byte
		b.ReportAllocs()
		for b.Loop() {
			_, dst = g.r.Attach(Start{}, 1500, dst[:0])
		}
	})
}

// BenchmarkOwnStep is what a personal stream costs that lacks 100 records of
// one partition and has all of the others.
func BenchmarkOwnStep(b *testing.B) {
	for _, n := range []int{2, 12} {
		b.Run(fmt.Sprintf("parts=%d", n), func(b *testing.B) {
			g, full := benchRig(b)
			f := newFeeder(g.sinks[0], n)
			f.append(full)
			g.sinks[0].Flush(nil)
			start := Start{Position: f.behind(0)}
			start.Position[0].Parts[0].Next -= 100
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = lacking(b, g, start, dst, 100)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(100*b.N), "ns/event")
		})
	}
}

// lacking attaches a personal stream that lacks n records of the log and runs
// it until it is shared.
func lacking(t testing.TB, g *rig, start Start, dst []byte, n int) []byte {
	at, dst := g.r.Attach(start, 1500, dst[:0])
	if at.Own == nil {
		t.Fatal("the stream is not personal")
	}
	events := 0
	for state := OwnMore; state != OwnShared; events += at.Own.Events() {
		if dst, state = at.Own.Step(dst[:0], 32<<10, time.Time{}); state != OwnMore && state != OwnShared {
			t.Fatalf("state %v", state)
		}
	}
	at.Own.Close()
	if events != n {
		t.Fatalf("%d events, want %d", events, n)
	}
	return dst
}

// BenchmarkFind is the search alone, at random depths: every probe of it may
// miss the processor's cache.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 12, 100} {
		b.Run(fmt.Sprintf("parts=%d", n), func(b *testing.B) {
			g, full := benchRig(b)
			f := newFeeder(g.sinks[0], n)
			f.append(full)
			g.sinks[0].Flush(nil)
			held := g.feed.index.entries.len()
			rnd := rand.New(rand.NewPCG(1, 1))
			starts := make([][]int64, 64)
			for i := range starts {
				for _, p := range f.behind(rnd.IntN(held))[0].Parts {
					starts[i] = append(starts[i], p.Next)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, ok := g.feed.index.find(starts[i%len(starts)], g.feed.log.end); !ok {
					b.Fatal("not found")
				}
				i++
			}
		})
	}
}

// BenchmarkLocked is what a loop waits for the feed's lock while a tail appends
// at full speed, 256 records an Append.
func BenchmarkLocked(b *testing.B) {
	for _, appending := range []bool{false, true} {
		b.Run(fmt.Sprintf("records/appending=%v", appending), func(b *testing.B) {
			g, full := benchRig(b)
			f := newFeeder(g.sinks[0], 1)
			f.append(full)
			g.sinks[0].Flush(nil)
			if appending {
				batch := make([]frame.Record, 256)
				defer background(func() {
					for i := range batch {
						batch[i] = f.recs[0]
						batch[i].Offset = f.next[0]
						f.next[0]++
					}
					f.sink.Append(0, batch)
					f.sink.Flush(nil)
				})()
			}
			for b.Loop() {
				head := g.r.Head()
				g.r.Records(head-segmentBytes, head)
			}
		})
	}
}
