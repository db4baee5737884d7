package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// blockMax bounds one block; the largest record of a run is far smaller.
const blockMax = 256 << 10

// blocks takes a chunked response apart as its bytes come: the head, then one
// block a chunk. Package ssetest does so by the letter of the standards; this
// is for a hundred thousand events a second, and for what tailcast promises
// beyond them: a chunk is a block.
type blocks struct {
	buf     []byte
	headed  bool
	chunked bool
	ended   bool // the last chunk came
}

// feed takes the next bytes and calls each for every block they complete,
// which it borrows.
func (s *blocks) feed(b []byte, each func(block []byte) error) error {
	s.buf = append(s.buf, b...)
	rest := s.buf
	defer func() { s.buf = s.buf[:copy(s.buf, rest)] }()
	if !s.headed {
		head, body, ok := bytes.Cut(rest, []byte("\r\n\r\n"))
		if !ok {
			return nil
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("response head %q", head)
		}
		s.headed, s.chunked, rest = true, bytes.Contains(head, []byte("\r\nTransfer-Encoding: chunked")), body
	}
	for !s.chunked {
		n := bytes.Index(rest, []byte("\n\n")) + 2
		if n < 2 {
			return nil
		}
		if err := each(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	for len(rest) > 0 {
		if s.ended {
			return fmt.Errorf("%.40q after the last chunk", rest)
		}
		size, body, ok := bytes.Cut(rest, []byte("\r\n"))
		if !ok {
			return nil
		}
		n, err := strconv.ParseUint(string(size), 16, 31)
		switch {
		case err != nil || n > blockMax:
			return fmt.Errorf("chunk of %q bytes", size)
		case len(body) < int(n)+2:
			return nil
		case string(body[n:n+2]) != "\r\n":
			return fmt.Errorf("a chunk of %d bytes ends in %q", n, body[n:n+2])
		}
		rest = body[n+2:]
		if n == 0 {
			s.ended = true
			continue
		}
		if err := each(body[:n]); err != nil {
			return err
		}
	}
	return nil
}

// event is a block's fields, which alias it.
type event struct {
	name, id, data []byte
	ended          bool // by an empty line: a browser takes the id, or an empty one
}

// parse reads a block's lines.
func parse(block []byte) (e event, err error) {
	if !bytes.HasSuffix(block, []byte("\n")) {
		return e, errors.New("the last line has no end")
	}
	for rest := block; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		field, value, _ := bytes.Cut(line, []byte(": "))
		switch string(field) {
		case ":", "retry":
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			if e.data != nil {
				return e, errors.New("a second data line")
			}
			e.data = value
		case "":
			if e.ended = true; len(rest) > 0 {
				return e, errors.New("it goes on behind its end")
			}
		default:
			return e, fmt.Errorf("line %.40q", line)
		}
	}
	if !e.ended && (e.id != nil || e.name != nil || e.data != nil) {
		return e, errors.New("the block has no end")
	}
	return e, nil
}
