package http1

import "encoding/binary"

// Classes of bytes, as bits of class.
const (
	isToken  = 1 << iota // tchar, RFC 9110 section 5.6.2
	isTarget             // visible ASCII but '#': RFC 3986 and what browsers send beyond it
	isHost               // letters, digits and -._~ : names as browsers send them
	isHex
)

var class = classes()

func classes() (t [256]uint8) {
	for c := '!'; c <= '~'; c++ {
		t[c] |= isTarget
	}
	t['#'] &^= isTarget
	for _, c := range "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		t[c] |= isToken | isHost
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] |= isToken
	}
	for _, c := range "-._~" {
		t[c] |= isHost
	}
	for _, c := range "0123456789abcdefABCDEF" {
		t[c] |= isHex
	}
	return t
}

// all reports whether every byte of b is in class c.
func all(b []byte, c uint8) bool {
	for _, x := range b {
		if class[x]&c == 0 {
			return false
		}
	}
	return true
}

// legalValue reports whether v has no control character but tabs. Bytes from
// 0x80 are obs-text and opaque (RFC 9110 section 5.5). Eight bytes at a time,
// because cookies and ids are most of a head.
func legalValue[T string | []byte](v T) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	var word [8]byte
	i := 0
	for ; i+8 <= len(v); i += 8 {
		copy(word[:], v[i:i+8])
		x := binary.LittleEndian.Uint64(word[:])
		del := x ^ 0x7F*ones
		// The classic tests for a byte below 0x20 and for a zero byte.
		if ((x-0x20*ones)&^x|(del-ones)&^del)&tops != 0 && !legalBytes(v[i:i+8]) {
			return false
		}
	}
	return legalBytes(v[i:])
}

func legalBytes[T string | []byte](v T) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// trim cuts blanks and tabs, and nothing else, from both ends: a NBSP, a NEL or
// a VT is part of the value (RFC 9110 section 5.6.3).
func trim(v []byte) []byte {
	for len(v) > 0 && isBlank(v[0]) {
		v = v[1:]
	}
	for len(v) > 0 && isBlank(v[len(v)-1]) {
		v = v[:len(v)-1]
	}
	return v
}

// equalFold reports whether a and b are equal but for the case of ASCII letters.
func equalFold(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if lower(c) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// unhex returns the value of a hex digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return lower(c) - 'a' + 10
}
