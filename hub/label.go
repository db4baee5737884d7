package hub

import (
	"encoding/binary"

	"tailcast/frame"
)

// Label is what a feed keeps beside a frame for filtered streams: where the
// frame is, and the values of the feed's fields in its record. Labels lie in a
// log of their own, in the order of their frames, so that a loop reads them
// without a lock and without touching the frames of others.
//
// The values are here as they are, and not as hashes: a filter compares bytes,
// so that no collision shows one user's record to another.
type Label struct {
	Place int64 // of the frame in the log
	Size  int   // of the frame
	Kind  LabelKind

	values []byte // aliases the log of labels
}

// LabelKind says whose frame a label is of.
type LabelKind uint8

// The kinds of labels.
const (
	LabelRecord LabelKind = iota // a record's: for the streams whose filters match
	LabelAll                     // a resync event: for every stream
	LabelNone                    // an id without a record: for nobody, but positions move with it
	noLabel                      // a heartbeat's, which filtered streams have of their own
)

// labelHead is the length of a label without its values: place, frame's size,
// values' length, kind.
const labelHead = 8 + 4 + 4 + 1

// appendLabel appends a label but for its values, which the caller appends
// before it calls endLabel.
func appendLabel(dst []byte, kind LabelKind, place int64, size int) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(place))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	return append(dst, 0, 0, 0, 0, byte(kind))
}

// endLabel completes the label in b.
func endLabel(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-labelHead))
	return b
}

// label appends the label of the frame at place; nothing while the feed has no
// fields. mu must be held.
func (f *Feed) label(kind LabelKind, place int64, size int, rec *frame.Record) {
	if f.labeler == nil || kind == noLabel {
		return
	}
	b := appendLabel(f.labelBuf[:0], kind, place, size)
	if rec != nil {
		b = f.labeler.appendValues(b, rec)
	}
	f.labelBuf = endLabel(b)
	at := f.labels.append(f.labelBuf)
	f.labeling = place
	if rec != nil {
		f.index.labels.push(at)
	}
}

// labelAt returns the place of the label of the record with an ordinal, or
// behind the last label. mu must be held.
func (f *Feed) labelAt(ordinal uint64) int64 {
	if ordinal < f.index.labels.end() {
		return *f.index.labels.at(ordinal)
	}
	return f.labels.end
}

// dropLabels gives up the labels of frames below place, as far as they fill
// segments. mu must be held.
func (f *Feed) dropLabels(place int64) {
	for {
		segs := *f.labels.table.Load()
		if len(segs) < 2 {
			return
		}
		if next, _ := NextLabel(segs[1].mem); next.Place > place {
			return
		}
		f.labels.dropOldest()
	}
}

// learn adds fields to those that records are labeled with. Records that came
// before are forgotten by the index, as if the log did not hold them: streams
// that lack them get them from history. The error names what is wrong.
func (f *Feed) learn(fields []Field) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, news, err := f.fields.with(fields)
	if err != nil || !news {
		return err
	}
	f.fields, f.labeler = all, newLabeler(all)
	f.voidKeys(-1)
	f.index.reset()
	for i := range f.parts {
		f.index.parts[i].base = f.parts[i].next
	}
	f.flushNow(nil)
	return nil
}

// newLabeler returns a labeler of the feed's fields; nil without any.
func (f *Feed) newLabeler() *labeler {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.labeler == nil {
		return nil
	}
	return newLabeler(f.fields)
}

// NextLabel returns the first label in b, which holds one or more whole ones,
// and its length.
func NextLabel(b []byte) (Label, int) {
	end := labelHead + int(binary.LittleEndian.Uint32(b[12:]))
	return Label{
		Place: int64(binary.LittleEndian.Uint64(b)),
		Size:  int(binary.LittleEndian.Uint32(b[8:])),
		Kind:  LabelKind(b[16]), values: b[labelHead:end:end],
	}, end
}

// nextValue returns the first value in b, with the field's number before it,
// and what follows.
func nextValue(b []byte) (value, rest []byte) {
	n := 2 + int(binary.LittleEndian.Uint16(b))
	return b[2:n:n], b[n:]
}
