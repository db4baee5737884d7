package hub

import (
	"slices"
	"sync"
	"sync/atomic"
)

// freeSegmentsMax bounds the segments kept for reuse: enough for the feeds
// that roll over within one turn of the loops, 4 MiB in all.
const freeSegmentsMax = 16

// pool lends segments and takes them back when no loop can still be reading
// them: a segment that left its log is used again only after every loop has
// ended the turn it was in. Safe from any goroutine.
type pool struct {
	boxes []*Mailbox   // every loop; fixed before use
	held  atomic.Int64 // bytes of the segments that are in logs

	mu      sync.Mutex
	retired []retired  // oldest first; at most freeSegmentsMax, the rest is left to the collector
	spare   [][]uint64 // turn counts to use again
}

// retired is a segment that left its log, with the loops' turns at that time.
type retired struct {
	seg   *segment
	turns []uint64
}

// get returns an empty segment of at least n bytes.
func (p *pool) get(n int) *segment {
	s := p.reuse(n)
	if s == nil {
		s = &segment{mem: make([]byte, n)}
	}
	p.held.Add(int64(len(s.mem)))
	return s
}

func (p *pool) reuse(n int) *segment {
	if n != segmentBytes {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.retired) == 0 || !p.passed(p.retired[0].turns) {
		return nil
	}
	r := p.retired[0]
	p.retired = slices.Delete(p.retired, 0, 1)
	p.spare = append(p.spare, r.turns)
	r.seg.used = 0
	return r.seg
}

// retire takes a segment that is in no table any more.
func (p *pool) retire(s *segment) {
	p.held.Add(-int64(len(s.mem)))
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(s.mem) != segmentBytes || len(p.retired) == freeSegmentsMax {
		return
	}
	var turns []uint64
	if n := len(p.spare); n > 0 {
		turns, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	turns = turns[:0]
	for _, b := range p.boxes {
		turns = append(turns, b.turn.Load())
	}
	p.retired = append(p.retired, retired{s, turns})
}

// passed reports whether no loop is still in the turn it was in at turns.
// mu must be held.
func (p *pool) passed(turns []uint64) bool {
	for i, b := range p.boxes {
		if turns[i]%2 == 1 && b.turn.Load() == turns[i] {
			return false
		}
	}
	return true
}
