package kafkatail

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"tailcast/frame"
	"tailcast/hub"
)

// Leaders move all the time, connections are cut and fetches fail: every read
// gives what it should, or an error that passes.
func TestHistoryChaos(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(3, "a"))
	h := newHistorian(t, c)
	var values [3][]string
	for p := range values {
		values[p], _ = fill(t, c.client, "a", int32(p), 300)
	}
	ctx, cancel := context.WithCancel(context.Background())
	const readersN, readsN = 8, 60
	reads := make(chan struct{}, readersN*readsN)
	var readers, chaos sync.WaitGroup
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chaos.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, 0))
		errs := []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.OffsetNotAvailable, kerr.KafkaStorageError, kerr.UnknownTopicID}
		for i := 0; ctx.Err() == nil; i++ {
			switch i % 4 {
			case 0:
				c.ShufflePartitionLeaders()
			case 1:
				if err := c.MoveTopicPartition("a", rnd.Int32N(3), rnd.Int32N(3)); err != nil {
					t.Error(err)
				}
			case 2:
				c.Fault(kfake.Fault{Keys: fetches, Topic: "a", Err: errs[rnd.IntN(len(errs))], Count: 2})
			case 3:
				c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, errors.New("cut"), true })
			}
			for range 4 { // reads until the next fault
				select {
				case <-reads:
				case <-ctx.Done():
				}
			}
		}
	})
	var failed atomic.Int64
	for i := range readersN {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for range readsN {
				p := rnd.Int32N(3)
				from := rnd.Int64N(int64(len(values[p])))
				span, recs, err := h.read(p, from)
				reads <- struct{}{}
				if errors.Is(err, hub.ErrRecreated) || errors.As(err, new(*hub.ExpiredError)) {
					t.Errorf("from %d: %v", from, err)
				}
				if err != nil {
					failed.Add(1)
					continue
				}
				wantRead(t, recs, upTo(span.Start, span.Next))
				for _, k := range recs {
					if string(k.value) != values[p][k.offset] {
						t.Errorf("record %d is %q", k.offset, k.value)
					}
				}
				if span.Next == from {
					t.Errorf("from %d: nothing", from)
				}
			}
		})
	}
	readers.Wait()
	cancel()
	chaos.Wait()
	t.Logf("%d reads, %d of them failed by what passes", readersN*readsN, failed.Load())
	if failed.Load() > readersN*readsN/4 {
		t.Errorf("%d of %d reads failed", failed.Load(), readersN*readsN)
	}
}

// Who leaves is let go at once, also while the brokers say nothing, and takes
// no answer from others.
func TestHistoryCancel(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	produce(t, c.client(), "a", 0, 3)
	tail := startTail(t, c.ListenAddrs())
	h := tail.historian(t, "a", c.TopicInfo("a").TopicID)
	for _, tc := range []struct {
		key  kmsg.Key
		what string
		call func(ctx context.Context) error
	}{
		{kmsg.Metadata, "read", func(ctx context.Context) error {
			_, err := h.Read(ctx, "a", h.id, 0, 0, func(*frame.Record) {})
			return err
		}},
		{kmsg.Fetch, "read", func(ctx context.Context) error {
			_, err := h.Read(ctx, "a", h.id, 0, 0, func(*frame.Record) {})
			return err
		}},
		{kmsg.ListOffsets, "bounds", func(ctx context.Context) error {
			_, err := h.Bounds(ctx, "a", h.id)
			return err
		}},
	} {
		held, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		c.ControlKey(int16(tc.key), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			c.SleepControl(func() {
				once.Do(func() { close(held) })
				<-release
			})
			return nil, nil, false
		})
		ctx, cancel := context.WithCancel(context.Background())
		gone, stays := make(chan error, 1), make(chan error, 1)
		go func() { gone <- tc.call(ctx) }()
		go func() { stays <- tc.call(context.Background()) }()
		<-held
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled while a broker holds %v: %v", tc.what, tc.key, err)
		}
		close(release)
		c.DropControl()
		if err := <-stays; err != nil {
			t.Errorf("%s of another: %v", tc.what, err)
		}
	}
}

// Without a broker reads fail, and soon; they work again when it is back.
func TestHistoryBrokerAway(t *testing.T) {
	port, dir := freePort(t), t.TempDir()
	start := func() *cluster {
		return newCluster(t, kfake.Ports(port), kfake.SeedTopics(1, "a"), kfake.DataDir(dir))
	}
	c := start()
	h := newHistorian(t, c)
	produce(t, c.client(), "a", 0, 3)
	wantRead(t, h.all(0, 0), upTo(0, 3))
	c.Close()
	for range 2 {
		if _, _, err := h.read(0, 0); err == nil || !strings.Contains(err.Error(), "read a/0 from offset 0: ") {
			t.Errorf("read without a broker: %v", err)
		}
		if _, err := h.Bounds(t.Context(), "a", h.id); err == nil {
			t.Error("bounds without a broker")
		}
	}
	start()
	eventually(t, "history to be back", func() (bool, any) {
		_, _, err := h.read(0, 0)
		return err == nil, err
	})
	wantRead(t, h.all(0, 0), upTo(0, 3))
}

func TestHistoryOfAPartition(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(3, "a"))
	produce(t, c.client(), "a", 2, 3)
	none := c.Fault(kfake.Fault{Keys: metadata, Topic: "a", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
	h := newHistorian(t, c)
	if _, _, err := h.read(1, 0); !errors.Is(err, errNoLeader) {
		t.Errorf("without a leader: %v", err)
	}
	for _, p := range []int32{-1, 3, 1 << 30} {
		if _, err := h.Read(t.Context(), "a", h.id, p, 0, nil); !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Errorf("partition %d: %v", p, err)
		}
	}
	wantBounds(t, h, hub.Bound{}, hub.Bound{Partition: 2, End: 3})
	none.Remove()
	wantRead(t, h.all(1, 0), nil)
	wantRead(t, h.all(2, 0), upTo(0, 3))
}

// A denied topic is said to be so at once: asking again changes nothing.
func TestHistoryDenied(t *testing.T) {
	for _, key := range []kmsg.Key{kmsg.Metadata, kmsg.Fetch} {
		c := newCluster(t, kfake.SeedTopics(1, "a"))
		h := newHistorian(t, c)
		deny := c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Topic: "a", Err: kerr.TopicAuthorizationFailed, Count: -1})
		if _, _, err := h.read(0, 0); !errors.Is(err, kerr.TopicAuthorizationFailed) || deny.Hits() != 1 {
			t.Errorf("%v after %d tries", err, deny.Hits())
		}
	}
}

// Bounds are asked once for all who want them within a second.
func TestBounds(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "a"))
	cl := c.client()
	for p := range int32(6) {
		produce(t, cl, "a", p, int(p))
	}
	h := newHistorian(t, c)
	looks := c.Fault(kfake.Fault{Keys: listOffsets, Topic: "a", Count: -1, Observe: true})
	want := []hub.Bound{{}, {Partition: 1, End: 1}, {Partition: 2, End: 2}, {Partition: 3, End: 3}, {Partition: 4, End: 4}, {Partition: 5, End: 5}}
	asked := time.Now()
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { wantBounds(t, h, want...) })
	}
	wg.Wait()
	for range 50 {
		wantBounds(t, h, want...)
	}
	if n, times := looks.Hits(), 1+int(time.Since(asked)/boundsAgeMax); n > 6*times {
		t.Errorf("they made %d requests to 3 brokers in %v", n, time.Since(asked))
	}
	bounds, err := h.Bounds(t.Context(), "a", h.id)
	if err != nil {
		t.Fatal(err)
	}
	clear(bounds) // is the caller's own
	wantBounds(t, h, want...)
	produce(t, cl, "a", 0, 1)
	eventually(t, "the new end", func() (bool, any) {
		b, err := h.Bounds(t.Context(), "a", h.id)
		return err == nil && b[0].End == 1, b
	})
}

// History is for while the tail runs.
func TestHistoryNotRunning(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	idle, err := New(Config{Brokers: c.ListenAddrs()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tail := startTail(t, c.ListenAddrs())
	h := tail.historian(t, "a", c.TopicInfo("a").TopicID)
	tail.stop()
	for _, h := range []*History{idle.History(), h.History} {
		if _, err := h.Read(t.Context(), "a", frame.TopicID{}, 0, 0, nil); !errors.Is(err, errNotRunning) {
			t.Errorf("read: %v", err)
		}
		if _, err := h.Bounds(t.Context(), "a", frame.TopicID{}); !errors.Is(err, errNotRunning) {
			t.Errorf("bounds: %v", err)
		}
	}
}

// The tail ends though reads are under way, and they end with it.
func TestHistoryEndsWithTheTail(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	produce(t, c.client(), "a", 0, 3)
	tail := startTail(t, c.ListenAddrs())
	h := tail.historian(t, "a", c.TopicInfo("a").TopicID)
	held, release := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() {
			close(held)
			<-release
		})
		return nil, nil, false
	})
	done := make(chan error, 1)
	go func() {
		_, err := h.Read(context.Background(), "a", h.id, 0, 0, func(*frame.Record) {})
		done <- err
	}()
	<-held
	tail.stop()
	if err := <-done; err == nil {
		t.Error("read without a tail")
	}
	close(release)
}

// Brokers without topic ids are read by name.
func TestHistoryWithoutTopicIDs(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V2_7_0()))
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	produce(t, c.client(kgo.DisableIdempotentWrite()), "a", 0, 3)
	h := tail.historian(t, "a", rec.opened().id)
	wantRead(t, h.all(0, 0), upTo(0, 3))
	wantBounds(t, h, hub.Bound{End: 3})
	h.id[0]++
	if _, _, err := h.read(0, 0); !errors.Is(err, hub.ErrRecreated) {
		t.Errorf("with another id: %v", err)
	}
}
