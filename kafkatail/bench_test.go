package kafkatail

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"tailcast/frame"
	"tailcast/hub"
)

// null is a sink that counts.
type null struct {
	records atomic.Int64
	target  atomic.Int64  // at this count
	reached chan struct{} // one message is sent here
}

// wait blocks until n more records have come.
func (s *null) wait(n int64) {
	s.target.Store(s.records.Load() + n)
	<-s.reached
}

func (s *null) Append(_ int32, recs []frame.Record) {
	n := s.records.Add(int64(len(recs)))
	if at := s.target.Load(); at > 0 && n >= at && s.target.CompareAndSwap(at, 0) {
		s.reached <- struct{}{}
	}
}

func (*null) Open(frame.TopicID, []frame.Partition)               {}
func (*null) Warm(frame.TopicID, []frame.Partition)               {}
func (*null) Advance(int32, int64)                                {}
func (*null) Lost(frame.Reason, []frame.Range, []frame.Partition) {}
func (*null) Recreated(frame.TopicID, []frame.Partition)          {}
func (*null) Flush(*hub.Wakes)                                    {}

// fixture is a reader without a client, and a fetch of n records with headers
// for it.
func fixture(t testing.TB, sink hub.Sink, n int) (r *reader, ft *kgo.FetchTopic, refill func()) {
	t.Helper()
	tail, err := New(Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	id := frame.TopicID{1}
	tail.topics["a"] = &topic{
		name: "a", id: id, state: Tailing, opened: true,
		parts: []partition{{reading: true, start: -1, end: -1}},
		subs:  []subscription{{sink: sink, open: true, id: id}},
	}
	r = &reader{t: tail, seeks: make(seeks), polls: 1}
	tail.reader = r
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = &kgo.Record{
			Key: []byte("key"), Value: []byte("value"), Timestamp: time.UnixMilli(1),
			Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte("2")}},
		}
	}
	ft = &kgo.FetchTopic{Topic: "a", TopicID: id, Partitions: []kgo.FetchPartition{{Records: recs}}}
	var next int64
	refill = func() {
		for _, rec := range recs {
			rec.Offset = next
			next++
		}
	}
	return r, ft, refill
}

func BenchmarkAppend(b *testing.B) {
	const n = 1000
	sink := new(null)
	r, ft, refill := fixture(b, sink, n)
	b.ReportAllocs()
	for b.Loop() {
		refill()
		r.records(ft, &ft.Partitions[0])
		r.flush()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sink.records.Load()), "ns/record")
}

// cpuTime is what the process has used of all cores; unlike the clock it says
// the same on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// BenchmarkTail reads from an in-process broker, which shares the machine: the
// figures are of the whole, library and loopback included.
func BenchmarkTail(b *testing.B) {
	for _, codec := range []struct {
		name string
		c    kgo.CompressionCodec
	}{{"none", kgo.NoCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}, {"snappy", kgo.SnappyCompression()}} {
		b.Run(codec.name, func(b *testing.B) {
			c := newCluster(b, kfake.SyntheticFetch(kfake.SyntheticBatch{RecordBytes: 200, RandomFrac: 0.3, Compression: codec.c, Records: 500}))
			tail := startTail(b, c.ListenAddrs())
			sink := &null{reached: make(chan struct{}, 1)}
			tail.Tail.Tail("a", sink)
			eventually(b, "the topic to be missing", func() (bool, any) { return tail.topicStatus("a").State == Missing, "" })
			if err := c.CreateTopic("a", 2, nil); err != nil {
				b.Fatal(err)
			}
			sink.wait(10_000)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			from, cpu := sink.records.Load(), cpuTime(b)
			for b.Loop() {
				sink.wait(100_000)
			}
			n := float64(sink.records.Load() - from)
			runtime.ReadMemStats(&after)
			b.ReportMetric(n/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(cpuTime(b)-cpu)/n, "cpu-ns/record")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/record")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/record")
		})
	}
}

// BenchmarkHistory reads from an in-process broker, one read after the other.
func BenchmarkHistory(b *testing.B) {
	for _, records := range []int{10, 500} { // a batch: of a producer that waits for nothing, of one that does
		for i, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
			b.Run(fmt.Sprintf("records=%d/%s", records, name), func(b *testing.B) {
				c := newCluster(b, kfake.SeedTopics(1, "a"), kfake.SyntheticFetch(kfake.SyntheticBatch{RecordBytes: 200, RandomFrac: 0.3, Compression: codecs[i], Records: records}))
				h := newHistorian(b, c)
				var n, from int64
				each := func(r *frame.Record) { n++ }
				read := func() {
					span, err := h.Read(b.Context(), "a", h.id, 0, from, each)
					if err != nil {
						b.Fatal(err)
					}
					from = span.Next
				}
				read()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				n = 0
				cpu := cpuTime(b)
				for b.Loop() {
					read()
				}
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
				b.ReportMetric(float64(n)/float64(b.N), "records/read")
				b.ReportMetric(float64(cpuTime(b)-cpu)/float64(n), "cpu-ns/record")
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n), "B/record")
				b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/record")
			})
		}
	}
}
