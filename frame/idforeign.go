package frame

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Foreign is what an id of another gateway says.
type Foreign struct {
	Position Position
	// Since is the earliest time that the id names instead of an offset, in
	// milliseconds since 1970; 0: none. What lies between it and the position
	// of the time may have been delivered before.
	Since int64
}

var (
	errIDForeign  = fmt.Errorf("%w: neither ours nor Zilla's nor KafkaSSE's", ErrID)
	errIDProgress = fmt.Errorf("%w: Zilla's progress is not padded base64url of version 1", ErrID)
	errIDArray    = fmt.Errorf("%w: not an array of topic, partition and offset or timestamp", ErrID)
)

// ParseForeignID reads the ids of gateways that a fleet of pages may come
// from, so that none loses its place:
//
//   - Zilla's sse-kafka: PROGRESS, PROGRESS/ETAG, and either behind a key in
//     ["KEY","PROGRESS"] or [null,"PROGRESS"]. PROGRESS is the padded
//     base64url of the byte 1 and zigzag varints: the number of pairs, then
//     partition and next offset of each. It does not name the topic.
//   - KafkaSSE's (Wikimedia EventStreams): a JSON array of objects with topic,
//     partition, and offset (the next one) or timestamp (the next millisecond).
//     Partitions that it does not list were not read yet: they are Unknown,
//     which Group.Rest says.
//
// Every error has ErrID in its chain. The result does not alias b; what is
// allocated is bounded by a small multiple of len(b), of which idParseMax are read.
func ParseForeignID(b []byte) (Foreign, error) {
	switch {
	case len(b) > idParseMax:
		return Foreign{}, errIDLong
	case len(b) == 0:
		return Foreign{}, errIDForeign
	case b[0] != '[':
		return parseZilla(b)
	}
	var items []json.RawMessage
	if json.Unmarshal(b, &items) != nil {
		return parseQuoted(b)
	}
	if len(items) == 0 {
		return Foreign{}, errIDForeign
	}
	if items[0][0] == '{' {
		return parseArray(items)
	}
	var key *string
	var progress string
	if len(items) != 2 || json.Unmarshal(items[0], &key) != nil || json.Unmarshal(items[1], &progress) != nil {
		return Foreign{}, errIDForeign
	}
	return parseZilla([]byte(progress))
}

// parseQuoted reads ["KEY","PROGRESS/ETAG"] of an etag that has quotes, as those
// of HTTP do: Zilla puts it between its own as it is, and that is no JSON.
func parseQuoted(b []byte) (Foreign, error) {
	_, rest, ok := bytes.Cut(b, []byte(`,"`))
	progress, etag, tagged := bytes.Cut(rest, []byte{'/'})
	if !ok || !tagged || !bytes.HasSuffix(etag, []byte(`"]`)) {
		return Foreign{}, errIDForeign
	}
	return parseZilla(progress)
}

// Zilla's next offsets that are none.
const (
	zillaLive       = -1
	zillaHistorical = -2
)

func parseZilla(text []byte) (Foreign, error) {
	text, _, _ = bytes.Cut(text, []byte{'/'})
	if bytes.ContainsAny(text, "\r\n") { // which encoding/base64 passes over
		return Foreign{}, errIDProgress
	}
	b, err := base64.URLEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(b) < 2 || b[0] != 1 {
		return Foreign{}, errIDProgress
	}
	b = b[1:]
	pairs, b, ok := zigzag(b, math.MaxInt32)
	if !ok || pairs < 0 || pairs > int64(len(b)/2) {
		return Foreign{}, errIDProgress
	}
	parts := make([]Partition, 0, pairs)
	for range pairs {
		var id, next int64
		if id, b, ok = zigzag(b, math.MaxInt32); !ok || id < 0 {
			return Foreign{}, errIDProgress
		}
		if next, b, ok = zigzag(b, math.MaxInt64); !ok || next < zillaHistorical {
			return Foreign{}, errIDProgress
		}
		switch next {
		case zillaHistorical, 0: // from the beginning, as what is left out is
		case zillaLive:
			parts = append(parts, Partition{ID: int32(id), Next: Unknown})
		default:
			parts = append(parts, Partition{ID: int32(id), Next: next})
		}
	}
	if len(b) > 0 {
		return Foreign{}, errIDProgress
	}
	if !ascend(parts) {
		return Foreign{}, errIDOrder
	}
	return Foreign{Position: Position{{Parts: parts}}}, nil
}

// zigzag reads a varint of the signed kind, and returns what is behind it.
func zigzag(b []byte, most int64) (int64, []byte, bool) {
	v, n := binary.Varint(b)
	if n <= 0 || v > most {
		return 0, nil, false
	}
	return v, b[n:], true
}

func parseArray(items []json.RawMessage) (Foreign, error) {
	var f Foreign
	var topics []string // of f.Position
	for _, item := range items {
		var at struct {
			Topic     string `json:"topic"`
			Partition *int32 `json:"partition"`
			Offset    *int64 `json:"offset"`
			Timestamp int64  `json:"timestamp"`
		}
		if json.Unmarshal(item, &at) != nil || at.Topic == "" || at.Partition == nil || *at.Partition < 0 {
			return Foreign{}, errIDArray
		}
		part := Partition{ID: *at.Partition, Next: Unknown}
		switch {
		case at.Timestamp < 0, at.Offset == nil && at.Timestamp == 0:
			return Foreign{}, errIDArray
		case at.Offset != nil && *at.Offset >= 0: // a negative one is librdkafka's for the end
			part.Next = *at.Offset
		case at.Timestamp > 0 && (f.Since == 0 || at.Timestamp < f.Since):
			f.Since = at.Timestamp
		}
		i := slices.Index(topics, at.Topic)
		if i < 0 {
			i = len(topics)
			topics = append(topics, at.Topic)
			f.Position = append(f.Position, Group{Tag: MakeTag(at.Topic, TopicID{}), Rest: true})
		}
		if len(topics) > groupsMax {
			return Foreign{}, errIDGroups
		}
		f.Position[i].Parts = append(f.Position[i].Parts, part)
	}
	for _, g := range f.Position {
		if !ascend(g.Parts) {
			return Foreign{}, errIDOrder
		}
	}
	return f, nil
}

// ascend sorts parts by partition; false if one is there twice.
func ascend(parts []Partition) bool {
	slices.SortFunc(parts, func(a, b Partition) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(parts); i++ {
		if parts[i].ID == parts[i-1].ID {
			return false
		}
	}
	return true
}
