package bench

import "bytes"

// Bounds of an idCache.
const (
	// cachedIDs is how many records it remembers: ten seconds of a hundred a
	// second, more than the streams of a run are apart.
	cachedBits = 10
	cachedIDs  = 1 << cachedBits
	// cachedFrom is the length from which an id is worth it: a shorter one is
	// read as fast as it is compared.
	cachedFrom = 48
)

// idCache remembers what ids say. Thousands of streams get the same record with
// the same id, which takes microseconds to read when it tells of a hundred
// partitions. It belongs to one client; in use it allocates nothing.
type idCache struct{ slots [cachedIDs]cachedID }

type cachedID struct {
	id     []byte
	p      int32
	offset int64
	ok     bool
}

// read is readID for the id of record seq of partition p.
func (c *idCache) read(id []byte, p int32, seq int64) (offset int64, ok bool) {
	if len(id) < cachedFrom {
		return readID(id, p)
	}
	// Fibonacci hashing, so that no number of partitions has them meet.
	s := &c.slots[(uint64(seq)<<20+uint64(p))*0x9E3779B97F4A7C15>>(64-cachedBits)]
	if s.p != p || !bytes.Equal(s.id, id) {
		s.id, s.p = append(s.id[:0], id...), p
		s.offset, s.ok = readID(id, p)
	}
	return s.offset, s.ok
}
