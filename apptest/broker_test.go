package apptest

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// broker is a Kafka broker that a test writes to, stops and starts again.
type broker struct {
	addr  string
	start func() // with what it had
	stop  func() // without a word to its clients
	clean func() // compacts what is to be compacted; nil: it does so by itself, behind the newest records

	t        testing.TB
	producer *kgo.Client

	mu      sync.Mutex
	written map[place]int64 // numbered records made so far
}

// place is one partition of one topic.
type place struct {
	topic     string
	partition int32
}

func newBroker(t testing.TB, addr string) *broker {
	return &broker{addr: addr, t: t, written: map[place]int64{}}
}

// fake returns a broker in this process, which is yet to be started.
func fake(t testing.TB) *broker {
	t.Helper()
	b, _ := fakeCluster(t)
	return b
}

// fakeCluster is fake with what runs it, nil while the broker is stopped.
func fakeCluster(t testing.TB) (b *broker, running func() *kfake.Cluster) {
	t.Helper()
	b = newBroker(t, testkit.FreeAddr(t))
	_, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.Ports(n), kfake.DataDir(t.TempDir())}
	var cluster *kfake.Cluster
	b.start = func() {
		t.Helper()
		var err error
		if cluster, err = kfake.NewCluster(opts...); err != nil {
			t.Fatal(err)
		}
	}
	b.stop = func() {
		if cluster != nil {
			cluster.Close()
			cluster = nil
		}
	}
	b.clean = func() { cluster.Compact() }
	t.Cleanup(func() { b.stop() })
	return b, func() *kfake.Cluster { return cluster }
}

// started returns a broker in this process with topics of a number of partitions.
func started(t testing.TB, partitions int32, topics ...string) *broker {
	t.Helper()
	b := fake(t)
	b.start()
	for _, topic := range topics {
		b.create(topic, partitions)
	}
	return b
}

// client returns a client that writes each record to the partition it names, at once.
func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.DisableClientMetrics(),
	}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	return cl
}

// writer is the client that most records are written with. It does not survive
// what changes a topic's id or the broker's memory: see forget.
func (b *broker) writer() *kgo.Client {
	b.t.Helper()
	if b.producer == nil {
		b.producer = b.client()
	}
	return b.producer
}

// forget makes the next records come from a new producer.
func (b *broker) forget() { b.producer = nil }

func (b *broker) admin() *kadm.Client { return kadm.NewClient(b.writer()) }

// create makes a topic, and tries again while one of that name is being deleted.
func (b *broker) create(topic string, partitions int32) {
	b.t.Helper()
	testkit.Eventually(b.t, patience, "creation of "+topic, func() bool {
		_, err := b.admin().CreateTopic(within(b.t), partitions, 1, nil, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			b.t.Fatalf("create %s: %v", topic, err)
		}
		return err == nil
	})
}

// remove deletes a topic; records of another one of its name are numbered anew.
func (b *broker) remove(topic string) {
	b.t.Helper()
	if _, err := b.admin().DeleteTopic(within(b.t), topic); err != nil {
		b.t.Fatalf("delete %s: %v", topic, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range b.written {
		if p.topic == topic {
			delete(b.written, p)
		}
	}
	b.forget()
}

// grow raises a topic to n partitions.
func (b *broker) grow(topic string, n int) {
	b.t.Helper()
	resp, err := b.admin().UpdatePartitions(within(b.t), n, topic)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		b.t.Fatalf("raise %s to %d partitions: %v", topic, n, err)
	}
	b.forget()
}

// send writes records and waits until the broker has them.
func (b *broker) send(recs ...*kgo.Record) {
	b.t.Helper()
	sendBy(b.t, b.writer(), recs...)
}

func sendBy(t testing.TB, cl *kgo.Client, recs ...*kgo.Record) {
	t.Helper()
	if err := cl.ProduceSync(within(t), recs...).FirstErr(); err != nil {
		t.Fatalf("produce to %s/%d: %v", recs[0].Topic, recs[0].Partition, err)
	}
}

// produce writes n numbered records to a partition.
func (b *broker) produce(topic string, partition int32, n int) {
	b.t.Helper()
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = b.numbered(topic, partition, false)
	}
	b.send(recs...)
}

// numbered makes the next record of a partition. Its value says where it is:
// see valueOf.
func (b *broker) numbered(topic string, partition int32, last bool) *kgo.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := place{topic, partition}
	seq := b.written[at]
	b.written[at]++
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(valueOf(partition, seq, last))}
}

// valueOf is the value of a numbered record: where it is, and then lines and
// characters of several bytes, so that cuts fall into the middle of things.
func valueOf(partition int32, seq int64, last bool) string {
	kind := "more"
	if last {
		kind = lastRecord
	}
	return fmt.Sprintf("%d/%d/%s\n%s", partition, seq, kind, strings.Repeat("é\n€ ", int(seq*31%17)))
}

// lastRecord marks the last record of a partition.
const lastRecord = "last"
