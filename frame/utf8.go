package frame

import "unicode/utf8"

// appendReplaced appends b with U+FFFD for every maximal subpart of an
// ill-formed sequence, which is what a browser's decoder makes of it
// (Encoding Standard 8.1.1; Unicode 3.9, table 3-8). The standard library
// replaces single bytes (range, DecodeRune) or whole runs (ToValidUTF8).
func appendReplaced(dst, b []byte) []byte {
	for {
		n := wellFormed(b)
		dst = append(dst, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return dst
		}
		dst = append(dst, "\uFFFD"...)
		b = b[illFormed(b):]
	}
}

// wellFormed returns the length of the longest prefix of b that is UTF-8.
func wellFormed(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// illFormed returns the length of the maximal subpart of the ill-formed
// sequence at the front of b: the lead byte and those of its continuation
// bytes that could have belonged to a character.
func illFormed(b []byte) int {
	lo, hi := byte(0x80), byte(0xBF) // of the second byte
	need := 0
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 2
	case c >= 0xE0 && c <= 0xEF:
		need = 3
		switch c {
		case 0xE0:
			lo = 0xA0 // below are overlong forms
		case 0xED:
			hi = 0x9F // above are surrogates
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 4
		switch c {
		case 0xF0:
			lo = 0x90 // below are overlong forms
		case 0xF4:
			hi = 0x8F // above is past U+10FFFF
		}
	}
	n := 1
	for n < need && n < len(b) && lo <= b[n] && b[n] <= hi {
		n++
		lo, hi = 0x80, 0xBF
	}
	return n
}
