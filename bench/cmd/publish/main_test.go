package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestPublish(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cfg := config{topic: "events", partitions: 3, create: true, rate: 2000, size: 100, count: 30}
	client, err := newClient(cluster.ListenAddrs(), cfg.topic)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 2 { // the second time it exists
		if err := create(t.Context(), client, cfg); err != nil {
			t.Fatal(err)
		}
	}
	done := publish(t.Context(), client, cfg)
	if done.Sent != 30 || done.Failed != 0 || !slices.Equal(done.Partitions, []int64{10, 10, 10}) {
		t.Errorf("%+v; want 10 for each partition", done)
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics(cfg.topic))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	next := map[int32]int64{}
	for n := 0; n < 30; {
		fetches := consumer.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			var v struct {
				P   int32
				Seq int64
				TS  int64
				Pad string
			}
			if err := json.Unmarshal(r.Value, &v); err != nil {
				t.Fatalf("%s: %v", r.Value, err)
			}
			age := time.Since(time.Unix(0, v.TS))
			if v.P != r.Partition || v.Seq != next[v.P] || v.Seq != r.Offset || len(r.Value) != 100 || age < 0 || age > time.Minute {
				t.Errorf("partition %d, offset %d: %s", r.Partition, r.Offset, r.Value)
			}
			next[v.P]++
			n++
		}
	}
}

func TestWaitFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go")
	done := make(chan error, 1)
	go func() { done <- waitFor(t.Context(), file) }()
	select {
	case err := <-done:
		t.Fatalf("ended with %v before the file was there", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := waitFor(t.Context(), file+"/x"); err == nil {
		t.Error("no error for a path through a file")
	}
}
