package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Limits of what a stream keeps while a line is unfinished.
const (
	// headBytesMax bounds a response head; servers send under 1 KiB.
	headBytesMax = 64 << 10
	// lineBytesMax bounds one line of an event: a record of 1 MiB, which is
	// the largest a Kafka broker takes by default, with room for an envelope.
	lineBytesMax = 4 << 20
	// textBytesMax bounds what is kept of an event's data when that is no
	// payload: enough for the reason and the ranges of a resync.
	textBytesMax = 1 << 10
)

// sink takes what a stream reads. Arguments die when the call returns.
type sink interface {
	event(e *event) // a block with data
	idOnly(e *event)
	comment()
}

// event is one block of the stream (WHATWG HTML 9.2.6).
type event struct {
	name    eventName
	lines   int // data lines
	hasID   bool
	id      []byte // with hasID
	ok      bool   // the data is a payload
	payload Payload
	text    []byte // else the start of the data
}

// eventName tells apart the names that change how an event is judged.
type eventName uint8

const (
	unnamed eventName = iota
	otherName
	resyncName
	skippedName
	deleteName
	liveName
)

// phase is where a stream is in its response.
type phase uint8

const (
	inHead    phase = iota
	inSize          // a chunk's size
	inExt           // a chunk's extensions, up to CR
	inSizeLF        // the LF after a chunk's size
	inData          // chunk data, left bytes to go
	inDataCR        // the CR after it
	inDataLF        // the LF after that
	inTrailer       // after the last chunk, up to an empty line
	inBody          // a body that ends with the connection
	ended
)

// stream reads one response: the head (RFC 9112 4), the chunks (7.1) and the
// lines of the event stream (WHATWG HTML 9.2.5). It may be fed in pieces of any
// size and keeps nothing but an unfinished line, so feeding allocates only
// while those buffers grow.
type stream struct {
	out    sink
	phase  phase
	digits uint8 // of the chunk size, so far
	left   int64 // of the chunk
	status int   // of the head, once read
	sse    bool  // the head says text/event-stream

	line    []byte // the unfinished line, or the unfinished head
	afterCR bool   // the last line ended in CR; an LF next belongs to it
	ev      event  // the unfinished block
	lastID  []byte // id of the last finished block that had one
	retry   time.Duration
}

// reset readies s for the response of another connection. What outlives a
// connection stays: lastID and retry.
func (s *stream) reset() {
	*s = stream{
		out: s.out, retry: s.retry, lastID: s.lastID,
		line: s.line[:0], ev: event{id: s.ev.id[:0], text: s.ev.text[:0]},
	}
}

// feed reads the next bytes of the response; it borrows b until it returns. An
// error is a fault of the server, and the stream can't go on.
func (s *stream) feed(b []byte) (err error) {
	for len(b) > 0 && err == nil {
		switch s.phase {
		case inHead:
			b, err = s.feedHead(b)
		case inData:
			n := min(s.left, int64(len(b)))
			err = s.feedText(b[:n])
			b = b[n:]
			if s.left -= n; s.left == 0 {
				s.phase = inDataCR
			}
		case inBody:
			err = s.feedText(b)
			b = nil
		case ended:
			err = errors.New("bytes after the last chunk")
		default:
			err = s.feedFraming(b[0])
			b = b[1:]
		}
	}
	return err
}

// feedHead collects the response head and reads it when it is whole.
func (s *stream) feedHead(b []byte) ([]byte, error) {
	had := len(s.line)
	s.line = append(s.line, b...)
	end := bytes.Index(s.line[max(0, had-3):], []byte("\r\n\r\n"))
	if end < 0 {
		if len(s.line) > headBytesMax {
			return nil, fmt.Errorf("response head over %d bytes", headBytesMax)
		}
		return nil, nil
	}
	end += max(0, had-3) + 4
	err := s.readHead(s.line[:end])
	s.line = s.line[:0]
	return b[end-had:], err
}

func (s *stream) readHead(head []byte) error {
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return fmt.Errorf("no HTTP/1 response: %.60q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return fmt.Errorf("no HTTP/1 response: %.60q", line)
	}
	s.status = status
	s.phase = inBody
	for line := range bytes.SplitSeq(fields, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			if !bytes.EqualFold(value, []byte("chunked")) {
				return fmt.Errorf("transfer coding %.60q", value)
			}
			s.phase = inSize
		case bytes.EqualFold(name, []byte("content-type")):
			media, _, _ := bytes.Cut(value, []byte(";"))
			s.sse = bytes.EqualFold(bytes.TrimSpace(media), []byte("text/event-stream"))
		}
	}
	return nil
}

// feedFraming reads one byte between chunk data.
func (s *stream) feedFraming(b byte) error {
	switch s.phase {
	default: // inSize
		return s.feedSize(b)
	case inExt:
		if b == '\r' {
			s.phase = inSizeLF
		}
	case inSizeLF:
		if b != '\n' {
			return fmt.Errorf("byte %q after a chunk size", b)
		}
		s.phase = inData
		if s.left == 0 {
			s.phase = inTrailer
		}
	case inDataCR:
		if b != '\r' {
			return fmt.Errorf("byte %q after chunk data", b)
		}
		s.phase = inDataLF
	case inDataLF:
		if b != '\n' {
			return fmt.Errorf("byte %q after chunk data", b)
		}
		s.phase, s.left, s.digits = inSize, 0, 0
	case inTrailer: // left counts the bytes of the trailer line
		switch {
		case b == '\n' && s.left == 0:
			s.phase = ended
		case b == '\n':
			s.left = 0
		case b != '\r':
			s.left++
		}
	}
	return nil
}

func (s *stream) feedSize(b byte) error {
	var d byte
	switch {
	case b-'0' <= 9:
		d = b - '0'
	case (b|0x20)-'a' <= 5:
		d = (b | 0x20) - 'a' + 10
	case b == '\r' && s.digits > 0:
		s.phase = inSizeLF
		return nil
	case b == ';' && s.digits > 0:
		s.phase = inExt
		return nil
	default:
		return fmt.Errorf("byte %q in a chunk size", b)
	}
	if s.digits++; s.digits > 15 { // so that left can't overflow
		return errors.New("chunk size over 15 digits")
	}
	s.left = s.left<<4 | int64(d)
	return nil
}

// feedText reads bytes of the event stream. A line ends with LF, CR or CRLF.
func (s *stream) feedText(b []byte) error {
	for len(b) > 0 {
		if s.afterCR {
			s.afterCR = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		line, rest, whole := b, []byte(nil), false
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, rest, whole = b[:i], b[i+1:], true
		}
		if i := bytes.IndexByte(line, '\r'); i >= 0 {
			line, rest, whole = b[:i], b[i+1:], true
			s.afterCR = true
		}
		if len(s.line) > 0 || !whole {
			if len(s.line)+len(line) > lineBytesMax {
				return fmt.Errorf("a line over %d bytes", lineBytesMax)
			}
			s.line = append(s.line, line...)
			line = s.line
		}
		if !whole {
			return nil
		}
		s.readLine(line)
		s.line = s.line[:0]
		b = rest
	}
	return nil
}

var colon = []byte(":")

// readLine reads one whole line of the event stream.
func (s *stream) readLine(line []byte) {
	if len(line) == 0 {
		s.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, colon)
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "":
		s.out.comment()
	case "data":
		s.readData(value)
	case "id":
		s.ev.hasID = true
		s.ev.id = append(s.ev.id[:0], value...)
	case "event":
		s.ev.name = nameOf(value)
	case "retry":
		if ms, rest, ok := number(value); ok && len(rest) == 0 && ms < int64(time.Hour/time.Millisecond) {
			s.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

func (s *stream) readData(value []byte) {
	s.ev.lines++
	if s.ev.lines == 1 {
		if s.ev.payload, s.ev.ok = parsePayload(value); s.ev.ok {
			return
		}
	}
	room := textBytesMax - len(s.ev.text)
	s.ev.text = append(s.ev.text, value[:min(room, len(value))]...)
}

func nameOf(value []byte) eventName {
	switch string(value) {
	case "":
		return unnamed
	case "resync":
		return resyncName
	case "skipped":
		return skippedName
	case "delete":
		return deleteName
	case "live":
		return liveName
	}
	return otherName
}

// dispatch ends a block. A block without data fires no event in a browser, but
// its id counts.
func (s *stream) dispatch() {
	switch {
	case s.ev.lines > 0:
		s.out.event(&s.ev)
	case s.ev.hasID:
		s.out.idOnly(&s.ev)
	}
	id := s.ev.id
	if s.ev.hasID {
		id, s.lastID = s.lastID, id
	}
	s.ev = event{id: id[:0], text: s.ev.text[:0]}
}
