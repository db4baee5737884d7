package hub

import "sort"

// frameBytesMean is the least that frames may have on average: the index holds
// no more records than LogBytes has so many bytes, and a log of smaller frames
// gives up its oldest segments early. At 32 bytes an entry, 8 an ordinal and
// rings that are not full, the index stays below about one and a half times
// LogBytes; records of 200 bytes take about a third of it.
const frameBytesMean = 64

// entry is one record's frame in the log. The frame's extents are not here:
// frame.Measure finds them in less time than the frame takes to copy.
type entry struct {
	place  int64 // of the frame's first byte
	offset int64
	time   int64 // the record's, in milliseconds since 1970; negative: none
	part   int32 // which of the feed's parts
}

// index finds the place in the log that a position selects. It holds the
// records whose frames are still in the log, by order of appending (their
// ordinal, counted from the feed's beginning) and by partition.
//
// The feed's mutex must be held.
type index struct {
	entries deque[entry]
	labels  deque[int64] // place of each entry's label; none while the feed has no fields
	parts   []partIndex
	// settled is an ordinal. The ids in frames below it say nothing of the
	// position in some partition that is known by now: a stream that knows it
	// must not get them, or it would forget.
	settled uint64
}

// partIndex is the records of one partition: ordinals, and so offsets, ascend.
type partIndex struct {
	ordinals deque[uint64]
	base     int64 // every record at or above it that the feed has appended is in the log

	skips deque[skip]
	told  int64 // the ids of all frames in the log are at it or behind it, as far as skips go
}

// skip is a move of a partition over offsets without a frame: the ids of
// frames from ordinal at on are behind it.
type skip struct {
	next int64
	at   uint64
}

// skipsMax bounds the skips a partition remembers: those of as many
// transactions between two records, at 16 KB. A position in one that is
// forgotten is told by a later one, which only makes a stream personal for longer.
const skipsMax = 1024

// skipped notes that part i moved to next, and no frame said so yet.
func (x *index) skipped(i int, next int64) {
	p := &x.parts[i]
	for p.skips.len() > 0 && p.skips.front().at <= x.entries.first {
		p.told = p.skips.front().next
		p.skips.pop()
	}
	now := skip{next, x.entries.end()}
	if n := p.skips.len(); n > 0 {
		if last := p.skips.at(p.skips.end() - 1); last.at == now.at || n == skipsMax {
			*last = now
			return
		}
	}
	p.skips.push(now)
}

// toldFrom returns the ordinal from which on the ids of frames are not before
// next, which is behind the partition's n-th record and covers no other.
func (x *index) toldFrom(p *partIndex, n int, next int64) uint64 {
	had := max(p.base, p.told)
	if n > 0 {
		had = max(had, x.offset(&p.ordinals, n-1)+1)
	}
	if next <= had {
		return x.entries.first
	}
	at := x.entries.end()
	if k := sort.Search(p.skips.len(), func(k int) bool { return p.skips.at(p.skips.first+uint64(k)).next >= next }); k < p.skips.len() {
		at = p.skips.at(p.skips.first + uint64(k)).at
	}
	if n < p.ordinals.len() {
		at = min(at, *p.ordinals.at(p.ordinals.first + uint64(n)))
	}
	return at
}

func (x *index) add(e entry) {
	x.parts[e.part].ordinals.push(x.entries.push(e))
}

// evict forgets the records whose frames lie below place, or their labels
// below label.
func (x *index) evict(place, label int64) {
	for x.entries.len() > 0 {
		e := x.entries.front()
		if e.place >= place && (x.labels.len() == 0 || *x.labels.front() >= label) {
			return
		}
		if x.labels.len() > 0 {
			x.labels.pop()
		}
		p := &x.parts[e.part]
		p.base = e.offset + 1
		p.ordinals.pop()
		x.entries.pop()
	}
}

// reset forgets every record: a generation begins, in which an offset may
// mean another record than before. The caller sets the bases.
func (x *index) reset() {
	x.entries.clear()
	x.labels = deque[int64]{first: x.entries.first}
	for i := range x.parts {
		p := &x.parts[i]
		p.ordinals.clear()
		p.skips.clear()
		p.told = 0
	}
}

// find returns where a stream goes on that has every record of part i below
// next[i] and none at or above it. It is false when no one place in the log
// separates the two, or the ids of the frames behind it are before next, so
// that the stream needs frames of its own. end is the place behind the last
// frame.
//
// REQUIRES: next[i] is within part i's base and next offset.
func (x *index) find(next []int64, end int64) (place int64, ok bool) {
	after, before := x.split(next)
	if max(before, x.settled) > after {
		return 0, false
	}
	if after == x.entries.end() {
		return end, true
	}
	return x.entries.at(after).place, true
}

// split returns the lowest ordinal of a record that a stream lacks, and the
// one from which on there is no record that it has and no id before next.
func (x *index) split(next []int64) (after, before uint64) {
	after, before = x.entries.end(), x.entries.first
	for i := range x.parts {
		ords := &x.parts[i].ordinals
		n := x.below(ords, next[i])
		if n < ords.len() {
			after = min(after, *ords.at(ords.first + uint64(n)))
		}
		if n > 0 {
			before = max(before, *ords.at(ords.first + uint64(n-1))+1)
		}
		before = max(before, x.toldFrom(&x.parts[i], n, next[i]))
	}
	return after, before
}

// below returns how many of a partition's records have offsets below next. It
// searches from the newest in doubling steps: most streams are near the end,
// and there the index is in the processor's cache.
func (x *index) below(ords *deque[uint64], next int64) int {
	lo, hi := ords.len(), ords.len()
	for step := 1; lo > 0; step *= 2 {
		hi, lo = lo, max(0, lo-step)
		if x.offset(ords, lo) < next {
			lo++
			break
		}
	}
	return lo + sort.Search(hi-lo, func(k int) bool { return x.offset(ords, lo+k) >= next })
}

// offset is that of a partition's k-th record.
func (x *index) offset(ords *deque[uint64], k int) int64 {
	return x.entries.at(*ords.at(ords.first + uint64(k))).offset
}

// at returns the ordinal of the first record whose frame begins at or behind
// place; end of entries if there is none.
func (x *index) at(place int64) uint64 {
	e := &x.entries
	return e.first + uint64(sort.Search(e.len(), func(k int) bool {
		return e.at(e.first+uint64(k)).place >= place
	}))
}
