package kafkaload_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/bench"
	"tailcast/bench/kafkaload"
)

// value is what a record says about itself.
type value struct {
	P   int32
	Seq int64
	TS  int64
	U   int64
}

// publish carries out orders and returns the n records that the topic then has,
// by partition.
func publish(t *testing.T, cfg kafkaload.Config, n int, orders ...bench.Order) map[int32][]*kgo.Record {
	t.Helper()
	broker, err := kafkaload.OpenBroker(1, false, "other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	cfg.Brokers, cfg.Topic, cfg.Create = broker.ListenAddrs(), "events", true
	for range 2 { // the second time the topic exists
		p, err := kafkaload.NewPublisher(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		if done := p.Publish(t.Context(), bench.Order{}); done.Error != "" {
			t.Fatal(done.Error)
		}
		for _, o := range orders {
			if done := p.Publish(t.Context(), o); done.Sent != o.Count || done.Failed != 0 || done.Error != "" {
				t.Errorf("order %+v: %+v", o, done)
			}
		}
		orders = nil
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.ConsumeTopics(cfg.Topic))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	got := map[int32][]*kgo.Record{}
	for have := 0; have < n; {
		fetches := consumer.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			got[r.Partition] = append(got[r.Partition], r)
			have++
		}
	}
	return got
}

func read(t *testing.T, r *kgo.Record) (v value) {
	t.Helper()
	if err := json.Unmarshal(r.Value, &v); err != nil {
		t.Fatalf("%s: %v", r.Value, err)
	}
	if age := time.Since(time.Unix(0, v.TS)); v.P != r.Partition || age < 0 || age > time.Minute || len(r.Value) != 100 {
		t.Errorf("partition %d, offset %d: %s", r.Partition, r.Offset, r.Value)
	}
	return v
}

// TestPublish shows that the numbers of a partition go on from order to order.
func TestPublish(t *testing.T) {
	for _, codec := range []string{"none", "lz4"} {
		got := publish(t, kafkaload.Config{Partitions: 3, Size: 100, Codec: codec}, 30, bench.Order{Rate: 2000, Count: 20}, bench.Order{Count: 10})
		for p := range int32(3) {
			for i, r := range got[p] {
				if v := read(t, r); v.Seq != int64(i) || v.Seq != r.Offset || v.U != 0 {
					t.Errorf("%s, partition %d: record %d is %+v", codec, p, i, v)
				}
			}
			if len(got[p]) != 10 {
				t.Errorf("%s: %d records in partition %d, want 10", codec, len(got[p]), p)
			}
		}
	}
}

// TestPublishForUsers shows that each user's records have their key, one
// partition and numbers of their own.
func TestPublishForUsers(t *testing.T) {
	got := publish(t, kafkaload.Config{Partitions: 2, Users: 5, Size: 100, Codec: "none"}, 15, bench.Order{Count: 15})
	seqs := map[string][]int64{}
	for _, records := range got {
		for _, r := range records {
			v := read(t, r)
			if int64(r.Partition) != v.U%2 {
				t.Errorf("user %d in partition %d", v.U, r.Partition)
			}
			seqs[string(r.Key)] = append(seqs[string(r.Key)], v.Seq)
		}
	}
	for _, key := range []string{"1", "2", "3", "4", "5"} {
		if !slices.Equal(seqs[key], []int64{0, 1, 2}) {
			t.Errorf("user %s got %v, want 0, 1, 2", key, seqs[key])
		}
	}
}

// TestPublishChanges shows that a compacted topic gets the records of
// bench.Changes, each in the partition of its key.
func TestPublishChanges(t *testing.T) {
	const keys, n = 20, 300
	got := publish(t, kafkaload.Config{Partitions: 3, Keys: keys, Size: 100, Codec: "none"}, n, bench.Order{Count: keys}, bench.Order{Count: n - keys})
	changes := bench.Changes{Keys: keys, Partitions: 3}
	var at [3]int
	deletes := 0
	for range n {
		p, deleted := changes.Next(time.Time{})
		r := got[p.Partition][at[p.Partition]]
		at[p.Partition]++
		if string(r.Key) != strconv.FormatInt(p.User, 10) || deleted != (r.Value == nil) {
			t.Errorf("record %d of partition %d: key %s, value %s; want %+v, deleted: %t", r.Offset, r.Partition, r.Key, r.Value, p, deleted)
		}
		if deleted {
			deletes++
		} else if v := read(t, r); v.U != p.User || v.Seq != p.Seq {
			t.Errorf("record %d of partition %d is %+v, want %+v", r.Offset, r.Partition, v, p)
		}
	}
	if deletes == 0 {
		t.Error("nothing was deleted")
	}
}

func TestPublisherErrors(t *testing.T) {
	for _, cfg := range []kafkaload.Config{{Partitions: 1, Codec: "zip"}, {Codec: "none"}} {
		if _, err := kafkaload.NewPublisher(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}
