// Command publish writes numbered records to a Kafka topic at a fixed rate, for
// ssebench to verify: round robin over the partitions, each counting from 0.
// It prints what it wrote as JSON.
//
//	publish -brokers 127.0.0.1:9092 -topic events -partitions 12 -rate 1000 -dur 60s
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"

	"tailcast/bench"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// config is the command line.
type config struct {
	brokers    string
	topic      string
	partitions int
	create     bool
	rate       float64
	size       int
	count      int64
	dur        time.Duration
	wait       string
}

// totals is what was written.
type totals struct {
	Topic      string  `json:"topic"`
	Sent       int64   `json:"sent"` // acknowledged
	Failed     int64   `json:"failed"`
	Partitions []int64 `json:"partitions"` // acknowledged, by partition
	Seconds    float64 `json:"seconds"`
	Rate       float64 `json:"rate"`
	// BehindMS is how late the latest record was handed to the producer; well
	// above a millisecond, the rate was not kept.
	BehindMS float64 `json:"behind_ms"`
	Error    string  `json:"error,omitempty"` // the first
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func run() error {
	var cfg config
	flag.StringVar(&cfg.brokers, "brokers", "127.0.0.1:9092", "bootstrap addresses, separated by commas")
	flag.StringVar(&cfg.topic, "topic", "events", "topic to write to")
	flag.IntVar(&cfg.partitions, "partitions", 1, "partitions to write to, from 0")
	flag.BoolVar(&cfg.create, "create", false, "create the topic with so many partitions, one replica, unless it exists")
	flag.Float64Var(&cfg.rate, "rate", 10, "records a second, whether or not earlier ones are acknowledged")
	flag.IntVar(&cfg.size, "size", 200, "bytes of a record's value")
	flag.Int64Var(&cfg.count, "count", 0, "records to write; 0 writes for -dur")
	flag.DurationVar(&cfg.dur, "dur", 10*time.Second, "time to write for, without -count")
	flag.StringVar(&cfg.wait, "wait", "", "begin when this file exists")
	flag.Parse()
	switch {
	case cfg.rate <= 0:
		return fmt.Errorf("-rate %v: want more than 0", cfg.rate)
	case cfg.partitions < 1:
		return fmt.Errorf("-partitions %d: want at least 1", cfg.partitions)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := newClient(strings.Split(cfg.brokers, ","), cfg.topic)
	if err != nil {
		return fmt.Errorf("-brokers %s: %w", cfg.brokers, err)
	}
	defer client.Close()
	if cfg.create {
		if err := create(ctx, client, cfg); err != nil {
			return err
		}
	}
	if err := waitFor(ctx, cfg.wait); err != nil {
		return err
	}
	done := publish(ctx, client, cfg)
	if err := json.NewEncoder(os.Stdout).Encode(done); err != nil {
		return err
	}
	if done.Failed > 0 {
		return fmt.Errorf("%d records failed: %s", done.Failed, done.Error)
	}
	return nil
}

// newClient makes a producer that sends each record at once, to the partition
// it names, and has it acknowledged by all replicas.
func newClient(brokers []string, topic string) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordDeliveryTimeout(30*time.Second),
	)
}

func create(ctx context.Context, client *kgo.Client, cfg config) error {
	_, err := kadm.NewClient(client).CreateTopic(ctx, int32(cfg.partitions), 1, nil, cfg.topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", cfg.topic, err)
	}
	return nil
}

// waitFor returns when file exists.
func waitFor(ctx context.Context, file string) error {
	for file != "" {
		_, err := os.Stat(file)
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("-wait: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// publish hands records to the producer as they are due, and returns when all
// are acknowledged or have failed.
func publish(ctx context.Context, client *kgo.Client, cfg config) totals {
	t := totals{Topic: cfg.topic, Partitions: make([]int64, cfg.partitions)}
	var mu sync.Mutex // guards t; the producer calls back from its own goroutine
	acknowledged := func(r *kgo.Record, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Failed++
			if t.Error == "" {
				t.Error = err.Error()
			}
			return
		}
		t.Sent++
		t.Partitions[r.Partition]++
	}
	count := cfg.count
	if count == 0 {
		count = int64(cfg.dur.Seconds() * cfg.rate)
	}
	began, pace := time.Now(), bench.NewPacer(cfg.rate)
	for i := int64(0); i < count && ctx.Err() == nil; i++ {
		p := int32(i % int64(cfg.partitions))
		due := pace.Wait()
		payload := bench.Payload{Partition: p, Seq: i / int64(cfg.partitions), Time: due.UnixNano()}
		client.Produce(context.Background(), &kgo.Record{
			Key:       strconv.AppendInt([]byte("k"), int64(p), 10),
			Value:     payload.Append(nil, cfg.size),
			Partition: p,
		}, acknowledged)
	}
	// What is under way is worth the wait also when interrupted.
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	flushErr := client.Flush(flushing)
	mu.Lock()
	defer mu.Unlock()
	if flushErr != nil && t.Error == "" {
		t.Error = flushErr.Error()
	}
	t.Seconds = time.Since(began).Seconds()
	t.Rate = float64(t.Sent) / t.Seconds
	t.BehindMS = float64(pace.Behind()) / float64(time.Millisecond)
	return t
}
