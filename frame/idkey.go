package frame

import (
	"bytes"
	"encoding/base64"
)

// An id of a route with `id: key+position` begins with the record's key:
//
//	id = key64 "/" position    ; key64 = base64url (RFC 4648 5, no padding) of the key
//
// so that pages need not find it in the data. The position is an id as without
// it. Records without a key, or with one over keyIDMax, have the position alone.

// keyIDMax bounds the keys that ids carry: each event repeats its own, and a
// browser sends one back in a request head. Zilla's limit is the same.
const keyIDMax = 1 << 10

// appendKey appends the beginning of the id of a record with key, or nothing.
func appendKey(dst, key []byte) []byte {
	if key == nil || len(key) > keyIDMax {
		return dst
	}
	return append(base64.RawURLEncoding.AppendEncode(dst, key), '/')
}

// keyOf returns what appendKey wrote at the front of an id, if anything.
func keyOf(id []byte) []byte { return id[:bytes.IndexByte(id, '/')+1] }

// cutKey returns the position behind an id's key.
func cutKey(id []byte) []byte {
	key := keyOf(id)
	for _, c := range key[:max(0, len(key)-1)] {
		if sextets[c] == 0xFF {
			return id
		}
	}
	if rest := id[len(key):]; bytes.HasPrefix(rest, []byte(plainPrefix)) || bytes.HasPrefix(rest, []byte(packedPrefix)) {
		return rest
	}
	return id
}
