package frame

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sort"
)

// IDWriter holds a position that advances record by record, and its id.
//
// An id that is written anew for every record costs a pass over all
// partitions. IDWriter keeps the text and, when the new offset has the old
// one's length, which is nearly always, patches the digits (v1) or the
// characters that the number's bytes touch (v2). After any calls Append
// writes what AppendID(nil, w.Position()) would.
//
// The zero IDWriter is at the empty position. One goroutine at a time.
type IDWriter struct {
	pos    Position // no Next is 0
	text   []byte   // the id
	packed []byte   // v2: what text is the base64 of; v1: empty
	at     places   // of every pair's offset: in text (v1), in packed (v2)
	first  []int    // of every group: its first pair's place in at
	plain  int      // plainLen(pos)
}

// Set moves the writer to p, whatever it held before. It copies p.
// p is as AppendID requires it.
func (w *IDWriter) Set(p Position) {
	w.pos = slices.Grow(w.pos[:0], len(p))[:len(p)]
	for i := range p {
		g := &w.pos[i]
		g.Tag, g.Parts = p[i].Tag, g.Parts[:0]
		for _, part := range p[i].Parts {
			if part.Next != 0 {
				g.Parts = append(g.Parts, part)
			}
		}
	}
	w.render()
}

// Advance sets the next offset of one partition: forward, back, to Unknown,
// or to 0, at which it is left out. A partition that was not there is added.
func (w *IDWriter) Advance(group int, partition int32, next int64) {
	parts := w.pos[group].Parts
	i, ok := find(parts, partition)
	switch {
	case !ok && next == 0:
	case !ok:
		w.pos[group].Parts = slices.Insert(parts, i, Partition{ID: partition, Next: next})
		w.render()
	case next == 0:
		w.pos[group].Parts = slices.Delete(parts, i, i+1)
		w.render()
	default:
		was := parts[i].Next
		parts[i].Next = next
		if !w.patch(w.first[group]+i, was, next) {
			w.render()
		}
	}
}

// Next returns the next offset of a partition, which may be Unknown. It is 0
// for a partition that the position leaves out.
func (w *IDWriter) Next(group int, partition int32) int64 {
	parts := w.pos[group].Parts
	if i, ok := find(parts, partition); ok {
		return parts[i].Next
	}
	return 0
}

// Position returns where the writer is. It aliases the writer and is valid
// until the next Set or Advance; callers must not change it.
func (w *IDWriter) Position() Position { return w.pos }

// Len returns the length of the id.
func (w *IDWriter) Len() int { return max(len(w.text), len(plainPrefix)) }

// Append appends the id.
func (w *IDWriter) Append(dst []byte) []byte {
	if len(w.text) == 0 {
		return append(dst, plainPrefix...)
	}
	return append(dst, w.text...)
}

// find returns where the partition is in parts, or belongs.
func find(parts []Partition, id int32) (int, bool) {
	if i := int(id); i < len(parts) && parts[i].ID == id { // all partitions are there: the usual case
		return i, true
	}
	i := sort.Search(len(parts), func(i int) bool { return parts[i].ID >= id })
	return i, i < len(parts) && parts[i].ID == id
}

// render writes the id anew.
func (w *IDWriter) render() {
	w.first = w.first[:0]
	n := 0
	for i := range w.pos {
		w.first = append(w.first, n)
		n += len(w.pos[i].Parts)
	}
	w.plain = plainLen(w.pos)
	w.at = w.at[:0]
	w.packed = w.packed[:0]
	if w.plain <= plainMax {
		w.text = appendPlain(w.text[:0], w.pos, &w.at)
		return
	}
	w.packed = appendPacked(w.packed, w.pos, &w.at)
	w.text = base64.RawURLEncoding.AppendEncode(append(w.text[:0], packedPrefix...), w.packed)
}

// patch changes the offset of one pair in the id. It is false if the new one
// has another length or the id another form, so that the rest moves.
func (w *IDWriter) patch(pair int, was, next int64) bool {
	pos := int(w.at[pair])
	wasLen, nextLen := offsetLen(was), offsetLen(next)
	w.plain += nextLen - wasLen
	if len(w.packed) == 0 {
		if nextLen != wasLen {
			return false
		}
		appendOffset(w.text[:pos], next)
		return true
	}
	size := uvarintLen(packedNext(next))
	if size != uvarintLen(packedNext(was)) || w.plain <= plainMax {
		return false
	}
	binary.PutUvarint(w.packed[pos:], packedNext(next))
	// Three bytes are four characters: those that hold one of the number's.
	from := pos / 3
	to := min((pos+size+2)/3*3, len(w.packed))
	base64.RawURLEncoding.Encode(w.text[len(packedPrefix)+from*4:], w.packed[from*3:to])
	return true
}

// uvarintLen returns the length of n as binary.AppendUvarint writes it.
func uvarintLen(n uint64) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}
