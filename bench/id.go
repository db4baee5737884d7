package bench

import "bytes"

// noOffset says that an id tells no offset for a partition.
const noOffset int64 = -1

// readID checks that id has the form of an event id and returns the offset it
// tells for partition p, or noOffset; of an id of several topics it tells
// none, since p may be a partition of any of them. An id has one of two forms,
// groups being topics:
//
//	v1:0-5812.1-5790.2-*~ab3f9,...  pairs of partition and last offset, ascending, and a tag
//	v2.                             and base64url of: uvarint(groups), and for each
//	                                flags, tag, uvarint(pairs), and for each
//	                                uvarint(partition - previous - 1), uvarint(next offset)
func readID(id []byte, p int32) (offset int64, ok bool) {
	if body, packed := bytes.CutPrefix(id, []byte("v2.")); packed {
		return readPacked(body, p)
	}
	b, plain := bytes.CutPrefix(id, []byte("v1:"))
	if !plain {
		return noOffset, false
	}
	offset, b, ok = readGroup(b, p)
	for ok && len(b) > 0 {
		if b[0] != ',' {
			return noOffset, false
		}
		_, b, ok = readGroup(b[1:], p)
		offset = noOffset
	}
	return offset, ok
}

// readGroup reads one topic's pairs and its suffix.
func readGroup(b []byte, p int32) (offset int64, rest []byte, ok bool) {
	offset = noOffset
	before := int64(-1)
	for len(b) > 0 && b[0] != '~' && b[0] != ',' {
		if before >= 0 {
			if b[0] != '.' {
				return noOffset, b, false
			}
			b = b[1:]
		}
		partition, after, ok := plainNumber(b)
		if !ok || partition <= before || len(after) < 2 || after[0] != '-' {
			return noOffset, b, false
		}
		before, b = partition, after[1:]
		if b[0] == '*' {
			b = b[1:]
			continue
		}
		last, after, ok := plainNumber(b)
		if !ok {
			return noOffset, b, false
		}
		if b = after; partition == int64(p) {
			offset = last
		}
	}
	if len(b) > 0 && b[0] == '~' {
		tag := b[1:]
		if i := bytes.IndexByte(tag, ','); i >= 0 {
			tag = tag[:i]
		}
		if (len(tag) != 2 && len(tag) != 5) || !allBase64URL(tag) {
			return noOffset, b, false
		}
		b = b[1+len(tag):]
	}
	return offset, b, true
}

// plainNumber reads a decimal number without leading zeros.
func plainNumber(b []byte) (n int64, rest []byte, ok bool) {
	n, rest, ok = number(b)
	if used := len(b) - len(rest); used > 1 && b[0] == '0' {
		return 0, b, false
	}
	return n, rest, ok
}

func allBase64URL(b []byte) bool {
	for _, c := range b {
		if sextet(c) > 63 {
			return false
		}
	}
	return true
}

// sextet is the value of a base64url character (RFC 4648 5), or 64.
func sextet(c byte) uint32 {
	switch {
	case c-'A' < 26:
		return uint32(c - 'A')
	case c-'a' < 26:
		return uint32(c-'a') + 26
	case c-'0' < 10:
		return uint32(c-'0') + 52
	case c == '-':
		return 62
	case c == '_':
		return 63
	}
	return 64
}
