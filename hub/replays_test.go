package hub

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/testkit"
)

// faulty is a history that fails as a test wants.
type faulty struct {
	read, bounds func() error // nil: they succeed
	reads, asks  atomic.Int64
}

func (h *faulty) Read(_ context.Context, _ string, _ frame.TopicID, p int32, from int64, each func(*frame.Record)) (Span, error) {
	h.reads.Add(1)
	if h.read != nil {
		if err := h.read(); err != nil {
			return Span{}, err
		}
	}
	r := record(p, from)
	each(&r)
	return Span{Start: from, Next: from + 1, Bytes: 1}, nil
}

func (h *faulty) Bounds(context.Context, string, frame.TopicID) ([]Bound, error) {
	h.asks.Add(1)
	if h.bounds != nil {
		if err := h.bounds(); err != nil {
			return nil, err
		}
	}
	return []Bound{{0, 0, 100}}, nil
}

func (h *faulty) Since(ctx context.Context, topic string, id frame.TopicID, _ int64) ([]Bound, error) {
	return h.Bounds(ctx, topic, id)
}

func (h *faulty) Cleanup(context.Context, string) (Cleanup, error) { return Cleanup{}, nil }

// before is a feed whose log begins at 100, in front of a history.
func before(t *testing.T, h History) *rig {
	t.Helper()
	opts := testOptions
	opts.History, opts.Replays, opts.ReplayMax, opts.ReplayScan = h, 1, 1000, 1<<20
	g := newRig(t, opts, "t")
	ctx, cancel := context.WithCancel(t.Context())
	g.hub.replays.start(ctx)
	t.Cleanup(func() { cancel(); g.hub.replays.stop() })
	g.sinks[0].Open(topicID(1), parts(100))
	return g
}

// TestNobodyWaits: what can't be read, or asked, is not tried any more when the
// streams that wanted it have ended: the topic may be gone for good, and a slot
// is for those who are here.
func TestNobodyWaits(t *testing.T) {
	away := func() error { return errors.New("no broker answers") }
	for name, h := range map[string]*faulty{"records": {read: away}, "bounds": {bounds: away}} {
		t.Run(name, func(t *testing.T) {
			g := before(t, h)
			at, _ := g.resume("v1:0-89" + tagOf("t", 1))
			if at.Own == nil {
				t.Fatalf("placed at %+v", at)
			}
			tried := func() bool { return h.reads.Load() > 1 || name == "bounds" && h.asks.Load() > 1 }
			testkit.Eventually(t, 20*time.Second, "it is tried twice", func() bool {
				_, _ = at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
				return tried()
			})
			at.Own.Close()
			rp := &g.hub.replays
			testkit.Eventually(t, 20*time.Second, "nothing is wanted any more", func() bool {
				rp.mu.Lock()
				defer rp.mu.Unlock()
				return len(rp.flights)+len(rp.queue)+len(rp.bounds)+rp.active == 0
			})
		})
	}
}

// TestTopicSeemedRecreated: one broker says that the topic is another one, which
// is not so: the tail, which asks others, never says it. The stream goes on.
func TestTopicSeemedRecreated(t *testing.T) {
	once := func() func() error {
		var told atomic.Bool
		return func() error {
			if told.Swap(true) {
				return nil
			}
			return fmt.Errorf("list: %w", ErrRecreated)
		}
	}
	for name, h := range map[string]*faulty{"records": {read: once()}, "bounds": {bounds: once()}} {
		t.Run(name, func(t *testing.T) {
			g := before(t, h)
			at, _ := g.resume("v1:0-97" + tagOf("t", 1))
			defer at.Own.Close()
			var got []byte
			now := time.Unix(1000, 0)
			testkit.Eventually(t, 20*time.Second, "the stream goes on", func() bool {
				b, state := at.Own.Step(nil, 1<<20, now)
				got = append(got, b...)
				if state == OwnIdle {
					now = now.Add(time.Second)
				}
				return state == OwnShared
			})
			if waited := now.Sub(time.Unix(1000, 0)); waited < blockedFor || waited > 2*blockedFor {
				t.Errorf("it waited for %v", waited)
			}
			var data []string
			for _, e := range events(t, got) {
				data = append(data, e.Data)
			}
			if got := strings.Join(data, " "); got != "0/98 0/99" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestHistoryIsReadAnewBehindACut: what was read of a partition before its log
// was cut is not for those who come behind that: the same offsets are other
// records now.
func TestHistoryIsReadAnewBehindACut(t *testing.T) {
	s := withBrokers(t, 30)
	from := "v1:0-95.1-204" + tagOf("a", 1) + "," + tagOf("b", 2) + "," + tagOf("c", 3)
	values := func() string {
		var all []string
		for _, e := range s.all(from) {
			all = append(all, strings.TrimPrefix(e.Data, "a/0/"))
		}
		return strings.Join(all, " ")
	}
	if got := values(); got != "96 97 98 99 100 101 102 103 104" {
		t.Fatalf("got %s", got)
	}
	s.brokers.mu.Lock()
	s.brokers.ends["a"][0], s.brokers.word = 98, "'"
	s.brokers.mu.Unlock()
	s.sinks[0].Lost(frame.Truncated, []frame.Range{{Topic: "a", Partition: 0, From: 98, To: 104}}, []frame.Partition{{ID: 0, Next: 98}})
	s.produce(0, 0, 6)
	// Another partition's loss: the log holds nothing of this one any more.
	s.sinks[0].Lost(frame.Expired, []frame.Range{{Topic: "a", Partition: 1, From: 205, To: 209}}, []frame.Partition{{ID: 1, Next: 210}})
	from = strings.Replace(from, "1-204", "1-209", 1)
	if got := values(); got != "96' 97' 98' 99' 100' 101' 102' 103'" {
		t.Errorf("then got %s", got)
	}
}

// TestHistoryCacheIsBounded: what was read is kept up to chunkCacheBytes, the
// longest unused goes first, and nothing is kept that nobody used for long.
func TestHistoryCacheIsBounded(t *testing.T) {
	var rp replays
	rp.init(nil, 1)
	began := time.Unix(1000, 0)
	frames := make([]byte, 1<<20) // each has the same
	const n = 3 * chunkCacheBytes >> 20
	for i := range n {
		at := time.Duration(i) * time.Millisecond
		rp.keep(chunkKey{partition: int32(i % 5)}, &chunk{Span: Span{Start: int64(i), Next: int64(i) + 1}, frames: frames, usedAt: began.Add(at)})
	}
	held := 0
	for _, chunks := range rp.cache {
		for _, c := range chunks {
			held += c.size()
			if c.Start < n-chunkCacheBytes>>20 {
				t.Errorf("chunk %d is kept, of %d", c.Start, n)
			}
		}
	}
	if held != chunkCacheBytes || rp.bytes != held {
		t.Errorf("%d bytes are held, %d counted, and %d the most", held, rp.bytes, chunkCacheBytes)
	}
	rp.tick(began.Add(chunkAgeMax))
	if rp.bytes != held {
		t.Errorf("%d bytes of %d are left within %v", rp.bytes, held, chunkAgeMax)
	}
	rp.tick(began.Add(chunkAgeMax + time.Second))
	if rp.bytes != 0 || len(rp.cache) != 0 {
		t.Errorf("then %d bytes are counted, in %d lists", rp.bytes, len(rp.cache))
	}
}

// TestHistoryTakesTurns: an address with many reads is not served twice in a row
// while another one waits.
func TestHistoryTakesTurns(t *testing.T) {
	var rp replays
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for i, addr := range []netip.Addr{a, a, a, b, a, b} {
		rp.queue = append(rp.queue, &flight{from: int64(i), addr: addr})
	}
	var got []int64
	for len(rp.queue) > 0 {
		got = append(got, rp.pick().from)
	}
	if want := []int64{0, 3, 1, 5, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
}
