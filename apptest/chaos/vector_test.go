package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// partsMax bounds the partitions of a run's topic: so few that ids are of the
// first form, which is the one this package reads.
const partsMax = 8

// unknown is the place of a partition that had no leader when the stream began.
const unknown = -1

// vector is a position: the next offset of each partition.
type vector [partsMax]int64

var errID = errors.New("no id of one topic in the first form")

// parseID reads an id, which holds last offsets, and the topic's tag.
func parseID(id []byte) (v vector, tag []byte, err error) {
	rest, ok := bytes.CutPrefix(id, []byte("v1:"))
	list, tag, tagged := bytes.Cut(rest, []byte("~"))
	if !ok || !tagged || len(tag) != 5 && len(tag) != 2 {
		return v, nil, fmt.Errorf("%w: %q", errID, id)
	}
	for len(list) > 0 {
		var pair []byte
		pair, list, _ = bytes.Cut(list, []byte("."))
		partition, offset, _ := bytes.Cut(pair, []byte("-"))
		p, err := number(partition)
		if err != nil || p >= partsMax {
			return v, nil, fmt.Errorf("%w: %q", errID, id)
		}
		if string(offset) == "*" {
			v[p] = unknown
			continue
		}
		last, err := number(offset)
		if err != nil {
			return v, nil, fmt.Errorf("%w: %q", errID, id)
		}
		v[p] = last + 1
	}
	return v, tag, nil
}

func number(b []byte) (int64, error) { return strconv.ParseInt(string(b), 10, 64) }
