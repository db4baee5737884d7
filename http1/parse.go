package http1

import "bytes"

// Parser reads request heads, one after the other. The zero value is ready. It
// weighs about 1.4 KB, so a connection holds one only while its head is
// unfinished. Loop only.
//
// It works line by line and remembers where it was: every byte is looked at a
// bounded number of times, however small the pieces in which a head comes, and
// a bad line is refused when it is complete, though the head may never be. What
// comes out does not depend on how the input was cut.
type Parser struct {
	progress
	fields [FieldsMax]field
}

// progress is what a Parser forgets between two heads.
type progress struct {
	line  int // where the unfinished line starts
	scan  int // bytes before it hold no end of that line
	count int // of fields
	empty int // lines before the request line

	begun       bool // the request line was read
	method      Method
	form        Form
	minor       uint8
	close       bool
	expect      bool
	chunked     bool
	length      int64
	methodName  span
	path, query span
	authority   span
	first       [names]uint8 // index into fields, plus one
	repeated    uint16       // bit n: Name n came twice
}

// span is a part of the head.
type span struct{ start, end int }

func (s span) of(b []byte) []byte { return b[s.start:s.end:s.end] }

// Reset forgets an unfinished head.
func (p *Parser) Reset() { p.progress = progress{} }

// Parse reads one head from the beginning of b. It returns ErrIncomplete when b
// ends before the head does: call it again with the same bytes and more behind
// them; they may have moved. Otherwise p is ready for another head. Every other
// error is an *Error.
//
// On success n is the size of the head, with the empty line that ends it, and r
// is filled; what follows in b is the body or the next request. Of a head that
// is refused, or not complete yet, r holds the method and nothing else, as far
// as it was read: an answer to HEAD has no content, whatever it says (RFC 9110
// section 9.3.2). Parse borrows b, r aliases b and p.
func (p *Parser) Parse(b []byte, r *Request) (n int, err error) {
	n, err = p.lines(b)
	if err != nil {
		*r = Request{Method: p.method}
	} else {
		p.fill(r, b[:n:n])
	}
	if err == ErrIncomplete {
		return 0, err
	}
	p.Reset()
	return n, err
}

// lines reads the lines of b that are not read yet. It returns where the head
// ends.
func (p *Parser) lines(b []byte) (int, error) {
	for {
		start := p.line
		line, err := p.nextLine(b)
		switch {
		case err != nil:
			return 0, err
		case len(line) > 0 && p.begun:
			err = p.fieldLine(line, start)
		case len(line) > 0:
			p.begun = true
			err = p.requestLine(line, start)
		case p.begun:
			if p.minor == 1 && p.first[Host] == 0 {
				return 0, errHostMissing
			}
			return p.line, nil
		default:
			if p.empty++; p.empty > emptyLinesMax {
				err = errEmptyLines
			}
		}
		if err != nil {
			return 0, err
		}
	}
}

// nextLine returns the next line without its CRLF and moves p.line behind it.
// Limits come before content, so that a long bad line is refused for the same
// reason whether its end is here already or not.
func (p *Parser) nextLine(b []byte) ([]byte, error) {
	limit, long := HeadMax, errHeadLong
	if !p.begun {
		limit, long = p.line+RequestLineMax, errLineLong
		if len(b) > p.line {
			if err := checkFirst(b[p.line]); err != nil {
				return nil, err
			}
		}
	}
	end := min(len(b), limit)
	i := bytes.IndexByte(b[p.scan:end], '\n')
	if i < 0 {
		if end == limit {
			return nil, long
		}
		p.scan = end
		return nil, ErrIncomplete
	}
	i += p.scan
	if i == p.line || b[i-1] != '\r' {
		return nil, errBareLF
	}
	line := b[p.line : i-1]
	p.line, p.scan = i+1, i+1
	return line, nil
}

// checkFirst refuses another protocol at its first byte: it may never send a
// line end.
func checkFirst(c byte) error {
	switch {
	case class[c]&isToken != 0, c == '\r':
		return nil
	case c == '\n':
		return errBareLF
	case c == 0x16: // the content type of a handshake record (RFC 8446 section 5.1)
		return errTLS
	}
	return errFirstByte
}

// fill makes r the request of the complete head.
func (p *Parser) fill(r *Request, head []byte) {
	*r = Request{
		Method:     p.method,
		Form:       p.form,
		Minor:      p.minor,
		Chunked:    p.chunked,
		Length:     p.length,
		MethodName: p.methodName.of(head),
		Path:       p.path.of(head),
		Query:      p.query.of(head),
		Host:       p.authority.of(head),
		close:      p.close,
		expect:     p.expect,
		first:      p.first,
		repeated:   p.repeated,
		head:       head,
		fields:     p.fields[:p.count],
	}
	if len(r.Host) == 0 {
		r.Host = r.Value(Host)
	}
}
