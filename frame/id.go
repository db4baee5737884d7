package frame

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strconv"
)

// An event id is a Position as text, in one of two forms. Both begin with
// their version, so that a node never reads one as the other; every form ever
// emitted is parsed for ever (testdata/ids.golden).
//
// v1, up to plainMax bytes, is for people:
//
//	id     = "v1:" group *( "," group )             ; 1 to 64 groups, in the feed's order
//	group  = [ pair *( "." pair ) ] [ "~" tag ]     ; partitions strictly ascending
//	pair   = partition "-" ( offset / "*" )         ; offset = Next-1, "*" = Unknown
//	tag    = 2( base64url ) [ 3( base64url ) ]      ; Tag.Name, Tag.ID
//
// Numbers are decimal, without sign or leading zeros: partitions to 2^31-1,
// offsets to 2^63-2. Of several groups each has a pair or a tag.
//
// v2 is for vectors that are longer: "v2." and the base64url (RFC 4648 5,
// no padding, unused bits zero) of
//
//	id     = uvarint(groups) *group
//	group  = flags [ tag ] uvarint(pairs) *pair
//	flags  = %x00 / %x01 / %x03                     ; no tag, Name, Name and ID
//	tag    = 2 bytes (Name) or 4 bytes (Name, ID)   ; big endian, 6 bits a character, right-aligned
//	pair   = uvarint(gap) uvarint(next)             ; gap = partition - previous - 1, with -1 before the first
//	                                                ; next = 0 for Unknown, else Next
//
// where a uvarint is encoding/binary's in its shortest form.
//
// Of what the Fetch Standard lets a page send across origins without a
// preflight, only the colon of v1 is outside the safe set.
const (
	plainPrefix  = "v1:"
	packedPrefix = "v2."

	// plainMax is the longest v1 id. With the longest tag, twelve partitions
	// of four-digit offsets fit; a vector much longer is no longer read by
	// people, and every event carries it.
	plainMax = 96

	// groupsMax bounds the topics of one feed, and so the groups of an id.
	groupsMax = 64
)

// IDMax is the longest id a feed may have: with it a browser's request head,
// which carries it back, stays well within the 16 KiB that http1 reads. The
// parser takes somewhat more (idParseMax).
const IDMax = 6 << 10

// MakeTag returns the tag of a topic: the first 12 bits of the SHA-256 of its
// name, and the first 18 of that of its id unless id is zero.
//
// It guards against ids that went astray, not against forgers: 12 bits let
// one foreign id in 4096 pass as one of a topic re-created.
func MakeTag(name string, id TopicID) Tag {
	var t Tag
	var b64 [4]byte
	sum := sha256.Sum256([]byte(name))
	base64.RawURLEncoding.Encode(b64[:], sum[:3])
	copy(t.Name[:], b64[:])
	if id != (TopicID{}) {
		sum = sha256.Sum256(id[:])
		base64.RawURLEncoding.Encode(b64[:], sum[:3])
		copy(t.ID[:], b64[:])
	}
	return t
}

// AppendID appends p as an id: v1 if that has at most 96 bytes, else v2.
//
// REQUIRES: 1 to 64 groups; of several groups each has a partition whose Next
// is not 0, or a tag.
func AppendID(dst []byte, p Position) []byte {
	if plainLen(p) <= plainMax {
		return appendPlain(dst, p, nil)
	}
	dst = append(dst, packedPrefix...)
	start := len(dst)
	dst = appendPacked(dst, p, nil)
	packed := dst[start:]
	dst = base64.RawURLEncoding.AppendEncode(dst, packed) // behind packed, which it then replaces
	n := copy(dst[start:], dst[start+len(packed):])
	return dst[:start+n]
}

// places are where the offsets of an id's pairs start, in the order of the
// pairs. A nil *places notes nothing.
type places []int32

func (a *places) note(pos int) {
	if a != nil {
		*a = append(*a, int32(pos))
	}
}

// appendPlain appends p as v1. It notes places relative to the id's start.
func appendPlain(dst []byte, p Position, at *places) []byte {
	start := len(dst)
	dst = append(dst, plainPrefix...)
	for i := range p {
		if i > 0 {
			dst = append(dst, ',')
		}
		first := true
		for _, part := range p[i].Parts {
			if part.Next == 0 {
				continue
			}
			if !first {
				dst = append(dst, '.')
			}
			first = false
			dst = strconv.AppendUint(dst, uint64(part.ID), 10)
			dst = append(dst, '-')
			at.note(len(dst) - start)
			dst = appendOffset(dst, part.Next)
		}
		if tag := &p[i].Tag; tag.Name[0] != 0 {
			dst = append(dst, '~')
			dst = append(dst, tag.Name[:]...)
			if tag.ID[0] != 0 {
				dst = append(dst, tag.ID[:]...)
			}
		}
	}
	return dst
}

func appendOffset(dst []byte, next int64) []byte {
	if next == Unknown {
		return append(dst, '*')
	}
	return strconv.AppendInt(dst, next-1, 10)
}

// plainLen returns the length of p as v1.
func plainLen(p Position) int {
	n := len(plainPrefix) + max(0, len(p)-1)
	for i := range p {
		pairs := 0
		for _, part := range p[i].Parts {
			if part.Next != 0 {
				pairs++
				n += digits(uint64(part.ID)) + len("-") + offsetLen(part.Next)
			}
		}
		n += max(0, pairs-1)
		if tag := &p[i].Tag; tag.Name[0] != 0 {
			n += len("~") + len(tag.Name)
			if tag.ID[0] != 0 {
				n += len(tag.ID)
			}
		}
	}
	return n
}

// offsetLen returns the length of what appendOffset appends.
func offsetLen(next int64) int {
	if next == Unknown {
		return 1
	}
	return digits(uint64(next - 1))
}

// digits returns the length of n in decimal.
func digits(n uint64) int {
	n |= 1                               // 0 has one digit; no other length changes
	d := bits.Len64(n) * 1233 >> 12      // log10(2) = 0.30103 = 1233/4096: floor(log10(n)) or one more
	if d < len(pow10) && n >= pow10[d] { // so compare
		d++
	}
	return d
}

var pow10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// The flags of a v2 group.
const (
	hasName = 1 << iota
	hasID
)

// appendPacked appends the bytes of p's v2 form, before base64. It notes
// places relative to their start.
func appendPacked(dst []byte, p Position, at *places) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(p)))
	for i := range p {
		dst = appendPackedTag(dst, p[i].Tag)
		pairs := 0
		for _, part := range p[i].Parts {
			if part.Next != 0 {
				pairs++
			}
		}
		dst = binary.AppendUvarint(dst, uint64(pairs))
		prev := int32(-1)
		for _, part := range p[i].Parts {
			if part.Next == 0 {
				continue
			}
			dst = binary.AppendUvarint(dst, uint64(part.ID-prev-1))
			prev = part.ID
			at.note(len(dst) - start)
			dst = binary.AppendUvarint(dst, packedNext(part.Next))
		}
	}
	return dst
}

func packedNext(next int64) uint64 {
	if next == Unknown {
		return 0
	}
	return uint64(next)
}

func appendPackedTag(dst []byte, t Tag) []byte {
	if t.Name[0] == 0 {
		return append(dst, 0)
	}
	name := sextet(t.Name[0])<<6 | sextet(t.Name[1])
	if t.ID[0] == 0 {
		return binary.BigEndian.AppendUint16(append(dst, hasName), uint16(name))
	}
	id := sextet(t.ID[0])<<12 | sextet(t.ID[1])<<6 | sextet(t.ID[2])
	return binary.BigEndian.AppendUint32(append(dst, hasName|hasID), name<<18|id)
}

// alphabet is base64url's (RFC 4648 5).
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// sextets is the inverse of alphabet; 0xFF marks what is not in it.
var sextets = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	for i := range len(alphabet) {
		t[alphabet[i]] = byte(i)
	}
	return t
}()

func sextet(c byte) uint32 { return uint32(sextets[c]) }
