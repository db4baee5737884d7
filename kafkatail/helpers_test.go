package kafkatail

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The requests that tests have fail.
var (
	fetches     = []kmsg.Key{kmsg.Fetch}
	metadata    = []kmsg.Key{kmsg.Metadata}
	listOffsets = []kmsg.Key{kmsg.ListOffsets}
)

// patience bounds every wait of a test; it is no pause, and only a failing
// test spends it.
var patience = 20 * time.Second

// eventually waits until cond holds; cond says what it sees instead.
func eventually(t testing.TB, what string, cond func() (ok bool, saw any)) {
	t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		ok, saw := cond()
		if ok {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited for %s: %+v", what, saw)
		}
	}
}

// cluster is an in-process Kafka on ports of the system's choice.
type cluster struct {
	*kfake.Cluster
	t testing.TB
}

func newCluster(t testing.TB, opts ...kfake.Opt) *cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &cluster{c, t}
}

// metadataBrokers are the brokers as metadata lists them.
func (c *cluster) metadataBrokers() (all []kmsg.MetadataResponseBroker) {
	for i, addr := range c.ListenAddrs() {
		at, b := netip.MustParseAddrPort(addr), kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = int32(i), at.Addr().String(), int32(at.Port())
		all = append(all, b)
	}
	return all
}

func (c *cluster) client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	return newClient(c.t, append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}, opts...)...)
}

// newClient makes a client that produces where it is told, at once.
func newClient(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.DisableClientMetrics(),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// produce writes n records one after the other, so that offsets follow order.
func produce(t testing.TB, cl *kgo.Client, topic string, partition int32, n int) {
	t.Helper()
	for i := range n {
		send(t, cl, &kgo.Record{Topic: topic, Partition: partition, Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i)})
	}
}

func send(t testing.TB, cl *kgo.Client, recs ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := cl.ProduceSync(ctx, recs...).FirstErr(); err != nil {
		t.Fatalf("produce to %s/%d: %v", recs[0].Topic, recs[0].Partition, err)
	}
}

// oneBatch writes records in one batch; the client is one with ManualFlushing.
func oneBatch(t testing.TB, cl *kgo.Client, recs ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, rec := range recs {
		cl.Produce(ctx, rec, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce to %s/%d: %v", rec.Topic, rec.Partition, err)
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// transaction produces n records in one transaction and ends it.
func transaction(t testing.TB, cl *kgo.Client, topic string, n int, how kgo.TransactionEndTry) {
	t.Helper()
	begin(t, cl, topic, n)
	if err := cl.EndTransaction(context.Background(), how); err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, cl *kgo.Client, topic string, n int) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, topic, 0, n)
}

// addPartitions raises a topic to n partitions.
func addPartitions(t testing.TB, cl *kgo.Client, topic string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := kadm.NewClient(cl).UpdatePartitions(ctx, n, topic)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	cl.ForceMetadataRefresh()
}

// logBuffer keeps a test's log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// lines returns the lines that hold s.
func (l *logBuffer) lines(s string) []string {
	var got []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, s) {
			got = append(got, line)
		}
	}
	return got
}

// running is a tail at work.
type running struct {
	*Tail
	log  *logBuffer
	stop func() // ends Run and waits for it
}

// quick are intervals short enough for tests.
var quick = Timing{
	Look:      60 * time.Millisecond,
	Soon:      30 * time.Millisecond,
	RetryMin:  20 * time.Millisecond,
	RetryMax:  200 * time.Millisecond,
	Request:   5 * time.Second,
	Confirm:   400 * time.Millisecond,
	Denied:    200 * time.Millisecond,
	Stalled:   5 * time.Second,
	FetchWait: 100 * time.Millisecond,
}

// startTail runs a tail until the test ends.
func startTail(t testing.TB, brokers []string, change ...func(*Config)) *running {
	t.Helper()
	cfg := Config{Brokers: brokers, Timing: quick}
	for _, f := range change {
		f(&cfg)
	}
	out := new(logBuffer)
	tail, err := New(cfg, slog.New(slog.NewTextHandler(out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tail.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the tail:\n%s", out)
		}
	})
	t.Cleanup(stop)
	return &running{tail, out, stop}
}

// follow tails topic into a new recorder and waits until it is open.
func (r *running) follow(t testing.TB, topic string) *recorder {
	t.Helper()
	rec := newRecorder(t)
	r.Tail.Tail(topic, rec)
	waitOpen(t, rec)
	return rec
}

func waitOpen(t testing.TB, rec *recorder) {
	t.Helper()
	eventually(t, "the sink to be opened", func() (bool, any) { return rec.opened() != nil, "it is not" })
}

// topicStatus returns the status of one topic.
func (r *running) topicStatus(name string) TopicStatus {
	for _, tp := range r.Status().Topics {
		if tp.Name == name {
			return tp
		}
	}
	return TopicStatus{}
}

func waitState(t testing.TB, r *running, topic string, want State) {
	t.Helper()
	eventually(t, topic+" to be "+string(want), func() (bool, any) {
		s := r.topicStatus(topic)
		return s.State == want, s
	})
}

// errorCount is how often a kind of fetch error was seen.
func (r *running) errorCount(k errorKind) uint64 { return r.Status().Counters.Errors[k.String()] }
