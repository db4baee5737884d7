package http1

import (
	"bytes"
	"unicode/utf8"
)

// AppendPath appends the path raw, percent-decoded once, to dst. Give it room
// for len(raw) bytes and it does not allocate.
//
// It refuses every path that two readers could see as two: broken escapes,
// control characters, backslashes, encoded slashes, bytes that are not UTF-8,
// and the segments "", "." and "..". Nothing is normalised, so what it returns
// is the one path for router, guard and files. A slash at the end is kept, and
// so are semicolons and case.
func AppendPath(dst, raw []byte) ([]byte, error) {
	start := len(dst)
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if !isEscape(raw[i:]) {
				return dst[:start], errPathEscape
			}
			c = unhex(raw[i+1])<<4 | unhex(raw[i+2])
			i += 2
			if c == '/' {
				return dst[:start], errPathByte
			}
		}
		if c < ' ' || c == 0x7F || c == '\\' {
			return dst[:start], errPathByte
		}
		dst = append(dst, c)
	}
	if err := checkSegments(dst[start:]); err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// checkSegments looks at a decoded path.
func checkSegments(path []byte) error {
	if !utf8.Valid(path) {
		return errPathText
	}
	rest, ok := bytes.CutPrefix(path, []byte("/"))
	if !ok {
		return errPathSegment
	}
	for more := true; more; {
		var segment []byte
		segment, rest, more = bytes.Cut(rest, []byte("/"))
		switch string(segment) {
		case ".", "..":
			return errPathSegment
		case "":
			if more {
				return errPathSegment
			}
		}
	}
	return nil
}

// isEscape reports whether b begins with a percent sign and two hex digits.
func isEscape(b []byte) bool {
	return len(b) >= 3 && b[0] == '%' && class[b[1]]&class[b[2]]&isHex != 0
}
