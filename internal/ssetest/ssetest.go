// Package ssetest reads Server-Sent Events the way a browser does. It was
// written from the standards alone and shares nothing with the rooms that
// write them, so that tests have a second opinion. Only tests import it.
//
// Three readers stand on each other, and each takes its input in pieces of any
// size:
//
//	Stream   an HTTP/1.x response: head, body, events
//	Chunks   a chunked body (RFC 9112 7.1)
//	Parser   an event stream (WHATWG HTML 9.2)
package ssetest

import (
	"slices"
	"strconv"
)

// Event is what a page's listener is called with.
type Event struct {
	Type        string // the event's name; "message" if it has none
	Data        string
	LastEventID string
}

// Parser is the parser of an EventSource (WHATWG HTML 9.2.5 and 9.2.6). The
// zero Parser is at the beginning of a stream. When a stream ends, what is
// left of an unfinished block is nothing: just stop.
type Parser struct {
	Comments int // lines that begin with a colon, which a page does not see

	decoder utf8Decoder
	begun   bool   // the first character has been seen, so a BOM is data now
	afterCR bool   // an LF belongs to the line end before it
	line    []rune // so far

	// The spec's buffers.
	data      []rune
	eventType string
	idBuffer  string

	lastEventID string
	retry       int
	retrySet    bool
	events      []Event
}

// Feed takes the next bytes of the stream and returns the events they complete.
func (p *Parser) Feed(b []byte) []Event {
	p.events = nil
	for _, c := range b {
		p.decoder.next(c, p.char)
	}
	return p.events
}

// LastEventID is what the browser would send in Last-Event-ID if the stream
// broke now; empty means no header.
func (p *Parser) LastEventID() string { return p.lastEventID }

// Retry is the reconnection time in milliseconds; it is false if the stream
// has not set one.
func (p *Parser) Retry() (millis int, ok bool) { return p.retry, p.retrySet }

// char takes one decoded character and finds the ends of lines.
func (p *Parser) char(r rune) {
	if !p.begun {
		p.begun = true
		if r == 0xFEFF {
			return
		}
	}
	afterCR := p.afterCR
	p.afterCR = r == '\r'
	switch {
	case r == '\n' && afterCR:
	case r == '\n' || r == '\r':
		line := p.line
		p.line = p.line[:0]
		p.endOfLine(line)
	default:
		p.line = append(p.line, r)
	}
}

func (p *Parser) endOfLine(line []rune) {
	if len(line) == 0 {
		p.dispatch()
		return
	}
	if line[0] == ':' {
		p.Comments++
		return
	}
	for i, r := range line {
		if r == ':' {
			value := line[i+1:]
			if len(value) > 0 && value[0] == ' ' {
				value = value[1:]
			}
			p.field(string(line[:i]), value)
			return
		}
	}
	p.field(string(line), nil)
}

func (p *Parser) field(name string, value []rune) {
	switch name {
	case "event":
		p.eventType = string(value)
	case "data":
		p.data = append(append(p.data, value...), '\n')
	case "id":
		if !slices.Contains(value, 0) {
			p.idBuffer = string(value)
		}
	case "retry":
		for _, r := range value {
			if r < '0' || r > '9' {
				return
			}
		}
		if n, err := strconv.Atoi(string(value)); err == nil {
			p.retry, p.retrySet = n, true
		}
	}
}

func (p *Parser) dispatch() {
	p.lastEventID = p.idBuffer
	if len(p.data) > 0 {
		e := Event{Type: "message", Data: string(p.data[:len(p.data)-1]), LastEventID: p.lastEventID}
		if p.eventType != "" {
			e.Type = p.eventType
		}
		p.events = append(p.events, e)
	}
	p.data, p.eventType = p.data[:0], ""
}

// DecodeUTF8 is what a browser makes of bytes: text, with U+FFFD for what is
// not UTF-8. A BOM stays.
func DecodeUTF8[T string | []byte](b T) string {
	var d utf8Decoder
	var text []rune
	emit := func(r rune) { text = append(text, r) }
	for i := range len(b) {
		d.next(b[i], emit)
	}
	if d.needed > 0 {
		emit(0xFFFD)
	}
	return string(text)
}

// utf8Decoder is the UTF-8 decoder of the Encoding Standard (8.1.1), byte by
// byte. While needed > 0 it holds an unfinished character.
type utf8Decoder struct {
	point        rune
	seen, needed int
	lower, upper byte // of the next byte, while needed > 0
}

func (d *utf8Decoder) next(c byte, emit func(rune)) {
	if d.needed == 0 {
		d.lower, d.upper = 0x80, 0xBF
		switch {
		case c <= 0x7F:
			emit(rune(c))
		case 0xC2 <= c && c <= 0xDF:
			d.needed, d.point = 1, rune(c&0x1F)
		case 0xE0 <= c && c <= 0xEF:
			if c == 0xE0 {
				d.lower = 0xA0
			}
			if c == 0xED {
				d.upper = 0x9F
			}
			d.needed, d.point = 2, rune(c&0xF)
		case 0xF0 <= c && c <= 0xF4:
			if c == 0xF0 {
				d.lower = 0x90
			}
			if c == 0xF4 {
				d.upper = 0x8F
			}
			d.needed, d.point = 3, rune(c&0x7)
		default:
			emit(0xFFFD)
		}
		return
	}
	if c < d.lower || c > d.upper {
		*d = utf8Decoder{}
		emit(0xFFFD)
		d.next(c, emit) // the spec's "restore byte to ioQueue"
		return
	}
	d.lower, d.upper = 0x80, 0xBF
	d.point = d.point<<6 | rune(c&0x3F)
	if d.seen++; d.seen == d.needed {
		point := d.point
		*d = utf8Decoder{}
		emit(point)
	}
}
