package http1

import (
	"bytes"
	"math"
)

// nameText spells the recognised fields, in lower case.
var nameText = [names]string{
	Host:             "host",
	Connection:       "connection",
	ContentLength:    "content-length",
	TransferEncoding: "transfer-encoding",
	Expect:           "expect",
	Origin:           "origin",
	LastEventID:      "last-event-id",
	Authorization:    "authorization",
	Cookie:           "cookie",
	ContentType:      "content-type",
	RequestMethod:    "access-control-request-method",
	RequestHeaders:   "access-control-request-headers",
}

// nameOf returns the recognised field of that name, or other.
func nameOf(name []byte) Name {
	switch len(name) {
	case 4:
		return match(name, Host)
	case 6:
		return match(name, Origin, Cookie, Expect)
	case 10:
		return match(name, Connection)
	case 12:
		return match(name, ContentType)
	case 13:
		return match(name, LastEventID, Authorization)
	case 14:
		return match(name, ContentLength)
	case 17:
		return match(name, TransferEncoding)
	case 29:
		return match(name, RequestMethod)
	case 30:
		return match(name, RequestHeaders)
	}
	return other
}

func match(name []byte, candidates ...Name) Name {
	for _, n := range candidates {
		if equalFold(name, nameText[n]) {
			return n
		}
	}
	return other
}

// fieldLine reads one header line (RFC 9112 section 5). at is where line
// starts in the head.
func (p *Parser) fieldLine(line []byte, at int) error {
	if p.count == FieldsMax {
		return errFieldsMany
	}
	colon := 0
	for colon < len(line) && class[line[colon]]&isToken != 0 {
		colon++
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return nameError(line, colon)
	}
	start, end := colon+1, len(line)
	for start < end && isBlank(line[start]) {
		start++
	}
	for start < end && isBlank(line[end-1]) {
		end--
	}
	value := line[start:end]
	if !legalValue(value) {
		return errValueByte
	}
	n := nameOf(line[:colon])
	p.fields[p.count] = field{
		start:    uint16(at),
		colon:    uint16(at + colon),
		valStart: uint16(at + start),
		valEnd:   uint16(at + end),
		known:    n,
	}
	p.count++
	if n == other {
		return nil
	}
	if p.first[n] != 0 {
		p.repeated |= 1 << n
	} else {
		p.first[n] = uint8(p.count)
	}
	return p.known(n, value)
}

// nameError says why line has no name of a field before a colon; its first i
// bytes are good.
func nameError(line []byte, i int) error {
	switch {
	case isBlank(line[0]):
		return errFold
	case line[0] == ':':
		return errNameEmpty
	case i == len(line):
		return errNoColon
	case isBlank(line[i]):
		return errNameBlank
	}
	return errNameByte
}

// known acts on the fields that rule the connection and the body.
func (p *Parser) known(n Name, value []byte) error {
	twice := p.repeated&(1<<n) != 0
	switch n {
	case Host:
		if twice {
			return errHostTwice
		}
		if !validHost(value) {
			return errHost
		}
	case Connection:
		p.close = p.close || hasMember(value, "close")
	case ContentLength:
		if twice {
			return errLengthTwice
		}
		return p.contentLength(value)
	case TransferEncoding:
		if twice {
			return errCodingTwice
		}
		return p.transferEncoding(value)
	case Expect:
		return p.expectation(value)
	default: // is only remembered
	}
	return nil
}

// contentLength reads a body size: digits and nothing else. A list of equal
// sizes, which RFC 9112 section 6.3 lets us take, is refused.
func (p *Parser) contentLength(v []byte) error {
	if len(v) == 0 {
		return errLength
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' {
			return errLength
		}
		d := int64(c - '0')
		if n > (math.MaxInt64-d)/10 {
			n = math.MaxInt64 // go on: a letter further on makes it another error
			continue
		}
		n = n*10 + d
	}
	if p.chunked {
		return errLengthCoding
	}
	if n == math.MaxInt64 {
		return errLengthBig
	}
	p.length = n
	return nil
}

// transferEncoding takes chunked alone (RFC 9112 section 6.1).
func (p *Parser) transferEncoding(v []byte) error {
	if p.minor == 0 {
		return errCodingIn10
	}
	if p.first[ContentLength] != 0 {
		return errLengthCoding
	}
	if equalFold(v, "chunked") {
		p.chunked = true
		return nil
	}
	if equalFold(trim(v[bytes.LastIndexByte(v, ',')+1:]), "chunked") {
		return errCodingUnknown
	}
	return errCoding
}

// expectation takes 100-continue alone. HTTP/1.0 has no expectations, and they
// are to be ignored there (RFC 9110 section 10.1.1).
func (p *Parser) expectation(v []byte) error {
	if p.minor == 0 {
		return nil
	}
	for member, rest := cutMember(v); ; member, rest = cutMember(rest) {
		switch {
		case equalFold(member, "100-continue"):
			p.expect = true
		case len(member) > 0:
			return errExpectation
		}
		if rest == nil {
			return nil
		}
	}
}

// hasMember reports whether want is a member of the list v, in any case.
func hasMember(v []byte, want string) bool {
	for member, rest := cutMember(v); ; member, rest = cutMember(rest) {
		if equalFold(member, want) {
			return true
		}
		if rest == nil {
			return false
		}
	}
}

// cutMember cuts the first member, without the blanks around it, from a list
// that has no quoted strings (RFC 9110 section 5.6.1); rest is nil behind the
// last. Members may be empty.
func cutMember(v []byte) (member, rest []byte) {
	member, rest, _ = bytes.Cut(v, []byte(","))
	return trim(member), rest
}
