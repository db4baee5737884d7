package hub

import (
	"sort"
	"sync/atomic"
)

const (
	// segmentBytes is the size of a segment: a lagging stream gets at most one
	// of them a write, far above what a socket takes.
	segmentBytes = 256 << 10
	// segmentBytesMin is the size of a log's first segment, so that thousands
	// of feeds with little to say fit into memory. Each one behind it is as
	// large as all before it together, up to segmentBytes: half of a small log
	// is in use.
	segmentBytesMin = 4 << 10
)

// segment is a run of the log's bytes. The writer fills mem from the front;
// readers look only below the published head.
type segment struct {
	mem   []byte // fixed from get to put
	start int64  // place of mem[0]; fixed before the segment is in a table
	used  int    // bytes of mem written; the writer's alone
}

// slice returns the bytes from place to end, both inside s.
func (s *segment) slice(place, end int64) []byte {
	return s.mem[place-s.start : end-s.start : end-s.start]
}

// log is a feed's frames in the order they were appended. A place is the
// number of bytes appended before it since the feed was made: it only grows
// and is never used twice. No frame lies across two segments.
//
// One writer at a time (the feed's mutex); readers are lock-free, and may use
// what read returned until their loop's turn ends.
type log struct {
	pool *pool
	max  int64 // ceiling of held; the newest segment is never given up
	size int64 // of the first segment

	// Owned by the writer.
	end   int64 // place after the last byte appended
	first int64 // lowest place still held
	held  int64 // capacity of all segments

	// Written by the writer, read by loops.
	head  atomic.Int64               // end, as far as loops may read
	table atomic.Pointer[[]*segment] // oldest first; a table is never changed, only replaced
}

func (l *log) init(p *pool, ceiling int64) {
	l.pool, l.max, l.size = p, ceiling, segmentBytesMin
	l.table.Store(new([]*segment))
}

// append copies one frame (or several whole ones) behind the last.
func (l *log) append(b []byte) (place int64) {
	segs := *l.table.Load()
	var last *segment
	if n := len(segs); n > 0 {
		last = segs[n-1]
	}
	if last == nil || len(last.mem)-last.used < len(b) {
		last = l.grow(len(b))
	}
	place = l.end
	last.used += copy(last.mem[last.used:], b)
	l.end += int64(len(b))
	return place
}

// grow adds a segment for at least n bytes and gives up the oldest ones above
// the ceiling.
func (l *log) grow(n int) *segment {
	s := l.pool.get(max(n, int(min(segmentBytes, max(l.size, l.held)))))
	s.start = l.end
	l.held += int64(len(s.mem))
	old := *l.table.Load()
	drop := 0
	for drop < len(old) && l.held > l.max {
		l.held -= int64(len(old[drop].mem))
		drop++
	}
	l.replace(old, drop, s)
	return s
}

// dropOldest gives up the oldest segment unless it is the one written to.
func (l *log) dropOldest() bool {
	old := *l.table.Load()
	if len(old) < 2 {
		return false
	}
	l.held -= int64(len(old[0].mem))
	l.replace(old, 1, nil)
	return true
}

// replace publishes old[drop:] and s (nil: none) as the table, and hands
// old[:drop] to the pool.
func (l *log) replace(old []*segment, drop int, s *segment) {
	table := make([]*segment, 0, len(old)-drop+1)
	table = append(table, old[drop:]...)
	if s != nil {
		table = append(table, s)
	}
	l.first = table[0].start
	l.table.Store(&table)
	for _, gone := range old[:drop] {
		l.pool.retire(gone)
	}
}

// close gives up every segment; nothing is appended or read any more.
func (l *log) close() {
	old := *l.table.Load()
	l.table.Store(new([]*segment))
	l.held, l.first = 0, l.end
	for _, gone := range old {
		l.pool.retire(gone)
	}
}

// publish lets readers see everything appended so far.
func (l *log) publish() { l.head.Store(l.end) }

// read returns the bytes from place on that lie in one segment, none at the
// head, or false when place is no longer held. The bytes are read-only and
// valid until the caller's turn ends. Safe from any loop inside a turn.
func (l *log) read(place int64) ([]byte, bool) {
	head := l.head.Load()
	if place >= head {
		return nil, true
	}
	segs := *l.table.Load()
	if len(segs) == 0 {
		return nil, false
	}
	if last := segs[len(segs)-1]; place >= last.start {
		return last.slice(place, head), true
	}
	i := sort.Search(len(segs), func(i int) bool { return segs[i].start > place }) - 1
	if i < 0 {
		return nil, false
	}
	return segs[i].slice(place, min(head, segs[i+1].start)), true
}
