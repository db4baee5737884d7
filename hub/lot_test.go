package hub

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"tailcast/frame"
)

// tails is a source that notes what is tailed.
type tails struct {
	mu    sync.Mutex
	sinks map[string][]Sink
	began int
}

func (s *tails) Tail(topic string, sink Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sinks == nil {
		s.sinks = map[string][]Sink{}
	}
	s.sinks[topic] = append(s.sinks[topic], sink)
	s.began++
}

func (s *tails) End(topic string, sink Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.sinks[topic] {
		if x == sink {
			s.sinks[topic] = append(s.sinks[topic][:i], s.sinks[topic][i+1:]...)
			return
		}
	}
	panic("a sink ends that was not tailed: " + topic)
}

// tailed is how many sinks there are.
func (s *tails) tailed() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.sinks {
		n += len(all)
	}
	return n
}

// renewed reports whether more topics were tailed than TestAttachWhileEnding has.
func (s *tails) renewed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began > 3
}

func newLending() (*Hub, *tails, *Lot, *Mailbox) {
	opts := testOptions
	opts.Idle = 2 * time.Minute
	box := NewMailbox(func() {})
	return New(opts, []*Mailbox{box}), &tails{}, NewLot(), box
}

func lend(t testing.TB, h *Hub, src Source, lot *Lot, topics ...string) *Feed {
	t.Helper()
	f, err := h.Lend(Spec{Topics: topics}, src, lot)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLentFeedEnds(t *testing.T) {
	h, src, lot, box := newLending()
	f := lend(t, h, src, lot, "a", "b")
	if again := lend(t, h, src, lot, "a", "b"); again != f {
		t.Fatal("two feeds of one spec")
	}
	sink := src.sinks["a"][0]
	for _, s := range f.sinks {
		s.Open(topicID(1), parts(0))
	}
	produce(sink, 0, 0, 100)
	now := time.Now()
	later := func(d time.Duration) { now = now.Add(d); h.Tick(now) }
	there := func() bool {
		g, ok := h.Find(Spec{Topics: []string{"a", "b"}})
		if ok {
			g.Forgo()
		}
		return ok
	}
	later(time.Hour)
	if !there() {
		t.Fatal("a feed that is claimed has ended")
	}
	r := f.Reader(box)
	r.Attached()
	f.Release()
	f.Release()
	later(time.Hour)
	if !there() {
		t.Fatal("a feed with a stream has ended")
	}
	later(time.Second)
	r.Detached()
	r.Close()
	later(h.opts.Idle - 2*time.Second)
	if !there() {
		t.Fatal("a feed has ended too early")
	}
	lend(t, h, src, lot, "a", "b").Release() // a stream that came and went between two ticks
	later(h.opts.Idle - time.Second)
	later(time.Second / 2)
	if !there() {
		t.Fatal("a feed has ended too early after its last use")
	}
	later(h.opts.Idle)
	if there() || src.tailed() != 0 || h.pool.held.Load() != 0 {
		t.Fatalf("it is there: %v, %d tails, %d bytes", there(), src.tailed(), h.pool.held.Load())
	}
	// The tail may not have noticed yet.
	produce(sink, 0, 100, 200)
	sink.Open(topicID(2), parts(7))
	sink.Recreated(topicID(3), parts(7))
	sink.Lost(frame.Expired, nil, parts(9))
	sink.Advance(3, 3)
	sink.Flush(nil)
	if n := h.pool.held.Load(); n != 0 {
		t.Errorf("an ended feed holds %d bytes", n)
	}
	if s := lot.Snapshot(); s.Feeds != 0 || s.Stats.Records != 100 {
		t.Errorf("%+v: the counts of what has ended are lost", s)
	}
	if again := lend(t, h, src, lot, "a", "b"); again == f || src.tailed() != 2 {
		t.Error("a feed that has ended is lent again")
	}
}

// A feed that was made for who wanted no stream, as a HEAD, ends at the next tick,
// and one that has had streams ends no later for it.
func TestForgoneFeedEnds(t *testing.T) {
	h, src, lot, _ := newLending()
	now := time.Now()
	f := lend(t, h, src, lot, "a")
	h.Tick(now)
	if n := len(h.Feeds()); n != 1 {
		t.Fatalf("%d feeds while one is claimed", n)
	}
	f.Forgo()
	h.Tick(now.Add(tickEvery))
	if n := len(h.Feeds()); n != 0 || src.tailed() != 0 {
		t.Fatalf("%d feeds are left, %d topics are tailed", n, src.tailed())
	}
	lend(t, h, src, lot, "a").Release()
	h.Tick(now)
	for d := tickEvery; d < h.opts.Idle; d += time.Second {
		lend(t, h, src, lot, "a").Forgo()
		if h.Tick(now.Add(d)); len(h.Feeds()) != 1 {
			t.Fatalf("it has ended %v after its last stream", d)
		}
	}
	lend(t, h, src, lot, "a").Forgo()
	if h.Tick(now.Add(h.opts.Idle)); len(h.Feeds()) != 0 {
		t.Error("who wants no stream keeps it")
	}
}

// A feed of a route without parameters stays, whoever else uses it.
func TestOpenedFeedStays(t *testing.T) {
	h, src, lot, _ := newLending()
	f := lend(t, h, src, lot, "a")
	f.Release()
	if g, err := h.Open(Spec{Topics: []string{"a"}}, src); err != nil || g != f {
		t.Fatalf("%v, another feed", err)
	}
	if g, err := h.Open(Spec{Topics: []string{"b"}}, src); err != nil || lend(t, h, src, lot, "b") != g {
		t.Fatalf("%v, another feed", err)
	}
	now := time.Now()
	for range 3 {
		now = now.Add(time.Hour)
		h.Tick(now)
	}
	if n := len(h.Feeds()); n != 2 {
		t.Errorf("%d feeds are left", n)
	}
}

func TestLotIsBounded(t *testing.T) {
	h, src, lot, _ := newLending()
	made := 0
	for {
		f, err := h.Lend(Spec{Topics: []string{fmt.Sprint("t", made)}}, src, lot)
		if err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			break
		}
		f.Release()
		made++
	}
	if made < lotBurst || made > lotBurst+lotRate*10 {
		t.Errorf("%d feeds at once", made)
	}
	if _, ok := h.Find(Spec{Topics: []string{"t0"}}); !ok {
		t.Error("a full lot does not lend what it has")
	}
	if n := src.tailed(); n != made {
		t.Errorf("%d topics are tailed for %d feeds", n, made)
	}
	if n := lot.Snapshot().Refused; n != 1 {
		t.Errorf("%d refused feeds are counted", n)
	}
	now := time.Now()
	l := &Lot{feeds: map[*Feed]struct{}{}, credit: 1}
	if l.take(now) != nil || l.take(now) == nil || l.take(now.Add(time.Second/lotRate)) != nil {
		t.Error("credit does not follow the clock")
	}
	for len(l.feeds) < lotFeedsMax {
		l.feeds[&Feed{}] = struct{}{}
	}
	if l.take(now.Add(time.Hour)) == nil {
		t.Error("a lot takes more than its most")
	}
}

// TestAttachWhileEnding: whoever was lent a feed can read from it what is
// appended from then on, though feeds end as fast as they can.
func TestAttachWhileEnding(t *testing.T) {
	h, src, lot, _ := newLending()
	h.opts.Idle = 0
	lot.credit = 1e9
	stop := make(chan struct{})
	var ticking, using sync.WaitGroup
	ticking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				h.Tick(time.Now())
			}
		}
	})
	for w := range 4 {
		using.Go(func() {
			box := NewMailbox(func() {})
			rnd := rand.New(rand.NewPCG(uint64(w), 3))
			for n, deadline := 0, time.Now().Add(20*time.Second); n < 300 || !src.renewed() && time.Now().Before(deadline); n++ {
				f := lend(t, h, src, lot, strconv.Itoa(rnd.IntN(3)))
				r := f.Reader(box)
				r.Attached()
				f.Release()
				head := r.Head()
				for _, s := range f.sinks {
					s.Open(topicID(1), parts(0))
					f.mu.Lock()
					next := int64(0)
					if len(f.parts) > 0 {
						next = f.parts[0].next
					}
					f.mu.Unlock()
					produce(s, 0, next, next+1)
				}
				box.Enter()
				if b, ok := r.Read(head); !ok || len(b) == 0 {
					t.Error("nothing to read in a feed that was lent")
				}
				box.Leave()
				r.Detached()
				r.Close()
			}
		})
	}
	using.Wait()
	close(stop)
	ticking.Wait()
	h.Tick(time.Now())
	h.Tick(time.Now().Add(time.Second))
	if len(h.Feeds()) != 0 || src.tailed() != 0 {
		t.Errorf("%d feeds and %d tails are left", len(h.Feeds()), src.tailed())
	}
	if !src.renewed() {
		t.Errorf("no feed ended: %d tails began", src.began)
	}
}

// A log of little costs little, and grows by doubling.
func TestSegmentsGrow(t *testing.T) {
	l, _ := newLog(64 * segmentBytes)
	l.size = segmentBytesMin
	l.add(8)
	if l.held != segmentBytesMin {
		t.Errorf("one frame holds %d bytes", l.held)
	}
	for l.end < 2*segmentBytes {
		l.add(1024)
		if used := l.end - l.first; l.held > max(segmentBytesMin, 2*used+1024) && l.held > used+segmentBytes {
			t.Fatalf("%d bytes are held for %d", l.held, used)
		}
	}
	segs := *l.table.Load()
	if n := len(segs[len(segs)-1].mem); n != segmentBytes {
		t.Errorf("the newest segment has %d bytes", n)
	}
}
