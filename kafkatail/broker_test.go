package kafkatail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// freePort returns a port that nothing listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Kafka is away at the start, and comes (case C25).
func TestBrokerAwayAtStart(t *testing.T) {
	port := freePort(t)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	tail := startTail(t, []string{addr})
	rec := newRecorder(t)
	tail.Tail.Tail("a", rec)
	eventually(t, "the reason", func() (bool, any) { return tail.Status().Error != "", "" })
	s := tail.Status()
	if s.Connected || !strings.Contains(s.Error, "--kafka-brokers") || !strings.Contains(s.Error, addr) {
		t.Errorf("status %+v", s)
	}
	if err := s.Ready(time.Now()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("ready: %v", err)
	}
	c := newCluster(t, kfake.Ports(port), kfake.SeedTopics(1, "a"))
	waitOpen(t, rec)
	produce(t, c.client(), "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	eventually(t, "readiness", func() (bool, any) {
		err := tail.Status().Ready(time.Now())
		return err == nil, err
	})
	for what, n := range map[string]int{"does not answer": 1, "Kafka answers": 1} {
		if got := len(tail.log.lines(what)); got != n {
			t.Errorf("%q is logged %d times, want %d", what, got, n)
		}
	}
}

// Kafka goes away and comes back with what it had: streams go on where they
// were, and no loop spins meanwhile (case C26).
func TestBrokerAwayLater(t *testing.T) {
	port, dir := freePort(t), t.TempDir()
	start := func() *cluster {
		return newCluster(t, kfake.Ports(port), kfake.SeedTopics(1, "a"), kfake.DataDir(dir))
	}
	c := start()
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	produce(t, c.client(), "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	c.Close()
	eventually(t, "the loss of contact", func() (bool, any) { return !tail.Status().Connected, "" })
	if err := tail.Status().Ready(time.Now()); err != nil {
		t.Errorf("a moment without Kafka makes the node unready: %v", err)
	}
	if err := tail.Status().Ready(time.Now().Add(contactMax + time.Second)); err == nil {
		t.Error("ready though Kafka was away for long")
	}
	late := tail.follow(t, "a") // opens where the reading is, without Kafka
	if got := late.opened().parts[0].Next; got != 3 {
		t.Errorf("opened at %d, want 3", got)
	}
	was := tail.Status().Counters
	eventually(t, "three more tries", func() (bool, any) { return tail.Status().Counters.Failed >= was.Failed+3, "" })
	if n := tail.Status().Counters.Polls - was.Polls; n > 30 {
		t.Errorf("%d polls without a broker", n)
	}
	c = start()
	produce(t, c.client(), "a", 0, 2)
	wantOffsets(t, rec, 0, upTo(0, 5))
	wantOffsets(t, late, 0, upTo(3, 5))
}

// Leaders move all the time, connections are cut and fetches fail while three
// producers write: every record comes once and in order.
func TestChaos(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(3, "a"))
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var want [3]int64
	for p := range want {
		cl := c.client(kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }))
		wg.Go(func() {
			for ctx.Err() == nil {
				send(t, cl, &kgo.Record{Topic: "a", Partition: int32(p), Value: []byte("x")})
				want[p]++
			}
		})
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	transient := []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.OffsetNotAvailable, kerr.KafkaStorageError}
	for i := range 24 {
		switch i % 4 {
		case 0:
			c.ShufflePartitionLeaders()
		case 1:
			p := rnd.Int32N(3)
			if err := c.MoveTopicPartition("a", p, rnd.Int32N(3)); err != nil {
				t.Error(err)
			}
		case 2:
			c.Fault(kfake.Fault{Keys: fetches, Topic: "a", Err: transient[rnd.IntN(len(transient))], Count: 3})
		case 3:
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, errors.New("cut"), true })
		}
		seen := rec.count()
		eventually(t, "records to flow", func() (bool, any) { return rec.count() > seen+20, rec.count() })
	}
	cancel()
	wg.Wait()
	for p, n := range want {
		wantOffsets(t, rec, int32(p), upTo(0, n))
	}
	wantLoss(t, rec)
	if n := tail.Status().Counters.Rebuilds; n > 0 {
		t.Errorf("the reader was replaced %d times", n)
	}
}

// A fetch error that lasts is asked about again slowly, and holds up no other
// partition.
func TestLastingErrorDoesNotSpin(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  *kerr.Error
		kind errorKind
	}{
		{"storage", kerr.KafkaStorageError, kindTransient},
		{"corrupt", kerr.CorruptMessage, kindCorrupt},
		{"unknown", kerr.UnknownServerError, kindOther},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, kfake.SeedTopics(2, "a"))
			tail := startTail(t, c.ListenAddrs())
			rec := tail.follow(t, "a")
			f := c.Fault(kfake.Fault{Keys: fetches, Topic: "a", Partitions: []int32{0}, Err: tc.err, Count: -1})
			began := time.Now()
			if err := f.Wait(t.Context(), 5); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began); d < 100*time.Millisecond {
				t.Errorf("5 failing fetches within %v", d)
			}
			cl := c.client()
			produce(t, cl, "a", 1, 3)
			wantOffsets(t, rec, 1, upTo(0, 3))
			eventually(t, "the partition's error to be shown", func() (bool, any) {
				s := tail.topicStatus("a").Partitions[0]
				return s.Error != "", s
			})
			eventually(t, "the errors to be counted", func() (bool, any) {
				n := tail.errorCount(tc.kind)
				return n >= 5, n
			})
			f.Remove()
			produce(t, cl, "a", 0, 3)
			wantOffsets(t, rec, 0, upTo(0, 3))
		})
	}
}

// The library stops fetching without a word (as in franz-go issue 1338): the
// reader is replaced, and goes on with no record twice.
func TestStalledReaderIsReplaced(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.Timing.Stalled = 300 * time.Millisecond })
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	tail.mu.Lock()
	tail.reader.cl.PauseFetchTopics("a")
	tail.mu.Unlock()
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 6))
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 9))
	if n := tail.Status().Counters.Rebuilds; n > 1 {
		t.Errorf("the reader was replaced %d times", n)
	}
}

// A reader whose goroutine hangs is replaced too; when it wakes up it changes
// nothing.
func TestHangingReaderIsReplaced(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.Timing.Stalled = 200 * time.Millisecond })
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	tail.mu.Lock()
	old := tail.reader
	tail.mu.Unlock()
	wake := make(chan struct{})
	old.commands <- func() { <-wake }
	old.interrupt()
	produce(t, cl, "a", 0, 3)
	eventually(t, "another reader", func() (bool, any) { return tail.Status().Counters.Rebuilds == 1, "" })
	close(wake)
	wantOffsets(t, rec, 0, upTo(0, 6))
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 9))
}

// The log ends beyond the last record, as compaction and aborted transactions
// leave it: that is no stall (case C17).
func TestEndWithoutRecordsIsNoStall(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.Timing.Stalled = 100 * time.Millisecond })
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	probes := c.Fault(kfake.Fault{Keys: fetches, Count: -1, Observe: true, When: func(r kmsg.Request) bool { return r.(*kmsg.FetchRequest).SessionEpoch == -1 }})
	shorten(c, 8)
	if err := probes.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "a", 0, 2)
	wantOffsets(t, rec, 0, upTo(0, 5))
	if n := tail.Status().Counters.Rebuilds; n > 0 {
		t.Errorf("the reader was replaced %d times", n)
	}
	wantLoss(t, rec)
}

// Run ends at once when told so, whatever the brokers do, and leaves nothing
// behind (TestMain looks for goroutines).
func TestStopsWhileBrokersAreAway(t *testing.T) {
	tail := startTail(t, []string{fmt.Sprintf("127.0.0.1:%d", freePort(t))})
	tail.Tail.Tail("a", newRecorder(t))
	eventually(t, "a try", func() (bool, any) { return tail.Status().Error != "", "" })
	began := time.Now()
	tail.stop()
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("Run took %v to end", d)
	}
}
