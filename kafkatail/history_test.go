package kafkatail

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
	"tailcast/hub"
)

// historian reads one topic's history for a test.
type historian struct {
	*History
	t     testing.TB
	topic string
	id    frame.TopicID
}

// historian waits until the tail runs.
func (r *running) historian(t testing.TB, topic string, id frame.TopicID) *historian {
	t.Helper()
	h := r.History()
	eventually(t, "history", func() (bool, any) { return h.open.Load() != nil, "the tail does not run" })
	return &historian{h, t, topic, id}
}

// newHistorian is one of topic a in a cluster, with a tail of its own.
func newHistorian(t testing.TB, c *cluster, change ...func(*Config)) *historian {
	t.Helper()
	return startTail(t, c.ListenAddrs(), change...).historian(t, "a", c.TopicInfo("a").TopicID)
}

// read reads once, copies the records and checks what every span promises.
func (h *historian) read(p int32, from int64) (hub.Span, []kept, error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var recs []kept
	span, err := h.Read(ctx, h.topic, h.id, p, from, func(r *frame.Record) {
		if r.Topic != h.topic || r.Partition != p {
			h.t.Errorf("a record of %s/%d", r.Topic, r.Partition)
		}
		k := kept{offset: r.Offset, time: r.Time, key: slices.Clone(r.Key), value: slices.Clone(r.Value)}
		for _, x := range r.Headers {
			k.headers = append(k.headers, frame.Header{Name: x.Name, Value: slices.Clone(x.Value)})
		}
		recs = append(recs, k)
	})
	if err != nil {
		return span, recs, err
	}
	if span.Start > from || span.Next < from {
		h.t.Errorf("read from %d tells [%d, %d)", from, span.Start, span.Next)
	}
	next := span.Start
	for _, k := range recs {
		if k.offset < next || k.offset >= span.Next {
			h.t.Errorf("read from %d tells [%d, %d), and offset %d after %d", from, span.Start, span.Next, k.offset, next-1)
		}
		next = k.offset + 1
	}
	if span.Next > from && span.Bytes == 0 {
		h.t.Errorf("read from %d of no bytes tells [%d, %d)", from, span.Start, span.Next)
	}
	return span, recs, nil
}

// all reads a partition from an offset until there is nothing more, each time
// from where the last one ended, and returns what a stream would be given.
func (h *historian) all(p int32, from int64) []kept {
	h.t.Helper()
	var all []kept
	for {
		span, recs, err := h.read(p, from)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, k := range recs {
			if k.offset >= from {
				all = append(all, k)
			}
		}
		if span.Next == from {
			return all
		}
		from = span.Next
	}
}

func offsetsOf(recs []kept) []int64 {
	var o []int64
	for _, k := range recs {
		o = append(o, k.offset)
	}
	return o
}

func wantRead(t testing.TB, recs []kept, want []int64) {
	t.Helper()
	if got := offsetsOf(recs); !slices.Equal(got, want) {
		t.Errorf("read %s, want %s", brief(got), brief(want))
	}
}

var codecs = []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}

// fill produces batches of 1 to 60 records with every codec and returns the
// values, and for each offset where its batch begins.
func fill(t testing.TB, client func(...kgo.Opt) *kgo.Client, topic string, p int32, n int) (values []string, bases []int64) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	write := func(cl *kgo.Client, n int) {
		base := int64(len(values))
		var recs []*kgo.Record
		for range n {
			v := fmt.Sprintf("%d %s", len(values), strings.Repeat("abcd", rnd.IntN(100)))
			recs = append(recs, &kgo.Record{Topic: topic, Partition: p, Value: []byte(v), Headers: []kgo.RecordHeader{{Key: "n", Value: []byte(v[:1])}}})
			values, bases = append(values, v), append(bases, base)
		}
		oneBatch(t, cl, recs...)
	}
	var cls []*kgo.Client
	for _, codec := range codecs {
		cl := client(kgo.ProducerBatchCompression(codec), kgo.ManualFlushing())
		write(cl, 1) // what waits for a client's first metadata may be cut in two
		cls = append(cls, cl)
	}
	for len(values) < n {
		write(cls[rnd.IntN(len(cls))], 1+rnd.IntN(60))
	}
	return values, bases
}

// A topic read piece by piece is what was produced, whatever the codec, and
// each piece begins where the batch does that holds the offset asked for.
func TestHistory(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(3, "a"))
	h := newHistorian(t, c)
	for p := range int32(3) {
		values, bases := fill(t, c.client, "a", p, 1000)
		got := h.all(p, 0)
		if len(got) != len(values) {
			t.Fatalf("partition %d: read %d records, want %d", p, len(got), len(values))
		}
		for i, k := range got {
			if k.offset != int64(i) || string(k.value) != values[i] || len(k.headers) != 1 || string(k.headers[0].Value) != values[i][:1] {
				t.Fatalf("partition %d: record %d is %d, %.40q, %v", p, i, k.offset, k.value, k.headers)
			}
		}
		for from := int64(0); from < int64(len(values)); from += 23 {
			span, recs, err := h.read(p, from)
			if err != nil {
				t.Fatal(err)
			}
			if span.Start != bases[from] || recs[0].offset != span.Start {
				t.Fatalf("partition %d from %d: told from %d, the batch begins at %d", p, from, span.Start, bases[from])
			}
		}
		wantRead(t, h.all(p, 789), upTo(789, int64(len(values))))
	}
}

// One read is about one fetch: a long log takes several, each begins where the
// last one ended.
func TestHistoryIsBounded(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	h := newHistorian(t, c)
	cl := c.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
	value := bytes.Repeat([]byte("x"), 100<<10)
	for range 40 {
		send(t, cl, &kgo.Record{Topic: "a", Value: value})
	}
	span, _, err := h.read(0, 0)
	if err != nil || span.Bytes < historyBytesMax/2 || span.Bytes > historyBytesMax || span.Next > 11 {
		t.Errorf("one read is %+v, %v", span, err)
	}
	wantRead(t, h.all(0, 0), upTo(0, 40))

	// What decompresses a lot is told in parts: who is told keeps it.
	zeros := c.client(kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(1<<20))
	for range 20 {
		send(t, zeros, &kgo.Record{Topic: "a", Value: make([]byte, 900<<10)})
	}
	span, _, err = h.read(0, 40)
	if err != nil || span.Next < 41 || span.Next > 40+toldBytesMax/(900<<10)+1 {
		t.Errorf("one read is %+v, %v", span, err)
	}
	wantRead(t, h.all(0, 40), upTo(40, 60))
}

// A record far above what is asked for comes whole (case C21).
func TestHistoryRecordAboveFetchSize(t *testing.T) {
	c := newCluster(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "8388608"}), kfake.SeedTopics(1, "a"))
	h := newHistorian(t, c)
	cl := c.client(kgo.ProducerBatchMaxBytes(8<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	big := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	for _, v := range [][]byte{[]byte("before"), big, []byte("after")} {
		send(t, cl, &kgo.Record{Topic: "a", Value: v})
	}
	got := h.all(0, 0)
	wantRead(t, got, upTo(0, 3))
	if !bytes.Equal(got[1].value, big) {
		t.Errorf("the big record has %d bytes, want %d", len(got[1].value), len(big))
	}
}

// Transactions of several producers, committed and aborted, interleave: what is
// told is what a consumer gets, from whatever offset, and positions pass over
// markers and aborted records (cases C12, C13).
func TestHistoryTransactions(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	plain := c.client()
	txs := []*kgo.Client{c.client(kgo.TransactionalID("x")), c.client(kgo.TransactionalID("y")), c.client(kgo.TransactionalID("z"))}
	open := make([]int, len(txs)) // records in each one's transaction
	for range 150 {
		i := rnd.IntN(len(txs) + 1)
		switch {
		case i == len(txs):
			send(t, plain, &kgo.Record{Topic: "a", Value: []byte("plain")})
		case open[i] == 0:
			begin(t, txs[i], "a", 1+rnd.IntN(3))
			open[i]++
		case rnd.IntN(3) == 0:
			if err := txs[i].EndTransaction(context.Background(), kgo.TransactionEndTry(rnd.IntN(2) == 0)); err != nil {
				t.Fatal(err)
			}
			open[i] = 0
		default:
			send(t, txs[i], &kgo.Record{Topic: "a", Value: []byte("more")}, &kgo.Record{Topic: "a", Value: []byte("and more")})
		}
	}
	for i, n := range open {
		if n > 0 {
			if err := txs[i].EndTransaction(context.Background(), kgo.TryAbort); err != nil {
				t.Fatal(err)
			}
		}
	}
	info := c.PartitionInfo("a", 0)
	for _, isolation := range []string{ReadCommitted, ReadUncommitted} {
		t.Run(isolation, func(t *testing.T) {
			h := newHistorian(t, c, func(c *Config) { c.Isolation = isolation })
			want := consume(t, c.client, "a", 0, info.HighWatermark, isolation)
			if len(want) == 0 || int64(len(want)) == info.HighWatermark {
				t.Fatalf("a consumer gets %d records of %d offsets", len(want), info.HighWatermark)
			}
			wantRead(t, h.all(0, 0), want)
			for from := range info.HighWatermark {
				span, recs, err := h.read(0, from)
				if err != nil {
					t.Fatal(err)
				}
				if span.Next != info.HighWatermark {
					t.Errorf("from %d told up to %d, the log ends at %d", from, span.Next, info.HighWatermark)
				}
				i, _ := slices.BinarySearch(want, span.Start)
				wantRead(t, recs, want[i:])
			}
		})
	}
}

// consume returns the offsets that a consumer of the library gets up to end.
func consume(t testing.TB, client func(...kgo.Opt) *kgo.Client, topic string, p int32, end int64, isolation string) []int64 {
	t.Helper()
	level, _ := Config{Isolation: isolation}.isolation()
	cl := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {p: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var got []int64
	for next := int64(0); next < end; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		for _, rec := range fs.Records() {
			next = rec.Offset + 1
			if !rec.Attrs.IsControl() {
				got = append(got, rec.Offset)
			}
		}
	}
	return got
}

// What an open transaction holds back is not there yet (case C15).
func TestHistoryOpenTransaction(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	h := newHistorian(t, c)
	all := newHistorian(t, c, func(c *Config) { c.Isolation = ReadUncommitted })
	cl, tx := c.client(), c.client(kgo.TransactionalID("tx"))
	produce(t, cl, "a", 0, 2)
	begin(t, tx, "a", 2)      // 2, 3
	produce(t, cl, "a", 0, 1) // 4
	wantRead(t, h.all(0, 0), upTo(0, 2))
	wantRead(t, all.all(0, 0), upTo(0, 5))
	wantBounds(t, h, hub.Bound{End: 2})
	wantBounds(t, all, hub.Bound{End: 5})
	if span, recs, err := h.read(0, 3); err != nil || span.Next != 3 || len(recs) > 0 {
		t.Errorf("read %+v, %v, %v", span, recs, err)
	}
	if err := tx.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	wantRead(t, h.all(0, 1), upTo(1, 5))
}

func wantBounds(t testing.TB, h *historian, want ...hub.Bound) {
	t.Helper()
	got, err := h.Bounds(t.Context(), h.topic, h.id)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("bounds %+v, %v, want %+v", got, err, want)
	}
}

// A compacted log is read over its gaps (cases C16, C17).
func TestHistoryCompacted(t *testing.T) {
	c := newCluster(t)
	if err := c.CreateTopic("a", 1, map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "0"}); err != nil {
		t.Fatal(err)
	}
	h := newHistorian(t, c)
	cl, many := c.client(), c.client(kgo.ManualFlushing())
	send(t, cl, &kgo.Record{Topic: "a", Key: []byte("first"), Value: []byte("x")}) // kfake begins the log at what is left
	for range 5 {
		var recs []*kgo.Record
		for i := range 3 {
			recs = append(recs, &kgo.Record{Topic: "a", Key: fmt.Appendf(nil, "k%d", i), Value: []byte("x")})
		}
		oneBatch(t, many, recs...)
	}
	send(t, cl, &kgo.Record{Topic: "a", Key: []byte("k1")}) // 16, a tombstone
	send(t, cl, &kgo.Record{Topic: "a", Key: []byte("last"), Value: []byte("x")})
	c.Compact()
	want := []int64{0, 13, 15, 17}
	for from := range int64(18) {
		i, _ := slices.BinarySearch(want, from)
		wantRead(t, h.all(0, from), want[i:])
	}
	if span, _, err := h.read(0, 5); err != nil || span.Start != 5 {
		t.Errorf("read in a gap tells %+v, %v", span, err)
	}
}

// The log ends in offsets that no record has: they are passed over if the
// broker holds the log itself, but not if slow remote storage may be why it
// gave nothing.
func TestHistoryEndsInAHole(t *testing.T) {
	for _, tc := range []struct {
		name  string
		local int64 // where the leader's own part of the log begins
		want  int64
	}{{"compacted", 0, 9}, {"begins here", 5, 9}, {"remote", 6, 5}} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, kfake.SeedTopics(1, "a"))
			produce(t, c.client(), "a", 0, 9)
			confirm := 50 * time.Millisecond
			h := newHistorian(t, c, func(cfg *Config) { cfg.Timing.Confirm = confirm })
			c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				req := kreq.(*kmsg.FetchRequest)
				resp := req.ResponseKind().(*kmsg.FetchResponse)
				p := kmsg.NewFetchResponseTopicPartition()
				p.HighWatermark, p.LastStableOffset, p.LogStartOffset, p.RecordBatches = 9, 9, 0, []byte{}
				topic := kmsg.NewFetchResponseTopic()
				topic.TopicID, topic.Partitions = req.Topics[0].TopicID, append(topic.Partitions, p)
				resp.Topics = append(resp.Topics, topic)
				return resp, nil, true
			})
			c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				req := kreq.(*kmsg.ListOffsetsRequest)
				resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
				p := kmsg.NewListOffsetsResponseTopicPartition()
				if req.Topics[0].Partitions[0].Timestamp == atLocalStart {
					p.Offset = tc.local
				}
				topic := kmsg.NewListOffsetsResponseTopic()
				topic.Topic, topic.Partitions = "a", append(topic.Partitions, p)
				resp.Topics = append(resp.Topics, topic)
				return resp, nil, true
			})
			read := func() hub.Span {
				span, err := h.Read(t.Context(), "a", h.id, 0, 5, func(*frame.Record) { t.Error("a record") })
				if err != nil {
					t.Fatal(err)
				}
				return span
			}
			nothing := hub.Span{Start: 5, Next: 5}
			began := time.Now()
			if span := read(); span != nothing { // a leader that has just taken over may answer so
				t.Errorf("at first sight: read %+v", span)
			}
			want, span := hub.Span{Start: 5, Next: tc.want}, nothing
			for n := 0; span != want && time.Since(began) < patience || n < 5 || time.Since(began) < 3*confirm; n++ {
				if span = read(); span != nothing && time.Since(began) < confirm {
					t.Errorf("believed after %v: read %+v", time.Since(began), span)
				}
			}
			if span != want {
				t.Errorf("read %+v, want %+v", span, want)
			}
		})
	}
}
