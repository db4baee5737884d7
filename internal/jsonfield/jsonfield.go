// Package jsonfield finds one field in a JSON document, and does not decode
// the rest. It allocates nothing, and never recurses deeper than depthMax.
package jsonfield

import (
	"unicode/utf16"
	"unicode/utf8"
)

// depthMax bounds the nesting of what is skipped on the way to a field, and so
// the stack. Deeper documents have no fields.
const depthMax = 512

// Lookup returns the text of the scalar at path: a string without its escapes,
// a number as it is written, true or false. It is false if there is none,
// which is also so if it is null, an object or an array, or if what comes
// before it is not JSON (RFC 8259).
//
// Every step of path is a field of an object; path has at least one. Of
// fields with the same name the first wins (JSON.parse takes the last), so
// what follows the field does not matter: doc may be cut off there, or later
// be something else.
//
// The value aliases doc, or scratch if it had escapes. Scratch that is too
// small for it costs an allocation. Escaped surrogates that make no pair
// become U+FFFD; bytes that are not UTF-8 come as they are.
func Lookup(doc []byte, path []string, scratch []byte) (value []byte, ok bool) {
	s := scanner{doc: doc}
	if !s.walk(path) {
		return nil, false
	}
	return s.scalar(scratch)
}

// Each calls each with the text of the scalar that Lookup finds; if there is an
// array instead, with those of its elements that are scalars and not null, as
// far as doc goes. each borrows the text.
func Each(doc []byte, path []string, scratch []byte, each func(value []byte)) {
	s := scanner{doc: doc}
	if !s.walk(path) {
		return
	}
	if s.peek() != '[' {
		if v, ok := s.scalar(scratch); ok {
			each(v)
		}
		return
	}
	for s.pos++; ; s.pos++ { // behind the bracket, and then each comma
		s.space()
		switch s.peek() {
		case '{', '[', 'n':
			if !s.skip(2) {
				return
			}
		default:
			v, ok := s.scalar(scratch)
			if !ok {
				return
			}
			each(v)
		}
		if s.space(); s.peek() != ',' {
			return
		}
	}
}

// walk moves to the value at path. It is false if there is none.
func (s *scanner) walk(path []string) bool {
	for _, step := range path {
		if !s.enter(step) {
			return false
		}
	}
	return len(path) > 0
}

// scanner is a place in a document.
type scanner struct {
	doc []byte
	pos int
}

// enter moves into the object that comes next, to the value of its field
// name. It is false if there is no such object or field.
func (s *scanner) enter(name string) bool {
	if !s.token('{') {
		return false
	}
	for first := true; ; first = false {
		if !first && !s.token(',') {
			return false
		}
		s.space()
		raw, escaped, ok := s.str()
		if !ok || !s.token(':') {
			return false
		}
		s.space()
		if equal(raw, escaped, name) {
			return true
		}
		if !s.skip(1) {
			return false
		}
	}
}

// scalar returns the value that comes next.
func (s *scanner) scalar(scratch []byte) ([]byte, bool) {
	switch s.peek() {
	case '{', '[', 'n':
		return nil, false
	case '"':
		raw, escaped, ok := s.str()
		if ok && escaped {
			return unescape(scratch[:0], raw), true
		}
		return raw, ok
	}
	from := s.pos
	if !s.skip(1) {
		return nil, false
	}
	// A number may go on where the document is cut, and 1x is no number.
	switch s.peek() {
	case ' ', '\t', '\n', '\r', ',', '}', ']':
		return s.doc[from:s.pos], true
	}
	return nil, false
}

// skip moves behind the value that comes next.
func (s *scanner) skip(depth int) bool {
	switch c := s.peek(); c {
	case '{':
		return depth < depthMax && s.skipAll('}', depth)
	case '[':
		return depth < depthMax && s.skipAll(']', depth)
	case '"':
		_, _, ok := s.str()
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// skipAll moves behind the object or array that comes next and ends in end.
func (s *scanner) skipAll(end byte, depth int) bool {
	s.pos++
	if s.token(end) {
		return true
	}
	for {
		if end == '}' {
			s.space()
			if _, _, ok := s.str(); !ok || !s.token(':') {
				return false
			}
		}
		s.space()
		if !s.skip(depth + 1) {
			return false
		}
		if s.token(end) {
			return true
		}
		if !s.token(',') {
			return false
		}
	}
}

// peek returns the next byte, or 0, which begins nothing, at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.doc) {
		return s.doc[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.doc) {
		switch s.doc[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// token moves behind c if that comes next, apart from space.
func (s *scanner) token(c byte) bool {
	s.space()
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) literal(word string) bool {
	if rest := s.doc[s.pos:]; len(rest) < len(word) || string(rest[:len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// str moves behind the string that comes next and returns what is between its
// quotes, which is well-formed, and whether it has escapes.
func (s *scanner) str() (raw []byte, escaped, ok bool) {
	if s.peek() != '"' {
		return nil, false, false
	}
	from := s.pos + 1
	for i := from; i < len(s.doc); i++ {
		switch c := s.doc[i]; {
		case c == '"':
			s.pos = i + 1
			return s.doc[from:i:i], escaped, true
		case c < 0x20:
			return nil, false, false
		case c == '\\':
			n := escapeLen(s.doc[i:])
			if n == 0 {
				return nil, false, false
			}
			escaped = true
			i += n - 1
		}
	}
	return nil, false, false
}

// escapeLen returns the length of the escape at the front of b, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

// number moves behind the number that comes next.
func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	switch c := s.peek(); {
	case c == '0':
		s.pos++
	case !s.digits():
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

// digits moves behind at least one digit.
func (s *scanner) digits() bool {
	from := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos > from
}

// equal reports whether what str returned is name.
func equal(raw []byte, escaped bool, name string) bool {
	if !escaped {
		return string(raw) == name
	}
	var buf [2 * utf8.UTFMax]byte
	for len(raw) > 0 {
		ch, n := nextChar(buf[:0], raw)
		if len(name) < len(ch) || name[:len(ch)] != string(ch) {
			return false
		}
		raw, name = raw[n:], name[len(ch):]
	}
	return name == ""
}

// unescape appends what str returned without its escapes.
func unescape(dst, raw []byte) []byte {
	for len(raw) > 0 {
		var n int
		dst, n = nextChar(dst, raw)
		raw = raw[n:]
	}
	return dst
}

// nextChar appends the byte, or the character if it is escaped, at the front
// of raw, and returns how long it is there.
func nextChar(dst, raw []byte) ([]byte, int) {
	if raw[0] != '\\' {
		return append(dst, raw[0]), 1
	}
	switch c := raw[1]; c {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		r, _ := hex4(raw[2:])
		if utf16.IsSurrogate(r) && len(raw) > 7 && raw[6] == '\\' && raw[7] == 'u' {
			low, _ := hex4(raw[8:])
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return utf8.AppendRune(dst, pair), 12
			}
		}
		return utf8.AppendRune(dst, r), 6 // a lone surrogate becomes U+FFFD
	default: // quote, backslash, slash
		return append(dst, c), 2
	}
}

// hex4 reads four hex digits.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
