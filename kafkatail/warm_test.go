package kafkatail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
)

// warm has a tail warm topics with n records of each partition.
func warm(n int64) func(*Config) { return func(c *Config) { c.Warmup = n } }

// nexts are where an opening begins, by partition.
func nexts(o *opening) []int64 {
	if o == nil {
		return nil
	}
	var n []int64
	for _, p := range o.parts {
		n = append(n, p.Next)
	}
	return n
}

// A topic's sink is given the newest records of each partition, or all there
// are, and opened where they end.
func TestWarmup(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(4, "a"))
	cl := c.client()
	for p, n := range []int{20, 4, 10} {
		produce(t, cl, "a", int32(p), n)
	}
	if err := c.DeleteRecords("a", 2, 7); err != nil {
		t.Fatal(err)
	}
	tail := startTail(t, c.ListenAddrs(), warm(5))
	rec := tail.follow(t, "a")
	if got, want := nexts(rec.warmed()), []int64{15, 0, 7, 0}; !slices.Equal(got, want) || rec.warmed().id != c.TopicInfo("a").TopicID {
		t.Errorf("warmed from %v, want %v", got, want)
	}
	if got, want := nexts(rec.opened()), []int64{20, 4, 10, 0}; !slices.Equal(got, want) {
		t.Errorf("opened at %v, want %v", got, want)
	}
	for p, want := range [][]int64{upTo(15, 20), upTo(0, 4), upTo(7, 10), nil} {
		wantOffsets(t, rec, int32(p), want)
	}
	waitState(t, tail, "a", Tailing)
	if s := tail.topicStatus("a"); s.Partitions[2].Start != 7 || s.Partitions[0].Start != 0 {
		t.Errorf("the log starts are shown as %+v", s.Partitions)
	}
	produce(t, cl, "a", 0, 2)
	produce(t, cl, "a", 3, 2)
	wantOffsets(t, rec, 0, upTo(15, 22))
	wantOffsets(t, rec, 3, upTo(0, 2))
	wantLoss(t, rec)

	late := tail.follow(t, "a")
	if late.warmed() != nil || nexts(late.opened())[0] != 22 {
		t.Errorf("a sink that came later is warmed from %v and opened at %v", nexts(late.warmed()), nexts(late.opened()))
	}
	addPartitions(t, cl, "a", 5)
	produce(t, c.client(), "a", 4, 9)
	wantOffsets(t, rec, 4, upTo(0, 9))
}

// Nothing is to be read: the sink is opened at once.
func TestWarmupOfNothing(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(2, "empty"), kfake.SeedTopics(1, "expired"))
	produce(t, c.client(), "expired", 0, 5)
	if err := c.DeleteRecords("expired", 0, 5); err != nil {
		t.Fatal(err)
	}
	tail := startTail(t, c.ListenAddrs(), warm(5))
	for _, topic := range []string{"empty", "expired", "missing"} {
		if rec := tail.follow(t, topic); rec.warmed() != nil {
			t.Errorf("%s is warmed from %v", topic, nexts(rec.warmed()))
		}
	}
	// What appears later is read whole, not warmed.
	rec := tail.follow(t, "missing")
	if err := c.CreateTopic("missing", 1, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, c.client(), "missing", 0, 9)
	wantOffsets(t, rec, 0, upTo(0, 9))
	if rec.warmed() != nil {
		t.Errorf("a topic that appeared is warmed from %v", nexts(rec.warmed()))
	}
}

// The last offsets of a partition are markers and aborted records.
func TestWarmupOfTransactions(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tx := c.client(kgo.TransactionalID("tx"))
	for _, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		transaction(t, tx, "a", 3, how)
	}
	begin(t, tx, "a", 2)
	rec := startTail(t, c.ListenAddrs(), warm(6)).follow(t, "a")
	if got := []int64{nexts(rec.warmed())[0], nexts(rec.opened())[0]}; !slices.Equal(got, []int64{2, 8}) {
		t.Errorf("warmed from and opened at %v", got)
	}
	wantOffsets(t, rec, 0, []int64{2})
	if err := tx.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, rec, 0, []int64{2, 8, 9})
}

// held is a tail whose warm-up waits for records that fetches do not give.
func held(t *testing.T, timing func(*Timing), opts ...kfake.Opt) (*cluster, *running, *recorder, *kfake.FaultHandle) {
	t.Helper()
	c := newCluster(t, append([]kfake.Opt{kfake.SeedTopics(2, "a")}, opts...)...)
	cl := c.client()
	produce(t, cl, "a", 0, 10)
	produce(t, cl, "a", 1, 10)
	hold := c.Fault(kfake.Fault{Keys: fetches, Partitions: []int32{1}, Err: kerr.KafkaStorageError, Count: -1})
	tail := startTail(t, c.ListenAddrs(), warm(5), func(c *Config) { timing(&c.Timing) })
	rec := newRecorder(t)
	tail.Tail.Tail("a", rec)
	eventually(t, "the warm-up", func() (bool, any) { return rec.warmed() != nil, tail.topicStatus("a") })
	return c, tail, rec, hold
}

func patient(*Timing) {}

// While it lasts its streams wait, the topic says so, and the node is not ready.
// A sink that comes meanwhile is opened with the others.
func TestWarmupUnderWay(t *testing.T) {
	_, tail, rec, hold := held(t, patient)
	wantOffsets(t, rec, 0, upTo(5, 10))
	waitState(t, tail, "a", Warming)
	if err := tail.Status().Ready(time.Now()); err == nil || !strings.Contains(err.Error(), "topic a is warming") {
		t.Errorf("ready: %v", err)
	}
	late := newRecorder(t)
	tail.Tail.Tail("a", late)
	eventually(t, "the second sink", func() (bool, any) { return late.warmed() != nil, "it is not warmed" })
	if got := nexts(late.warmed()); !slices.Equal(got, []int64{10, 5}) || rec.opened() != nil || late.opened() != nil {
		t.Errorf("the second sink is warmed from %v; opened %v and %v", got, rec.opened(), late.opened())
	}
	hold.Remove()
	waitOpen(t, rec)
	waitOpen(t, late)
	wantOffsets(t, rec, 1, upTo(5, 10))
	wantOffsets(t, late, 1, upTo(5, 10))
	if err := tail.Status().Ready(time.Now()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if n := len(tail.log.lines("outcome=complete")); n != 1 {
		t.Errorf("its end is logged %d times", n)
	}
}

// Streams start with the last record, not with the next look.
func TestWarmupEndsAtOnce(t *testing.T) {
	_, tail, rec, hold := held(t, func(c *Timing) { c.Look, c.Soon = time.Hour, time.Hour })
	looks := tail.Status().Counters.Looks
	tail.lookNow()
	eventually(t, "the last look for an hour", func() (bool, any) { return tail.Status().Counters.Looks > looks, "" })
	hold.Remove()
	waitOpen(t, rec)
	wantOffsets(t, rec, 1, upTo(5, 10))
}

// Streams do not wait for records that do not come, nor for ever.
func TestWarmupIsBounded(t *testing.T) {
	for _, tc := range []struct {
		outcome string
		timing  func(*Timing)
	}{
		{"came to a halt", func(c *Timing) { c.WarmStall = 200 * time.Millisecond }},
		{"took too long", func(c *Timing) { c.WarmMax = 200 * time.Millisecond }},
	} {
		t.Run(tc.outcome, func(t *testing.T) {
			_, tail, rec, hold := held(t, tc.timing)
			waitOpen(t, rec)
			if got := nexts(rec.opened()); got[1] != 5 {
				t.Errorf("opened at %v", got)
			}
			waitState(t, tail, "a", Tailing)
			if n := len(tail.log.lines(fmt.Sprintf("outcome=%q", tc.outcome))); n != 1 {
				t.Errorf("its end is logged %d times", n)
			}
			hold.Remove()
			wantOffsets(t, rec, 1, upTo(5, 10))
		})
	}
}

// Kafka goes away while a topic is warmed: its streams start without the rest.
func TestWarmupWithoutBroker(t *testing.T) {
	c, tail, rec, _ := held(t, func(c *Timing) { c.WarmStall = time.Second })
	c.Close()
	eventually(t, "the loss of contact", func() (bool, any) { return !tail.Status().Connected, "" })
	waitOpen(t, rec)
}

// The topic is deleted, denied or another one while it is warmed.
func TestWarmupInterrupted(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*testing.T, *cluster)
		then func(*testing.T, *cluster, *running, *recorder)
	}{
		{"deleted", func(t *testing.T, c *cluster) {
			if err := c.DeleteTopic("a"); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, c *cluster, tail *running, rec *recorder) {
			waitState(t, tail, "a", Missing)
			waitOpen(t, rec)
			if got := rec.opened(); got.id == (frame.TopicID{}) || got.parts[1].Next != 5 {
				t.Errorf("opened at %v", got)
			}
			if err := c.CreateTopic("a", 1, nil); err != nil {
				t.Fatal(err)
			}
			produce(t, c.client(), "a", 0, 3)
			wantOffsets(t, rec, 0, upTo(0, 3))
			if n := len(rec.recreations()); n != 1 {
				t.Errorf("re-created %d times", n)
			}
		}},
		{"re-created", func(t *testing.T, c *cluster) {
			if err := c.DeleteTopic("a"); err != nil {
				t.Fatal(err)
			}
			if err := c.CreateTopic("a", 1, nil); err != nil {
				t.Fatal(err)
			}
			produce(t, c.client(), "a", 0, 9)
		}, func(t *testing.T, c *cluster, tail *running, rec *recorder) {
			waitOpen(t, rec)
			wantOffsets(t, rec, 0, upTo(0, 9))
			if rec.opened().id != c.TopicInfo("a").TopicID {
				t.Errorf("opened at %v", rec.opened())
			}
		}},
		{"denied", func(t *testing.T, c *cluster) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "a", Err: kerr.TopicAuthorizationFailed, Count: -1})
		}, func(t *testing.T, c *cluster, tail *running, rec *recorder) {
			waitState(t, tail, "a", Denied)
			waitOpen(t, rec)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, tail, rec, hold := held(t, func(c *Timing) { c.WarmStall = time.Second })
			wantOffsets(t, rec, 0, upTo(5, 10))
			tc.do(t, c)
			hold.Remove()
			tc.then(t, c, tail, rec)
		})
	}
}

// The reader is replaced in the middle; the warm-up goes on where it was.
func TestWarmupOfAReplacedReader(t *testing.T) {
	_, tail, rec, hold := held(t, func(c *Timing) { c.Stalled = 200 * time.Millisecond })
	wantOffsets(t, rec, 0, upTo(5, 10))
	tail.mu.Lock()
	old := tail.reader
	tail.mu.Unlock()
	wake := make(chan struct{})
	old.commands <- func() { <-wake }
	old.interrupt()
	eventually(t, "another reader", func() (bool, any) { return tail.Status().Counters.Rebuilds == 1, "" })
	close(wake)
	hold.Remove()
	waitOpen(t, rec)
	wantOffsets(t, rec, 0, upTo(5, 10))
	wantOffsets(t, rec, 1, upTo(5, 10))
}

// A partition without a leader is not waited for; it starts at its end.
func TestWarmupWithoutALeader(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(2, "a"))
	cl := c.client()
	produce(t, cl, "a", 0, 10)
	produce(t, cl, "a", 1, 10)
	none := c.Fault(kfake.Fault{Keys: metadata, Topic: "a", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
	rec := startTail(t, c.ListenAddrs(), warm(5)).follow(t, "a")
	if got := nexts(rec.opened()); !slices.Equal(got, []int64{10, frame.Unknown}) {
		t.Errorf("opened at %v", got)
	}
	none.Remove()
	eventually(t, "the second partition's start", func() (bool, any) {
		n, _ := rec.position(1)
		return n == 10, n
	})
	wantOffsets(t, rec, 0, upTo(5, 10))
}
