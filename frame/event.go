package frame

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// Encoder makes the frames of one route. NewEncoder compiles one.
//
// One goroutine at a time: it has scratch space.
type Encoder struct {
	// Fixed by NewEncoder.
	envelope    bool
	base64      bool
	drop        bool
	skipDeletes bool
	keyID       bool
	max         int      // of size(record)
	fixed       []byte   // event name, or
	header      string   // record header that has it, or
	path        []string // field of the value that has it

	scratch [nameBytesMax]byte // a name while its escapes are decoded
	id      []byte             // an id behind its key
}

// Kind is what a record became.
type Kind uint8

// The kinds of outcome.
const (
	Silent  Kind = iota // nothing was appended: dropped or skipped by policy
	Event               // the record's event
	Deleted             // the event `delete` of a tombstone
	Skipped             // the event `skipped` of a record over MaxEvent
)

// Outcome is what AppendEvent made of a record.
type Outcome struct {
	Kind
	Extents       // of the frame; zero if Silent
	Replaced bool // bytes that are not UTF-8 became U+FFFD
	Dropped  bool // Silent because bytes are not UTF-8 (Drop)
	Unnamed  bool // the record's event name is not allowed, so the event has none
}

// The fields of a block (WHATWG HTML 9.2.5), in the order of their lines and
// each with one space, which the reader takes off again: without it a value's
// own leading space would go.
const (
	idField    = "id: "
	eventField = "event: "
	dataField  = "data: "
)

// AppendEvent appends one frame with the event of r. id is the position after
// r; it ends up in the id line as it is, or behind the key (Format.KeyID).
//
// Lines of a value end at CR, LF and CRLF, and at nothing else; the reader
// gets LF for each. An empty value is an event with empty data.
//
// REQUIRES: id is not empty and has no CR, LF or NUL.
func (e *Encoder) AppendEvent(dst, id []byte, r *Record) ([]byte, Outcome) {
	if r.Value == nil && e.skipDeletes {
		return dst, Outcome{}
	}
	if e.keyID {
		e.id = append(appendKey(e.id[:0], r.Key), id...)
		id = e.id
	}
	if size := e.size(r); size > e.max {
		return appendSkipped(dst, id, r, size)
	}
	out := Outcome{Kind: Event}
	var name []byte
	if r.Value == nil {
		out.Kind, name = Deleted, []byte("delete")
	} else {
		name, out.Unnamed = e.name(r)
	}
	if e.envelope {
		return e.appendEnveloped(dst, id, name, r, out)
	}
	return e.appendRaw(dst, id, name, r, out)
}

// size is what MaxEvent bounds.
func (e *Encoder) size(r *Record) int {
	if !e.envelope {
		if r.Value == nil {
			return len(r.Key)
		}
		return len(r.Value)
	}
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	return n
}

func (e *Encoder) appendRaw(dst, id, name []byte, r *Record, out Outcome) ([]byte, Outcome) {
	data := r.Value
	if out.Kind == Deleted {
		data = r.Key
	}
	n := len(data)
	valid := true
	if e.base64 {
		n = base64.StdEncoding.EncodedLen(n)
	} else if valid = utf8.Valid(data); !valid && e.drop {
		return dst, Outcome{Dropped: true}
	}
	out.Replaced = !valid

	dst, b := beginBlock(dst, id, name, len(dataField)+n+len("\n"))
	if e.base64 {
		dst = append(dst, dataField...)
		dst = base64.StdEncoding.AppendEncode(dst, data)
		dst = append(dst, '\n')
	} else {
		dst = appendLines(dst, data, valid)
	}
	dst, out.Extents = b.end(dst)
	return dst, out
}

// appendLines appends v as data lines, of which there is always one.
func appendLines(dst, v []byte, valid bool) []byte {
	for {
		lf := bytes.IndexByte(v, '\n')
		piece := v
		if lf >= 0 {
			piece = v[:lf]
			if lf > 0 && v[lf-1] == '\r' {
				piece = v[:lf-1] // CRLF is one line end
			}
		}
		for {
			cr := bytes.IndexByte(piece, '\r')
			if cr < 0 {
				break
			}
			dst = appendLine(dst, piece[:cr], valid)
			piece = piece[cr+1:]
		}
		dst = appendLine(dst, piece, valid)
		if lf < 0 {
			return dst
		}
		v = v[lf+1:]
	}
}

func appendLine(dst, line []byte, valid bool) []byte {
	dst = append(dst, dataField...)
	if valid {
		dst = append(dst, line...)
	} else {
		dst = appendReplaced(dst, line)
	}
	return append(dst, '\n')
}

// appendSkipped appends the event that stands for a record over MaxEvent.
func appendSkipped(dst, id []byte, r *Record, size int) ([]byte, Outcome) {
	out := Outcome{Kind: Skipped}
	dst, b := beginBlock(dst, id, []byte("skipped"), len(`data: {"topic":"","partition":2147483647,"offset":9223372036854775807,"size":1000000000}`)+len(r.Topic))
	dst = append(dst, dataField...)
	dst, out.Replaced = appendPlace(dst, r)
	dst = append(dst, `,"size":`...)
	dst = strconv.AppendInt(dst, int64(size), 10)
	dst = append(dst, "}\n"...)
	dst, out.Extents = b.end(dst)
	return dst, out
}

// block is a block being appended to a buffer, in its chunk.
type block struct {
	chunk
	id int // bytes of the id line
}

// beginBlock appends room for the chunk's head, the id line if id is not nil
// and the event line if name is not empty. The caller appends data lines of
// about n bytes and calls end.
func beginBlock(dst, id, name []byte, n int) ([]byte, block) {
	var b block
	if id != nil {
		b.id = idLineLen(id)
	}
	n += b.id + len("\n")
	if len(name) > 0 {
		n += len(eventField) + len(name) + len("\n")
	}
	dst, b.chunk = beginChunk(dst, n)
	if id != nil {
		dst = appendIDLine(dst, id)
	}
	if len(name) > 0 {
		dst = append(dst, eventField...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	return dst, b
}

// end appends the empty line that dispatches the event, and closes the chunk.
func (b *block) end(dst []byte) ([]byte, Extents) {
	dst = b.chunk.end(append(dst, '\n'))
	return dst, Extents{Head: b.head, ID: b.id, Block: len(dst) - b.start - b.head - len("\r\n")}
}

func idLineLen(id []byte) int { return len(idField) + len(id) + len("\n") }

func appendIDLine(dst, id []byte) []byte {
	dst = append(dst, idField...)
	dst = append(dst, id...)
	return append(dst, '\n')
}
