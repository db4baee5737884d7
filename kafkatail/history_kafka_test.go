//go:build kafka

package kafkatail

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/hub"
)

// historian reads a topic of real brokers.
func (r *brokers) historian(t testing.TB, topic string, change ...func(*Config)) *historian {
	t.Helper()
	var m topicMeta
	eventually(t, topic+" to be known", func() (bool, any) { // brokers hear of a new topic after its creator
		got, err := r.ask.metadata(within(t), []string{topic})
		m = got[topic]
		return err == nil && m.err == nil, m.err
	})
	return r.tail(t, change...).historian(t, topic, m.id)
}

// newer is for a producer's client with options.
func (r *brokers) newer(t testing.TB) func(...kgo.Opt) *kgo.Client {
	return func(opts ...kgo.Opt) *kgo.Client { return r.client(t, opts...) }
}

// Every codec, from every kind of offset, in batches whose first offset a read
// begins with.
func kafkaHistory(t *testing.T, r *brokers) {
	r.create(t, "history", 2, nil)
	values, bases := fill(t, r.newer(t), "history", 1, 3000)
	h := r.historian(t, "history")
	got := h.all(1, 0)
	if len(got) != len(values) {
		t.Fatalf("read %d records, want %d", len(got), len(values))
	}
	for i, k := range got {
		if k.offset != int64(i) || string(k.value) != values[i] || len(k.headers) != 1 || k.time <= 0 {
			t.Fatalf("record %d is %d, %.40q, %v", i, k.offset, k.value, k.headers)
		}
	}
	for from := int64(0); from < int64(len(values)); from += 41 {
		span, recs, err := h.read(1, from)
		if err != nil || span.Start != bases[from] || recs[0].offset != span.Start {
			t.Fatalf("from %d: told from %d, the batch begins at %d: %v", from, span.Start, bases[from], err)
		}
	}
	n := int64(len(values))
	for _, from := range []int64{n, n + 1, 1 << 62} {
		if span, recs, err := h.read(1, from); err != nil || span.Next != from || len(recs) > 0 {
			t.Errorf("from %d: %+v, %v", from, span, err)
		}
	}
	wantRead(t, h.all(0, 0), nil)
	wantBounds(t, h, hub.Bound{}, hub.Bound{Partition: 1, End: n})

	var wg sync.WaitGroup // many at once
	for range 40 {
		wg.Go(func() {
			from := rand.Int64N(n)
			wantRead(t, h.all(1, from), upTo(from, n))
		})
	}
	wg.Wait()
}

// A record above the fetch size comes whole (KIP-74).
func kafkaHistoryLarge(t *testing.T, r *brokers) {
	r.create(t, "large", 1, map[string]*string{"max.message.bytes": new("8388608")})
	cl := r.client(t, kgo.ProducerBatchMaxBytes(8<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	big := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	for _, v := range [][]byte{[]byte("before"), big, []byte("after")} {
		send(t, cl, &kgo.Record{Topic: "large", Value: v})
	}
	got := r.historian(t, "large").all(0, 0)
	wantRead(t, got, upTo(0, 3))
	if !bytes.Equal(got[1].value, big) {
		t.Errorf("the big record has %d bytes", len(got[1].value))
	}
}

// What is told of interleaved transactions is what a consumer gets, from
// whatever offset.
func kafkaHistoryTransactions(t *testing.T, r *brokers) {
	r.create(t, "history-tx", 1, nil)
	h := r.historian(t, "history-tx")
	all := r.historian(t, "history-tx", func(c *Config) { c.Isolation = ReadUncommitted })
	plain, x, y := r.client(t), r.client(t, kgo.TransactionalID("history-x")), r.client(t, kgo.TransactionalID("history-y"))
	const rounds = 8
	for i := range rounds {
		begin(t, x, "history-tx", 2)
		begin(t, y, "history-tx", 1)
		produce(t, plain, "history-tx", 0, 1)
		produce(t, x, "history-tx", 0, 1)
		if err := x.EndTransaction(within(t), i%2 == 0); err != nil {
			t.Fatal(err)
		}
		produce(t, y, "history-tx", 0, 1)
		if err := y.EndTransaction(within(t), i%3 == 0); err != nil {
			t.Fatal(err)
		}
	}
	const end = int64(rounds * (6 + 2)) // records and markers
	r.waitEnd(t, "history-tx", end)
	for _, tc := range []struct {
		h         *historian
		isolation string
	}{{h, ReadCommitted}, {all, ReadUncommitted}} {
		want := consume(t, r.newer(t), "history-tx", 0, end, tc.isolation)
		for from := range end {
			span, recs, err := tc.h.read(0, from)
			if err != nil || span.Next != end {
				t.Fatalf("%s from %d: %+v, %v", tc.isolation, from, span, err)
			}
			i, _ := slices.BinarySearch(want, span.Start)
			wantRead(t, recs, want[i:])
		}
	}
	begin(t, x, "history-tx", 2)
	produce(t, plain, "history-tx", 0, 1)
	if span, recs, err := h.read(0, end); err != nil || span.Next != end || len(recs) > 0 {
		t.Errorf("behind an open transaction: %+v, %v", span, err)
	}
	wantRead(t, all.all(0, end), upTo(end, end+3))
	wantBounds(t, h, hub.Bound{End: end})
	wantBounds(t, all, hub.Bound{End: end + 3})
	if err := x.EndTransaction(within(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	r.waitEnd(t, "history-tx", end+4)
	wantRead(t, h.all(0, end), upTo(end, end+3))
}

// end is where partition 0 of a topic ends, for who reads what is committed.
func (r *brokers) end(t testing.TB, topic string) int64 {
	t.Helper()
	ends, err := r.adm.ListCommittedOffsets(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset
}

// waitEnd waits for markers: who ends a transaction is answered before they are
// written.
func (r *brokers) waitEnd(t testing.TB, topic string, want int64) {
	t.Helper()
	eventually(t, "the last marker", func() (bool, any) {
		n := r.end(t, topic)
		return n == want, n
	})
}

func kafkaHistoryExpired(t *testing.T, r *brokers) {
	r.create(t, "history-old", 1, nil)
	cl := r.client(t, kgo.ManualFlushing())
	for range 4 {
		var recs []*kgo.Record
		for range 5 {
			recs = append(recs, &kgo.Record{Topic: "history-old", Value: []byte("x")})
		}
		oneBatch(t, cl, recs...)
	}
	h := r.historian(t, "history-old")
	wantRead(t, h.all(0, 0), upTo(0, 20))
	deleteRecords := func(to int64) {
		var del kadm.Offsets
		del.AddOffset("history-old", 0, to, -1)
		if _, err := r.adm.DeleteRecords(within(t), del); err != nil {
			t.Fatal(err)
		}
	}
	deleteRecords(12)
	for _, from := range []int64{0, 11} {
		var expired *hub.ExpiredError
		if _, _, err := h.read(0, from); !errors.As(err, &expired) || expired.Start != 12 {
			t.Errorf("from %d: %v", from, err)
		}
	}
	span, recs, err := h.read(0, 13)
	if err != nil || span.Start != 12 {
		t.Errorf("read %+v, %v", span, err)
	}
	wantRead(t, recs, upTo(12, 20))
	eventually(t, "the bounds", func() (bool, any) {
		got, err := h.Bounds(within(t), h.topic, h.id)
		return err == nil && got[0] == hub.Bound{Start: 12, End: 20}, got
	})
	deleteRecords(20)
	if span, _, err := h.read(0, 20); err != nil || span.Next != 20 {
		t.Errorf("at the end of a log that is empty: %+v, %v", span, err)
	}
}

func kafkaHistoryRecreated(t *testing.T, r *brokers) {
	r.create(t, "history-again", 1, nil)
	h := r.historian(t, "history-again")
	produce(t, r.client(t), "history-again", 0, 5)
	wantRead(t, h.all(0, 0), upTo(0, 5))
	if _, err := r.adm.DeleteTopic(within(t), "history-again"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic to be created again", func() (bool, any) {
		_, err := r.adm.CreateTopic(within(t), 1, 1, nil, "history-again")
		return err == nil, err
	})
	produce(t, r.client(t), "history-again", 0, 9)
	eventually(t, "the re-creation", func() (bool, any) {
		_, recs, err := h.read(0, 0)
		if len(recs) > 0 {
			t.Fatal("records of another topic")
		}
		return errors.Is(err, hub.ErrRecreated), err
	})
	eventually(t, "bounds of what is there now", func() (bool, any) {
		_, err := h.Bounds(within(t), "history-again", h.id)
		return errors.Is(err, hub.ErrRecreated), err
	})
	wantRead(t, r.historian(t, "history-again").all(0, 0), upTo(0, 9))
}

// What the cleaner left is read over its gaps, from offsets in them too.
func kafkaHistoryCompacted(t *testing.T, r *brokers) {
	r.create(t, "history-keys", 1, map[string]*string{
		"cleanup.policy": new("compact"), "segment.ms": new("200"), "min.cleanable.dirty.ratio": new("0.01"), "delete.retention.ms": new("0"),
	})
	h := r.historian(t, "history-keys")
	cl, many := r.client(t), r.client(t, kgo.ManualFlushing())
	for range 5 {
		var recs []*kgo.Record
		for i := range 3 {
			recs = append(recs, &kgo.Record{Topic: "history-keys", Key: []byte{'k', byte(i)}, Value: []byte("x")})
		}
		oneBatch(t, many, recs...)
	}
	send(t, cl, &kgo.Record{Topic: "history-keys", Key: []byte{'k', 1}}) // a tombstone
	var left []int64
	eventually(t, "the log to be compacted", func() (bool, any) {
		send(t, cl, &kgo.Record{Topic: "history-keys", Key: []byte("tick")})
		left = offsetsOf(h.all(0, 0))
		return left[0] >= 12 && !slices.Contains(left, 13), brief(left)
	})
	end := r.end(t, "history-keys")
	for from := int64(0); from < end; from += 3 {
		got := offsetsOf(h.all(0, from))
		if len(got) == 0 || got[0] < from || got[len(got)-1] != end-1 {
			t.Errorf("from %d: %s of %s", from, brief(got), brief(left))
		}
	}
}

// The newest records are there before the streams begin.
func kafkaWarmup(t *testing.T, r *brokers) {
	r.create(t, "warm", 2, nil)
	produce(t, r.client(t), "warm", 0, 50)
	tx := r.client(t, kgo.TransactionalID("warm"))
	transaction(t, tx, "warm", 3, kgo.TryAbort) // 50-52, marker 53
	r.waitEnd(t, "warm", 54)
	tail := r.tail(t, warm(20))
	rec := tail.follow(t, "warm")
	if got := [][]int64{nexts(rec.warmed()), nexts(rec.opened())}; !slices.Equal(got[0], []int64{34, 0}) || !slices.Equal(got[1], []int64{54, 0}) {
		t.Errorf("warmed from and opened at %v", got)
	}
	wantOffsets(t, rec, 0, upTo(34, 50))
	if n := len(tail.log.lines("outcome=complete")); n != 1 {
		t.Errorf("log:\n%s", tail.log)
	}
}

// A leader is killed while history is read, comes back, and the next one is
// killed: every read gives what it should or an error that passes, and reads
// of every partition work again while the broker is still away.
func kafkaHistoryLeaderKilled(t *testing.T, r *brokers) {
	r.create(t, "history", 3, nil)
	var values [3][]string
	for p := range values {
		values[p], _ = fill(t, r.newer(t), "history", int32(p), 1000)
	}
	h := r.historian(t, "history")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var good [3]atomic.Int64 // reads that went well, by partition
	var failed atomic.Int64
	for range 6 {
		wg.Go(func() {
			for ctx.Err() == nil {
				p := rand.Int32N(3)
				from := rand.Int64N(int64(len(values[p])))
				span, recs, err := h.read(p, from)
				if err != nil {
					if errors.Is(err, hub.ErrRecreated) || errors.As(err, new(*hub.ExpiredError)) {
						t.Errorf("from %d: %v", from, err)
					}
					failed.Add(1)
					continue
				}
				if span.Next == from {
					t.Errorf("partition %d from %d: nothing", p, from)
				}
				for i, k := range recs {
					if k.offset != span.Start+int64(i) || string(k.value) != values[p][k.offset] {
						t.Errorf("partition %d: record %d is %q", p, k.offset, k.value)
					}
				}
				good[p].Add(1)
			}
		})
	}
	flows := func(p int) {
		t.Helper()
		was := good[p].Load()
		eventually(t, "reads to go well", func() (bool, any) { return good[p].Load() >= was+20, good[p].Load() - was })
	}
	for p := range 2 {
		flows(p)
		i := r.Index(r.leader(t, "history", int32(p)))
		began := time.Now()
		r.Kill(i)
		flows(p)
		t.Logf("history of partition %d is read again %v after its leader was killed; %d reads failed so far", p, time.Since(began).Round(10*time.Millisecond), failed.Load())
		r.Restart(i)
	}
	cancel()
	wg.Wait()
	for p := range values {
		wantRead(t, h.all(int32(p), 0), upTo(0, int64(len(values[p]))))
	}
}
