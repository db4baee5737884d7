package frame

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// idParseMax bounds the ids that are read. Ours have at most IDMax; the rest
// is for a later version's. It also bounds the pairs of an id, to 3,068: the
// shortest has two bytes in v2, and four characters in v1.
const idParseMax = 8 << 10

// ErrID is in the chain of every error of ParseID. A stream that comes with
// such an id goes on as one without (resync, reason unknown): an HTTP error
// would make a browser give up for good.
var ErrID = errors.New("event id")

// What can be wrong with an id. They are made once, so that a flood of bad
// ids allocates nothing for them.
var (
	errIDLong      = fmt.Errorf("%w: over %d bytes", ErrID, idParseMax)
	errIDVersion   = fmt.Errorf("%w: begins with neither %s nor %s", ErrID, plainPrefix, packedPrefix)
	errIDGroups    = fmt.Errorf("%w: not 1 to %d groups", ErrID, groupsMax)
	errIDEmpty     = fmt.Errorf("%w: one of several groups has neither pair nor tag", ErrID)
	errIDPair      = fmt.Errorf("%w: a pair is not partition-offset", ErrID)
	errIDPartition = fmt.Errorf("%w: a partition is not a decimal number of at most 2^31-1", ErrID)
	errIDOffset    = fmt.Errorf("%w: an offset is not a decimal number of at most 2^63-2", ErrID)
	errIDOrder     = fmt.Errorf("%w: partitions do not ascend", ErrID)
	errIDTag       = fmt.Errorf("%w: a tag is not 2 or 5 characters of base64url", ErrID)
	errIDBase64    = fmt.Errorf("%w: not canonical base64url", ErrID)
	errIDVarint    = fmt.Errorf("%w: a number is cut off, too large or not in its shortest form", ErrID)
	errIDFlags     = fmt.Errorf("%w: a group is cut off or has unknown flags", ErrID)
	errIDPairs     = fmt.Errorf("%w: more pairs announced than follow", ErrID)
	errIDRest      = fmt.Errorf("%w: bytes after the last group", ErrID)
)

// ParseID reads an id in any form that AppendID has ever written, behind a
// record's key or without. Every error
// has ErrID in its chain. The position does not alias b; what is allocated is
// bounded by a small multiple of len(b).
func ParseID(b []byte) (Position, error) {
	if len(b) > idParseMax {
		return nil, errIDLong
	}
	b = cutKey(b)
	if text, ok := bytes.CutPrefix(b, []byte(plainPrefix)); ok {
		return parsePlain(text)
	}
	if text, ok := bytes.CutPrefix(b, []byte(packedPrefix)); ok {
		return parsePacked(text)
	}
	return nil, errIDVersion
}

func parsePlain(text []byte) (Position, error) {
	groups := bytes.Count(text, []byte{','}) + 1
	if groups > groupsMax {
		return nil, errIDGroups
	}
	p := make(Position, groups)
	all := make([]Partition, 0, bytes.Count(text, []byte{'-'})) // a tag may hold a '-' as well: some too many
	for i := range p {
		var group []byte
		group, text, _ = bytes.Cut(text, []byte{','})
		pairs, tag, tagged := bytes.Cut(group, []byte{'~'})
		if tagged {
			t, ok := parseTag(tag)
			if !ok {
				return nil, errIDTag
			}
			p[i].Tag = t
		} else if len(pairs) == 0 && groups > 1 {
			return nil, errIDEmpty
		}
		from := len(all)
		var err error
		if all, err = parsePairs(all, pairs); err != nil {
			return nil, err
		}
		p[i].Parts = sub(all, from)
	}
	return p, nil
}

// sub is what was appended to all since it had from partitions; nil if nothing.
func sub(all []Partition, from int) []Partition {
	if from == len(all) {
		return nil
	}
	return all[from:len(all):len(all)]
}

// parsePairs appends the pairs of one v1 group.
func parsePairs(all []Partition, text []byte) ([]Partition, error) {
	prev := int32(-1)
	for more := len(text) > 0; more; {
		var pair []byte
		pair, text, more = bytes.Cut(text, []byte{'.'})
		id, offset, ok := bytes.Cut(pair, []byte{'-'})
		if !ok {
			return nil, errIDPair
		}
		n, ok := parseDecimal(id, math.MaxInt32)
		if !ok {
			return nil, errIDPartition
		}
		part := Partition{ID: int32(n), Next: Unknown}
		if part.ID <= prev {
			return nil, errIDOrder
		}
		prev = part.ID
		if string(offset) != "*" {
			last, ok := parseDecimal(offset, math.MaxInt64-1)
			if !ok {
				return nil, errIDOffset
			}
			part.Next = last + 1
		}
		all = append(all, part)
	}
	return all, nil
}

// parseDecimal reads digits only, without leading zeros.
func parseDecimal(b []byte, most int64) (int64, bool) {
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var n uint64 // 19 digits fit
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= uint64(most)
}

func parseTag(b []byte) (t Tag, ok bool) {
	if len(b) != len(t.Name) && len(b) != len(t.Name)+len(t.ID) {
		return t, false
	}
	for _, c := range b {
		if sextets[c] == 0xFF {
			return t, false
		}
	}
	copy(t.ID[:], b[copy(t.Name[:], b):])
	return t, true
}

func parsePacked(text []byte) (Position, error) {
	if bytes.ContainsAny(text, "\r\n") { // which encoding/base64 passes over
		return nil, errIDBase64
	}
	b, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil {
		return nil, errIDBase64
	}
	groups, b, ok := uvarint(b, math.MaxInt64)
	if !ok {
		return nil, errIDVarint
	}
	if groups == 0 || groups > groupsMax {
		return nil, errIDGroups
	}
	p := make(Position, groups)
	all := make([]Partition, 0, len(b)/2)
	for i := range p {
		if p[i].Tag, b, err = parsePackedTag(b); err != nil {
			return nil, err
		}
		from := len(all)
		if all, b, err = parsePackedPairs(all, b); err != nil {
			return nil, err
		}
		if p[i].Parts = sub(all, from); p[i].Parts == nil && p[i].Tag == (Tag{}) && groups > 1 {
			return nil, errIDEmpty
		}
	}
	if len(b) > 0 {
		return nil, errIDRest
	}
	return p, nil
}

// parsePackedPairs appends the pairs of one v2 group, and returns what of b
// is behind them.
func parsePackedPairs(all []Partition, b []byte) (_ []Partition, rest []byte, err error) {
	pairs, b, ok := uvarint(b, math.MaxInt64)
	if !ok {
		return nil, nil, errIDVarint
	}
	if pairs > uint64(len(b)/2) {
		return nil, nil, errIDPairs
	}
	id := int64(-1)
	for range pairs {
		var gap, next uint64
		if gap, b, ok = uvarint(b, math.MaxInt32); !ok {
			return nil, nil, errIDVarint
		}
		if id += int64(gap) + 1; id > math.MaxInt32 {
			return nil, nil, errIDPartition
		}
		if next, b, ok = uvarint(b, math.MaxInt64); !ok {
			return nil, nil, errIDVarint
		}
		part := Partition{ID: int32(id), Next: int64(next)}
		if next == 0 {
			part.Next = Unknown
		}
		all = append(all, part)
	}
	return all, b, nil
}

// uvarint reads a number from the front of b. Forms that are longer than they
// need to be are refused, so that a position has one id.
func uvarint(b []byte, most uint64) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || size > 1 && b[size-1] == 0 || n > most {
		return 0, nil, false
	}
	return n, b[size:], true
}

func parsePackedTag(b []byte) (t Tag, rest []byte, err error) {
	if len(b) == 0 {
		return t, nil, errIDFlags
	}
	flags, b := b[0], b[1:]
	switch {
	case flags == 0:
		return t, b, nil
	case flags == hasName && len(b) >= 2:
		name := uint32(binary.BigEndian.Uint16(b))
		if name>>12 != 0 {
			return t, nil, errIDTag
		}
		t.setName(name)
		return t, b[2:], nil
	case flags == hasName|hasID && len(b) >= 4:
		both := binary.BigEndian.Uint32(b)
		if both>>30 != 0 {
			return t, nil, errIDTag
		}
		t.setName(both >> 18)
		t.ID = [3]byte{alphabet[both>>12&63], alphabet[both>>6&63], alphabet[both&63]}
		return t, b[4:], nil
	}
	return t, nil, errIDFlags
}

func (t *Tag) setName(bits uint32) {
	t.Name = [2]byte{alphabet[bits>>6&63], alphabet[bits&63]}
}
