package hub

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"sort"
)

const (
	// keySegmentBytes is the size at which a key table begins another segment:
	// what is moved at a time when records give way to newer ones, some 30 us.
	keySegmentBytes = 64 << 10
	// keyBytes is about what a key costs beside its record: its place in the
	// map, at the map's mean load.
	keyBytes = 32
)

// keyTable holds the latest record of each key of one partition, in the order
// of offsets. Records lie in segments; one whose greater part is superseded is
// written anew without it, so that the table holds at most about twice its
// records, and a put costs no more than a segment.
//
// A record is its key and what its owner keeps with it. Not safe for use by
// several goroutines.
type keyTable struct {
	segs    []*keySegment // by number, and so by offset
	refs    map[uint64]keyRef
	clashes map[string]keyRef // keys whose hash is another one's
	hash    func(key []byte) uint64
	numbers uint32

	live    int   // records held, tombstones too
	deletes int   // of them tombstones
	held    int64 // bytes, about
	dropped int64 // behind the last tombstone that was forgotten
}

// keyRef is where a record is.
type keyRef struct {
	seg  uint32 // its number
	slot uint32
}

// keySegment is a run of records.
type keySegment struct {
	number  uint32
	mem     []byte
	entries []keyEntry // by offset, the dead ones too
	live    int
	dead    int   // bytes of superseded records
	oldest  int64 // time of the first tombstone to forget; none: math.MaxInt64
}

// keyEntry is one record: its bytes lie from pos to the next one's.
type keyEntry struct {
	offset int64
	pos    uint32
	key    uint32 // length of the key, and flags
}

// The flags of keyEntry.key.
const (
	keyDead      = 1 << 31 // superseded or forgotten
	keyTombstone = 1 << 30 // the record is a time, as 8 bytes, and then as others
	keyLength    = keyTombstone - 1
)

var keySeed = maphash.MakeSeed()

func newKeyTable() *keyTable {
	return &keyTable{
		refs: map[uint64]keyRef{}, clashes: map[string]keyRef{},
		hash: func(key []byte) uint64 { return maphash.Bytes(keySeed, key) },
	}
}

// bytes is about what the table holds in memory.
func (t *keyTable) bytes() int64 { return t.held + int64(t.live)*keyBytes }

// put makes a record the latest of its key. at is the time of a tombstone, in
// milliseconds since 1970, and negative for other records.
//
// REQUIRES: offset is above every one before; key has fewer than 2^30 bytes.
func (t *keyTable) put(offset int64, key, rest []byte, at int64) {
	h := t.hash(key)
	t.drop(h, key)
	size := len(key) + len(rest)
	s := t.last(size)
	before := s.size()
	e := keyEntry{offset, uint32(len(s.mem)), uint32(len(key))}
	if at >= 0 {
		e.key |= keyTombstone
		s.mem = binary.LittleEndian.AppendUint64(s.mem, uint64(at))
		s.oldest = min(s.oldest, at)
		t.deletes++
	}
	if len(s.mem) >= keySegmentBytes/16 && cap(s.mem) < keySegmentBytes { // it will be filled
		s.mem = slices.Grow(s.mem, keySegmentBytes-len(s.mem))
	}
	s.mem = append(append(s.mem, key...), rest...)
	s.entries = append(s.entries, e)
	s.live++
	t.live++
	t.held += s.size() - before
	t.file(h, key, keyRef{s.number, uint32(len(s.entries) - 1)})
}

// forget removes the record of a key, if there is one.
func (t *keyTable) forget(key []byte) { t.drop(t.hash(key), key) }

// last returns the segment that the next record of size bytes belongs to.
func (t *keyTable) last(size int) *keySegment {
	if n := len(t.segs); n > 0 {
		s := t.segs[n-1]
		if len(s.mem)+size <= keySegmentBytes {
			return s
		}
	}
	s := &keySegment{number: t.numbers, oldest: math.MaxInt64}
	t.numbers++
	t.segs = append(t.segs, s)
	t.held += s.size()
	return s
}

// segmentHead is about what a segment costs beside its records.
const segmentHead = 128

func (s *keySegment) size() int64 {
	return segmentHead + int64(cap(s.mem)) + 16*int64(cap(s.entries))
}

// file notes where the record of a key is.
func (t *keyTable) file(h uint64, key []byte, ref keyRef) {
	if other, ok := t.refs[h]; ok && !bytes.Equal(t.keyAt(other), key) {
		t.clashes[string(key)] = ref
		return
	}
	t.refs[h] = ref
}

// unfile forgets where the record of a key is, and returns it.
func (t *keyTable) unfile(h uint64, key []byte) (keyRef, bool) {
	if ref, ok := t.refs[h]; ok && bytes.Equal(t.keyAt(ref), key) {
		delete(t.refs, h)
		return ref, true
	}
	ref, ok := t.clashes[string(key)]
	if ok {
		delete(t.clashes, string(key))
	}
	return ref, ok
}

func (t *keyTable) keyAt(ref keyRef) []byte {
	return t.segs[t.seg(ref.seg)].record(int(ref.slot)).key
}

// seg returns the place of the segment with a number, which must be there.
func (t *keyTable) seg(number uint32) int {
	return sort.Search(len(t.segs), func(i int) bool { return t.segs[i].number >= number })
}

// drop removes the record of a key, and the segment's garbage if it is much.
func (t *keyTable) drop(h uint64, key []byte) {
	ref, ok := t.unfile(h, key)
	if !ok {
		return
	}
	i := t.seg(ref.seg)
	t.kill(t.segs[i], int(ref.slot))
	t.tidy(i)
}

// kill marks a record, which no ref names any more, as dead.
func (t *keyTable) kill(s *keySegment, slot int) {
	e := &s.entries[slot]
	if e.key&keyTombstone != 0 {
		t.deletes--
	}
	s.dead += s.end(slot) - int(e.pos)
	e.key |= keyDead
	s.live--
	t.live--
}

// tidy writes a segment anew if most of it is dead, behind the one before if
// both together are small, and removes it if all of it is.
func (t *keyTable) tidy(i int) {
	s := t.segs[i]
	if 2*s.dead <= len(s.mem) && 2*s.live >= len(s.entries) {
		return
	}
	t.held -= s.size()
	if s.live == 0 {
		t.segs = slices.Delete(t.segs, i, i+1)
		return
	}
	to := &keySegment{number: s.number, oldest: math.MaxInt64, mem: make([]byte, 0, len(s.mem)-s.dead), entries: make([]keyEntry, 0, s.live)}
	if i > 0 && len(t.segs[i-1].mem)+len(s.mem)-s.dead <= keySegmentBytes/2 {
		to = t.segs[i-1]
		t.held -= to.size()
		t.segs = slices.Delete(t.segs, i, i+1)
	} else {
		t.segs[i] = to
	}
	for slot, e := range s.entries {
		if e.key&keyDead != 0 {
			continue
		}
		b := s.mem[e.pos:s.end(slot)]
		e.pos = uint32(len(to.mem))
		to.mem = append(to.mem, b...)
		to.entries = append(to.entries, e)
		to.live++
		if e.key&keyTombstone != 0 {
			to.oldest = min(to.oldest, int64(binary.LittleEndian.Uint64(b)))
		}
		r := to.record(len(to.entries) - 1)
		t.refile(r.key, keyRef{s.number, uint32(slot)}, keyRef{to.number, uint32(len(to.entries) - 1)})
	}
	t.held += to.size()
}

// refile notes that the record of a key has moved.
func (t *keyTable) refile(key []byte, was, is keyRef) {
	h := t.hash(key)
	if t.refs[h] == was {
		if _, clash := t.clashes[string(key)]; !clash {
			t.refs[h] = is
			return
		}
	}
	t.clashes[string(key)] = is
}

// expire forgets the tombstones from before a time, in milliseconds since 1970,
// in so many segments at most, and reports whether there are more.
func (t *keyTable) expire(before int64, most int) (more bool) {
	for i, s := range slices.Backward(t.segs) { // tidy moves only what is behind
		if s.oldest >= before {
			continue
		}
		if most--; most < 0 {
			return true
		}
		s.oldest = math.MaxInt64
		for slot := range s.entries {
			r := s.record(slot)
			switch {
			case r.dead || r.at < 0:
			case r.at >= before:
				s.oldest = min(s.oldest, r.at)
			default:
				t.unfile(t.hash(r.key), r.key)
				t.kill(s, slot)
				t.dropped = max(t.dropped, r.offset+1)
			}
		}
		t.tidy(i)
	}
	return false
}

// keyRecord is one record of a keyTable. It aliases the table.
type keyRecord struct {
	offset    int64
	key, rest []byte
	at        int64 // of a tombstone; else negative
	dead      bool
}

func (s *keySegment) end(slot int) int {
	if slot+1 < len(s.entries) {
		return int(s.entries[slot+1].pos)
	}
	return len(s.mem)
}

func (s *keySegment) record(slot int) keyRecord {
	e := &s.entries[slot]
	r := keyRecord{offset: e.offset, at: -1, dead: e.key&keyDead != 0}
	b := s.mem[e.pos:s.end(slot)]
	if e.key&keyTombstone != 0 {
		r.at, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	}
	n := e.key & keyLength
	r.key, r.rest = b[:n:n], b[n:]
	return r
}

// from calls visit for every record with an offset from from on, the dead ones
// too, until it returns false.
func (t *keyTable) from(from int64, visit func(r *keyRecord) bool) {
	i := sort.Search(len(t.segs), func(i int) bool {
		e := t.segs[i].entries
		return e[len(e)-1].offset >= from
	})
	for ; i < len(t.segs); i++ {
		s := t.segs[i]
		slot := sort.Search(len(s.entries), func(k int) bool { return s.entries[k].offset >= from })
		for ; slot < len(s.entries); slot++ {
			if r := s.record(slot); !visit(&r) {
				return
			}
		}
	}
}
