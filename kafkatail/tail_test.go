package kafkatail

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
)

// What was written before the start is not delivered, everything after it is,
// whichever side of the first fetch it falls on.
func TestStartsExactlyAtTheEnd(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(2, "a"))
	cl := c.client()
	produce(t, cl, "a", 0, 5)
	rec := startTail(t, c.ListenAddrs()).follow(t, "a")
	want := opening{c.TopicInfo("a").TopicID, []frame.Partition{{ID: 0, Next: 5}, {ID: 1, Next: 0}}}
	if got := rec.opened(); got.id != want.id || !slices.Equal(got.parts, want.parts) {
		t.Fatalf("opened at %v, want %v", got, want)
	}
	produce(t, cl, "a", 0, 3)
	produce(t, cl, "a", 1, 2)
	wantOffsets(t, rec, 0, upTo(5, 8))
	wantOffsets(t, rec, 1, upTo(0, 2))
}

// A topic is read once for all its sinks; one that comes later starts where
// the reading is, with no record twice and none missing between the two.
func TestSinksShareOneReading(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs())
	first := tail.follow(t, "a")

	ctx, cancel := context.WithCancel(context.Background())
	cl := c.client()
	produced := make(chan int64)
	go func() {
		var n int64
		for ; ctx.Err() == nil; n++ {
			send(t, cl, &kgo.Record{Topic: "a", Value: []byte("x")})
		}
		produced <- n
	}()
	var later []*recorder
	for i := range 8 {
		eventually(t, "records", func() (bool, any) { return first.count() > 50*(i+1), first.count() })
		later = append(later, tail.follow(t, "a"))
	}
	cancel()
	n := <-produced
	wantOffsets(t, first, 0, upTo(0, n))
	for _, rec := range later {
		from := rec.opened().parts[0].Next
		if from == 0 {
			t.Errorf("a sink added later was opened at 0")
		}
		wantOffsets(t, rec, 0, upTo(from, n))
	}
	if s := tail.topicStatus("a"); s.Records != uint64(n) || s.Sinks != 9 {
		t.Errorf("%d records for %d sinks, want %d for 9", s.Records, s.Sinks, n)
	}
}

func TestCodecs(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	rec := startTail(t, c.ListenAddrs()).follow(t, "a")
	var want []string
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		cl := c.client(kgo.ProducerBatchCompression(codec))
		var recs []*kgo.Record
		for i := range 600 { // more than one batch of ours
			v := fmt.Sprintf("%s %d %s", name, i, strings.Repeat("x", i))
			want = append(want, v)
			recs = append(recs, &kgo.Record{Topic: "a", Value: []byte(v)})
		}
		send(t, cl, recs...)
	}
	eventually(t, "all records", func() (bool, any) { return rec.count() == len(want), rec.count() })
	if got := rec.values(0); !slices.Equal(got, want) {
		t.Error("values differ from those produced")
	}
}

// Null and empty stay different; headers keep their order and may repeat, be
// binary, null or without a name (case C18, C19, C22, C23).
func TestRecordsAsTheyAre(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	rec := startTail(t, c.ListenAddrs()).follow(t, "a")
	at := time.UnixMilli(1_700_000_000_123)
	for _, r := range []*kgo.Record{
		{Key: []byte("k1"), Value: []byte("v")},
		{Key: []byte("k1"), Value: nil},
		{Key: nil, Value: []byte{}},
		{Key: []byte{}, Value: []byte{0xff, 0, '\n'}, Timestamp: at},
		{Value: []byte("h"), Headers: []kgo.RecordHeader{{Key: "h"}, {Key: "h", Value: []byte{0xff, 0, '\n'}}, {Key: "", Value: []byte("x")}, {Key: "h", Value: []byte("ok")}, {Key: "e", Value: []byte{}}}},
		{Value: []byte("old"), Timestamp: time.UnixMilli(-1)},
	} {
		r.Topic = "a"
		send(t, c.client(), r)
	}
	wantOffsets(t, rec, 0, upTo(0, 6))
	got := rec.recs[0]
	same := func(i int, name string, got, want []byte) {
		t.Helper()
		if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("record %d: %s is %#v, want %#v", i, name, got, want)
		}
	}
	same(1, "value", got[1].value, nil)
	same(1, "key", got[1].key, []byte("k1"))
	same(2, "key", got[2].key, nil)
	same(2, "value", got[2].value, []byte{})
	same(3, "key", got[3].key, []byte{})
	same(3, "value", got[3].value, []byte{0xff, 0, '\n'})
	if got[3].time != at.UnixMilli() {
		t.Errorf("time %d, want %d", got[3].time, at.UnixMilli())
	}
	if got[5].time >= 0 {
		t.Errorf("a record without a timestamp has time %d", got[5].time)
	}
	want := []frame.Header{{Name: "h"}, {Name: "h", Value: []byte{0xff, 0, '\n'}}, {Name: "", Value: []byte("x")}, {Name: "h", Value: []byte("ok")}, {Name: "e", Value: []byte{}}}
	if len(got[4].headers) != len(want) {
		t.Fatalf("headers %v, want %v", got[4].headers, want)
	}
	for i, h := range got[4].headers {
		if h.Name != want[i].Name {
			t.Errorf("header %d is named %q", i, h.Name)
		}
		same(4, "header "+h.Name, h.Value, want[i].Value)
	}
}

// Only committed records are seen, in offset order, and the position passes
// over markers, so that catching up is judged right (cases C12, C13).
func TestTransactions(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	tx := c.client(kgo.TransactionalID("tx"))
	for _, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		transaction(t, tx, "a", 3, how)
	}
	wantOffsets(t, rec, 0, []int64{0, 1, 2, 8, 9, 10})
	eventually(t, "the position to pass the last marker", func() (bool, any) {
		n, _ := rec.position(0)
		return n == 16, n
	})
	eventually(t, "no lag", func() (bool, any) {
		s := tail.topicStatus("a")
		return s.Partitions[0].End == 16 && s.Lag == 0, s
	})
	if l := rec.lost(); len(l) > 0 {
		t.Errorf("gaps of transactions are no loss: %v", l)
	}
}

// An open transaction holds its records back, also those of others behind it;
// a start meanwhile is at the last stable offset, not above it (case C15).
func TestOpenTransaction(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	cl, tx := c.client(), c.client(kgo.TransactionalID("tx"))
	produce(t, cl, "a", 0, 2)
	begin(t, tx, "a", 2)      // 2, 3
	produce(t, cl, "a", 0, 1) // 4
	committed := startTail(t, c.ListenAddrs()).follow(t, "a")
	all := startTail(t, c.ListenAddrs(), func(c *Config) { c.Isolation = ReadUncommitted }).follow(t, "a")
	if got := committed.opened().parts[0].Next; got != 2 {
		t.Errorf("read_committed starts at %d, want 2", got)
	}
	if got := all.opened().parts[0].Next; got != 5 {
		t.Errorf("read_uncommitted starts at %d, want 5", got)
	}
	produce(t, tx, "a", 0, 1) // 5
	wantOffsets(t, all, 0, []int64{5})
	if got := committed.count(); got != 0 {
		t.Errorf("%d records of an open transaction were seen", got)
	}
	if err := tx.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, committed, 0, upTo(2, 6))
}

// A topic that was compacted is read over its gaps, to an end that no record
// carries (cases C16, C17).
func TestCompactionGaps(t *testing.T) {
	c := newCluster(t)
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.Timing.Stalled = 300 * time.Millisecond })
	rec := tail.follow(t, "a") // missing, so it is read whole once it is there
	hold := c.Fault(kfake.Fault{Keys: fetches, Err: kerr.KafkaStorageError, Count: -1})
	if err := c.CreateTopic("a", 1, map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "0"}); err != nil {
		t.Fatal(err)
	}
	cl := c.client()
	for range 5 {
		produce(t, cl, "a", 0, 3)
	}
	send(t, cl, &kgo.Record{Topic: "a", Key: []byte("k1")}) // 15, a tombstone
	send(t, cl, &kgo.Record{Topic: "a", Key: []byte("k9"), Value: []byte("last")})
	c.Compact()
	hold.Remove()
	wantOffsets(t, rec, 0, []int64{12, 14, 16})
	send(t, cl, &kgo.Record{Topic: "a", Key: []byte("k9"), Value: []byte("live")})
	wantOffsets(t, rec, 0, []int64{12, 14, 16, 17})
	if l := rec.lost(); len(l) > 0 {
		t.Errorf("compaction is no loss: %v", l)
	}
	if n := tail.Status().Counters.Rebuilds; n > 0 {
		t.Errorf("the reader was replaced %d times", n)
	}
}

// A record far above the fetch size comes whole, and what is around it too
// (case C21).
func TestRecordAboveFetchSize(t *testing.T) {
	c := newCluster(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "8388608"}), kfake.SeedTopics(1, "a"))
	rec := startTail(t, c.ListenAddrs()).follow(t, "a")
	cl := c.client(kgo.ProducerBatchMaxBytes(8<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	big := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	for _, v := range [][]byte{[]byte("before"), big, []byte("after")} {
		send(t, cl, &kgo.Record{Topic: "a", Value: v})
	}
	wantOffsets(t, rec, 0, upTo(0, 3))
	if got := len(rec.values(0)[1]); got != len(big) {
		t.Errorf("the big record has %d bytes, want %d", got, len(big))
	}
}
