package kafkatail

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tailcast/frame"
	"tailcast/hub"
)

// recorder is a sink that keeps what it is given, and fails its test when a
// call breaks the contract of hub.Sink: two callers at once, a record before
// Open, an offset twice or out of order, a position that moves without a word.
type recorder struct {
	t    testing.TB
	busy atomic.Bool

	mu        sync.Mutex
	warms     []opening
	opens     []opening
	recreated []opening
	next      map[int32]int64 // frame.Unknown: no leader yet
	recs      map[int32][]kept
	losses    []loss
	flushed   int // records visible: those kept at the last Flush
	total     int
}

type opening struct {
	id    frame.TopicID
	parts []frame.Partition
}

type loss struct {
	reason frame.Reason
	ranges []frame.Range
	parts  []frame.Partition
}

// kept is a copy of a record.
type kept struct {
	offset  int64
	time    int64
	key     []byte
	value   []byte
	headers []frame.Header
}

func newRecorder(t testing.TB) *recorder {
	return &recorder{t: t, recs: make(map[int32][]kept)}
}

func (r *recorder) enter() {
	if !r.busy.CompareAndSwap(false, true) {
		r.t.Error("the sink is called by two goroutines at once")
	}
	r.mu.Lock()
}

func (r *recorder) leave() {
	r.mu.Unlock()
	r.busy.Store(false)
}

func (r *recorder) Open(id frame.TopicID, parts []frame.Partition) {
	r.enter()
	defer r.leave()
	if n := len(r.opens); n > 0 && r.opens[n-1].id != (frame.TopicID{}) {
		r.t.Errorf("opened again though it was open: %v", r.opens)
	}
	if warm := len(r.warms) > 0 && len(r.opens) == 0; warm {
		for _, p := range parts {
			if r.next[p.ID] != p.Next {
				r.t.Errorf("partition %d opens at %d, the warm-up went to %d", p.ID, p.Next, r.next[p.ID])
			}
		}
	}
	r.opens = append(r.opens, opening{id, parts})
	r.start(parts)
}

func (r *recorder) Warm(id frame.TopicID, parts []frame.Partition) {
	r.enter()
	defer r.leave()
	if len(r.opens) > 0 || len(r.warms) > 0 {
		r.t.Errorf("warmed %d times, opened %v", len(r.warms)+1, r.opens)
	}
	r.warms = append(r.warms, opening{id, parts})
	r.start(parts)
}

func (r *recorder) Recreated(id frame.TopicID, parts []frame.Partition) {
	r.enter()
	defer r.leave()
	if len(r.opens)+len(r.warms) == 0 {
		r.t.Error("recreated before it was opened")
	}
	r.recreated = append(r.recreated, opening{id, parts})
	r.recs = make(map[int32][]kept)
	r.start(parts)
}

func (r *recorder) start(parts []frame.Partition) {
	r.next = make(map[int32]int64)
	for i, p := range parts {
		if p.ID != int32(i) {
			r.t.Errorf("partition %d at place %d", p.ID, i)
		}
		r.next[p.ID] = p.Next
	}
}

func (r *recorder) Append(partition int32, recs []frame.Record) {
	r.enter()
	defer r.leave()
	if len(recs) == 0 || len(recs) > batchRecordsMax {
		r.t.Errorf("%d records in one batch", len(recs))
	}
	next, ok := r.next[partition]
	if !ok || next == frame.Unknown {
		r.t.Errorf("records of partition %d, which is not open", partition)
	}
	for _, rec := range recs {
		if rec.Offset < next {
			r.t.Errorf("partition %d: offset %d though the position is %d", partition, rec.Offset, next)
		}
		if rec.Partition != partition {
			r.t.Errorf("a record of partition %d among those of %d", rec.Partition, partition)
		}
		next = rec.Offset + 1
		k := kept{offset: rec.Offset, time: rec.Time, key: slices.Clone(rec.Key), value: slices.Clone(rec.Value)}
		for _, h := range rec.Headers {
			k.headers = append(k.headers, frame.Header{Name: h.Name, Value: slices.Clone(h.Value)})
		}
		r.recs[partition] = append(r.recs[partition], k)
		r.total++
	}
	r.next[partition] = next
}

func (r *recorder) Advance(partition int32, next int64) {
	r.enter()
	defer r.leave()
	if len(r.opens)+len(r.warms) == 0 {
		r.t.Error("advanced before it was opened")
	}
	if was, ok := r.next[partition]; ok && next <= was {
		r.t.Errorf("partition %d advances from %d to %d", partition, was, next)
	}
	r.next[partition] = next
}

func (r *recorder) Lost(reason frame.Reason, ranges []frame.Range, parts []frame.Partition) {
	r.enter()
	defer r.leave()
	for i, g := range ranges {
		was, now := r.next[g.Partition], parts[i].Next
		ok := g.From <= g.To && parts[i].ID == g.Partition
		switch reason {
		case frame.Expired:
			ok = ok && g.From == was && g.To+1 == now
		case frame.Truncated:
			ok = ok && g.From == now && g.To+1 == was
		default:
			ok = false
		}
		if !ok {
			r.t.Errorf("lost %s %+v: position %d -> %d", reason, g, was, now)
		}
		r.next[g.Partition] = now
		if reason == frame.Truncated {
			r.recs[g.Partition] = slices.DeleteFunc(r.recs[g.Partition], func(k kept) bool { return k.offset >= now })
		}
	}
	r.losses = append(r.losses, loss{reason, ranges, parts})
}

func (r *recorder) Flush(*hub.Wakes) {
	r.enter()
	defer r.leave()
	r.flushed = r.total
}

// offsets returns what partition p got, if it is visible already.
func (r *recorder) offsets(p int32) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flushed != r.total {
		return nil
	}
	var o []int64
	for _, k := range r.recs[p] {
		o = append(o, k.offset)
	}
	return o
}

func (r *recorder) values(p int32) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var v []string
	for _, k := range r.recs[p] {
		v = append(v, string(k.value))
	}
	return v
}

func (r *recorder) position(p int32) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.next[p]
	return n, ok
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flushed
}

// warmed returns how it was warmed, nil if it was not.
func (r *recorder) warmed() *opening {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.warms) == 0 {
		return nil
	}
	return &r.warms[0]
}

// opened returns how it was opened the last time, nil if it was not.
func (r *recorder) opened() *opening {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.opens) == 0 {
		return nil
	}
	return &r.opens[len(r.opens)-1]
}

func (r *recorder) lost() []loss {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.losses)
}

func (r *recorder) recreations() []opening {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recreated)
}

// upTo returns from, from+1, ... n-1.
func upTo(from, n int64) []int64 {
	var o []int64
	for ; from < n; from++ {
		o = append(o, from)
	}
	return o
}

// wantOffsets waits until partition p of r holds exactly want.
func wantOffsets(t testing.TB, r *recorder, p int32, want []int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("partition %d to hold %v", p, brief(want)), func() (bool, any) {
		got := r.offsets(p)
		return slices.Equal(got, want), brief(got)
	})
}

func brief(o []int64) string {
	if len(o) > 24 {
		return fmt.Sprintf("%d offsets %d..%d", len(o), o[0], o[len(o)-1])
	}
	return fmt.Sprint(o)
}
