package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A run has up to topicsMax topics of up to partsMax partitions. A lane is a
// partition of one of them; those of the first topic are numbered like its
// partitions.
const (
	topicsMax = 3
	partsMax  = 8
	lanesMax  = topicsMax * partsMax
)

func laneOf(topic int, partition int32) int { return topic*partsMax + int(partition) }

func topicOf(lane int) int { return lane / partsMax }

func partitionOf(lane int) int32 { return int32(lane % partsMax) }

// unknown is the place of a partition that had no leader when the stream began.
const unknown = -1

// vector is a position: the next offset of each lane.
type vector [lanesMax]int64

func (v vector) String() string {
	var lanes []string
	for l, next := range v {
		if next != 0 {
			lanes = append(lanes, fmt.Sprintf("%d/%d:%d", topicOf(l), partitionOf(l), next))
		}
	}
	return "{" + strings.Join(lanes, " ") + "}"
}

// tag tells topics apart in ids: two characters for the name and three for the
// topic id, which are zero while the topic does not exist.
type tag [5]byte

func (t tag) missing() bool { return t[2] == 0 }

// nameTag is what the tag of a topic begins with.
func nameTag(name string) (t tag) {
	sum := sha256.Sum256([]byte(name))
	copy(t[:2], base64.RawURLEncoding.EncodeToString(sum[:]))
	return t
}

// place is what an id says: of topics that it does not name, nothing.
type place struct {
	next vector
	tags [topicsMax]tag
}

var errID = errors.New("no id of these topics")

// parseID reads an id that names some of the run's topics, in this order. Its
// first form holds last offsets, the second next ones.
func (r *run) parseID(id []byte, topics []int) (at place, err error) {
	if packed, ok := bytes.CutPrefix(id, []byte("v2.")); ok {
		at, err = unpack(packed, topics)
	} else if plain, ok := bytes.CutPrefix(id, []byte("v1:")); ok {
		at, err = parsePlain(plain, topics)
	} else {
		err = errID
	}
	for _, t := range topics {
		if err == nil && [2]byte(at.tags[t][:2]) != [2]byte(r.names[t][:2]) {
			err = fmt.Errorf("%w: the tag is not of %s", errID, r.o.topics[t].name)
		}
	}
	if err != nil {
		return at, fmt.Errorf("id %q: %w", id, err)
	}
	return at, nil
}

// parsePlain reads the first form.
func parsePlain(rest []byte, topics []int) (at place, err error) {
	for i, t := range topics {
		group, others, more := bytes.Cut(rest, []byte(","))
		if rest = others; more != (i < len(topics)-1) {
			return at, errID
		}
		list, tg, tagged := bytes.Cut(group, []byte("~"))
		if !tagged || len(tg) != 5 && len(tg) != 2 {
			return at, errID
		}
		copy(at.tags[t][:], tg)
		for len(list) > 0 {
			var pair []byte
			pair, list, _ = bytes.Cut(list, []byte("."))
			partition, offset, _ := bytes.Cut(pair, []byte("-"))
			p, err := number(partition)
			if err != nil || p >= partsMax {
				return at, errID
			}
			next := &at.next[laneOf(t, int32(p))]
			if string(offset) == "*" {
				*next = unknown
				continue
			}
			last, err := number(offset)
			if err != nil {
				return at, errID
			}
			*next = last + 1
		}
	}
	return at, nil
}

// unpack reads the second form.
func unpack(text []byte, topics []int) (at place, err error) {
	b, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil {
		return at, err
	}
	num := func() int {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > math.MaxUint32 {
			err, b = errID, nil
			return 0
		}
		b = b[size:]
		return int(n)
	}
	if num() != len(topics) {
		return at, errID
	}
	for _, t := range topics {
		var size int // of the tag, six bits a character
		switch num() {
		case 1:
			size = 2
		case 3:
			size = 4
		}
		if size == 0 || len(b) < size {
			return at, errID
		}
		bits := uint64(0)
		for _, c := range b[:size] {
			bits = bits<<8 | uint64(c)
		}
		b = b[size:]
		chars := at.tags[t][:size*8/6]
		for i := range chars {
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
			chars[i] = alphabet[bits>>(6*(len(chars)-1-i))&63]
		}
		p := -1
		for range num() {
			if p += 1 + num(); err != nil || p >= partsMax {
				return at, errID
			}
			next := int64(num())
			if next == 0 {
				next = unknown
			}
			at.next[laneOf(t, int32(p))] = next
		}
	}
	if err == nil && len(b) > 0 {
		err = errID
	}
	return at, err
}

func number(b []byte) (int64, error) { return strconv.ParseInt(string(b), 10, 64) }
