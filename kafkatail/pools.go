package kafkatail

import (
	"math/bits"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// pools lends the library the memory that batches are decompressed and decoded
// into. It comes back when the last record of a batch is recycled, so a
// record's bytes must not be kept longer than that.
//
// Memory is kept by size class: what is handed back is cleared whole, and a
// small batch must not pay for clearing a large one's memory.
type pools struct {
	bytes   classes[byte]
	records classes[kgo.Record]
}

var (
	_ kgo.PoolDecompressBytes = (*pools)(nil)
	_ kgo.PoolRecords         = (*pools)(nil)
)

// GetDecompressBytes guesses a ratio of four; the library grows what is short
// and hands back the grown slice.
func (p *pools) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	return p.bytes.get(4 * len(compressed))
}

func (p *pools) PutDecompressBytes(b []byte) { p.bytes.put(b) }

func (p *pools) GetRecords(n int) []kgo.Record { return p.records.get(n) }

func (p *pools) PutRecords(r []kgo.Record) { p.records.put(r) }

// classesMax is the number of classes; a slice above the last is left to the
// garbage collector.
const classesMax = 27 // up to 64 Mi elements

// classes holds slices by the power of two that their capacity reaches.
type classes[T any] [classesMax]sync.Pool

// get returns an empty slice with room for n.
func (c *classes[T]) get(n int) []T {
	class := bits.Len(uint(max(n, 1) - 1)) // smallest class with 1<<class >= n
	if class >= classesMax {
		return make([]T, 0, n)
	}
	if s, ok := c[class].Get().(*[]T); ok {
		return (*s)[:0]
	}
	return make([]T, 0, 1<<class)
}

func (c *classes[T]) put(s []T) {
	if cap(s) == 0 {
		return
	}
	if class := bits.Len(uint(cap(s))) - 1; class < classesMax { // largest class with 1<<class <= cap
		c[class].Put(&s)
	}
}
