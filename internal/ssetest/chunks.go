package ssetest

import (
	"errors"
	"fmt"
	"strings"
)

// Chunks decodes a chunked body (RFC 9112 7.1). It knows neither extensions
// nor trailers: this server sends none.
type Chunks struct {
	Count int  // chunks begun, the last one of no bytes not counted
	Done  bool // the body has ended, and bytes after it are an error

	state  chunkState
	size   int // of the chunk, while its head is read
	digits int // of size
	err    error
}

type chunkState int

const (
	inSize chunkState = iota
	inSizeLF
	inData
	inDataCR
	inDataLF
	inEndCR
	inEndLF
)

// sizeDigitsMax bounds what is believed of a chunk head: 268 MB.
const sizeDigitsMax = 7

// Feed takes the next bytes of the body and returns what they carry. An error
// is final.
func (d *Chunks) Feed(b []byte) (data []byte, err error) {
	for len(b) > 0 && d.err == nil {
		if d.state == inData {
			n := min(d.size, len(b))
			data = append(data, b[:n]...)
			b = b[n:]
			if d.size -= n; d.size == 0 {
				d.state = inDataCR
			}
			continue
		}
		d.err = d.step(b[0])
		b = b[1:]
	}
	return data, d.err
}

func (d *Chunks) step(c byte) error {
	if d.Done {
		return errors.New("chunks: bytes after the last chunk")
	}
	switch d.state {
	case inSize:
		return d.sizeByte(c)
	case inSizeLF:
		d.digits = 0
		if d.state = inData; d.size == 0 {
			d.state = inEndCR
		} else {
			d.Count++
		}
		return expect('\n', c, "after a chunk's size")
	case inDataCR:
		d.state = inDataLF
		return expect('\r', c, "after a chunk's data")
	case inDataLF:
		d.state = inSize
		return expect('\n', c, "after a chunk's data")
	case inEndCR:
		d.state = inEndLF
		return expect('\r', c, "after the last chunk")
	default: // inEndLF
		d.Done = true
		return expect('\n', c, "after the last chunk")
	}
}

func (d *Chunks) sizeByte(c byte) error {
	switch digit := strings.IndexByte("0123456789abcdef", lower(c)); {
	case digit >= 0 && d.digits == sizeDigitsMax:
		return errors.New("chunks: a chunk is too large")
	case digit >= 0:
		d.size = d.size<<4 | digit
		d.digits++
		return nil
	case c == '\r' && d.digits > 0:
		d.state = inSizeLF
		return nil
	}
	return fmt.Errorf("chunks: %q in a chunk's size", c)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func expect(want, c byte, where string) error {
	if c != want {
		return fmt.Errorf("chunks: %q %s", c, where)
	}
	return nil
}
