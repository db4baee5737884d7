package frame

import (
	"bytes"
	"math/bits"
	"slices"
)

const (
	// Heartbeat is a chunk with one comment line, which is legal between any
	// two blocks and fires nothing. It is no block of its own (there is no
	// empty line), because some clients hand an empty message to the page for
	// one.
	Heartbeat = "2\r\n:\n\r\n"

	// LastChunk ends a chunked response (RFC 9112 7.1), without trailers.
	LastChunk = "0\r\n\r\n"
)

// Extents measures a frame, which is a chunk with one block:
//
//	1c5 CRLF            Head bytes: the chunk's head
//	id: v1:0-7~ab3f9 LF ID bytes: the id line; 0 if the block has none
//	event: delete LF
//	data: k1 LF
//	LF                  Block bytes from the id line through this empty line
//	CRLF
type Extents struct {
	Head, ID, Block int
}

// Len is the length of the frame.
func (x Extents) Len() int { return x.Head + x.Block + len("\r\n") }

// Measure returns the extents of a frame made by this package.
func Measure(frame []byte) Extents {
	var x Extents
	x.Head = bytes.IndexByte(frame, '\n') + 1
	x.Block = len(frame) - x.Head - len("\r\n")
	block := frame[x.Head:]
	if bytes.HasPrefix(block, []byte(idField)) {
		x.ID = bytes.IndexByte(block, '\n') + 1
	}
	return x
}

// PositionID returns the position in the id of a frame that has one, without
// the record's key (Format.KeyID): it is somebody's. It aliases frame.
func PositionID(frame []byte) []byte {
	x := Measure(frame)
	id := frame[x.Head+len(idField) : x.Head+x.ID]
	return id[len(keyOf(id)) : len(id)-len("\n")]
}

// Len returns the length of the first frame in b, which holds one or more
// whole frames: how a reader of the log steps from one to the next.
func Len(b []byte) int {
	n, i := 0, 0
	for ; b[i] != '\r'; i++ {
		n = n<<4 | int(unhex(b[i]))
	}
	return i + len("\r\n") + n + len("\r\n")
}

// unhex returns the value of a hex digit as chunk heads have them.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'a' + 10
}

// Unchunk returns the block in a frame, for HTTP/1.0. It aliases frame.
func Unchunk(frame []byte) []byte {
	return frame[bytes.IndexByte(frame, '\n')+1 : len(frame)-len("\r\n")]
}

// AppendReframed appends frame, measured by x, as a frame with another
// position as its id; a key in the id stays (Format.KeyID). The frame may have
// had none. It is a copy, not a new encoding.
func AppendReframed(dst, id, frame []byte, x Extents) []byte {
	key := keyIn(frame, x)
	body := frame[x.Head+x.ID : x.Head+x.Block]
	dst, c := beginChunk(dst, len(key)+idLineLen(id)+len(body))
	dst = append(appendKeyedIDLine(dst, key, id), body...)
	return c.end(dst)
}

// keyIn returns the key in a frame's id, as it is written there.
func keyIn(frame []byte, x Extents) []byte {
	if x.ID == 0 {
		return nil
	}
	return keyOf(frame[x.Head+len(idField) : x.Head+x.ID])
}

func appendKeyedIDLine(dst, key, id []byte) []byte {
	dst = append(dst, idField...)
	dst = append(dst, key...)
	dst = append(dst, id...)
	return append(dst, '\n')
}

// chunk is a chunk being appended to a buffer.
type chunk struct {
	start int // of the head in the buffer
	head  int // bytes of the head, CRLF included
}

// beginChunk appends room for the head of a chunk whose data will have about
// n bytes; the caller appends these and calls end. If the guess has as many
// hex digits as the length, nothing needs to be moved.
func beginChunk(dst []byte, n int) ([]byte, chunk) {
	c := chunk{start: len(dst), head: headLen(n)}
	dst = slices.Grow(dst, c.head+n+len("\r\n"))
	return dst[:c.start+c.head], c
}

// end writes the head and closes the chunk.
//
// REQUIRES: at least one byte of data; a chunk of none would end the response.
func (c *chunk) end(dst []byte) []byte {
	n := len(dst) - c.start - c.head
	if head := headLen(n); head != c.head {
		data := c.start + c.head
		dst = slices.Grow(dst, max(0, head-c.head))
		dst = dst[:c.start+head+n]
		copy(dst[c.start+head:], dst[data:data+n])
		c.head = head
	}
	for i, rest := c.start+c.head-3, n; i >= c.start; i-- {
		dst[i] = "0123456789abcdef"[rest&15]
		rest >>= 4
	}
	dst[c.start+c.head-2], dst[c.start+c.head-1] = '\r', '\n'
	return append(dst, "\r\n"...)
}

// headLen returns the length of the head of a chunk of n bytes: hex digits
// without leading zeros, CRLF.
func headLen(n int) int {
	return (bits.Len(uint(n)|1)+3)/4 + len("\r\n")
}
