package frame

import "strconv"

// Reason is why a stream can't go on where it was: the reason field of a
// resync event and a metric label.
type Reason string

// The reasons of a resync event.
const (
	Expired   Reason = "expired"   // retention passed the position
	Truncated Reason = "truncated" // the log was cut: unclean election, data loss, id beyond the end
	Recreated Reason = "recreated" // the topic is another one of the same name
	TooFar    Reason = "too-far"   // more than the replay limits allow
	UnknownID Reason = "unknown"   // a foreign or unparsable id, or one this node can't place
)

// Range is a run of offsets that a stream did not get; both ends inclusive,
// negative when not known (null in the event). One whose Partition is Whole
// names the topic, and no run of it.
type Range struct {
	Topic     string
	Partition int32
	From, To  int64
}

// Whole stands for no partition in particular.
const Whole int32 = -1

// AppendResync appends one frame with the event that says what a stream can't
// get; id is where it goes on. The data is one line:
//
//	{"reason":"expired","topics":{"events":[{"partition":1,"from":101,"to":499}]}}
//
// Ranges keep their order within a topic, and topics that of their first range.
func AppendResync(dst, id []byte, reason Reason, lost []Range) []byte {
	n := len(`data: {"reason":"","topics":{}}`) + len(reason)
	for i := range lost {
		n += len(`{"partition":1,"from":1000000,"to":1000000},`)
		if i == 0 || lost[i].Topic != lost[i-1].Topic {
			n += len(`"":[],`) + len(lost[i].Topic)
		}
	}
	dst, b := beginBlock(dst, id, []byte("resync"), n)
	dst = append(dst, dataField...)
	dst, _ = appendName(append(dst, `{"reason":`...), string(reason))
	dst = append(dst, `,"topics":{`...)
	for i := range lost {
		if lists(lost[:i], lost[i].Topic) {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRanges(dst, lost[i].Topic, lost[i:])
	}
	dst = append(dst, "}}\n"...)
	dst, _ = b.end(dst)
	return dst
}

// lists reports whether there is a range of the topic. A feed has at most
// groupsMax topics and lists them one by one, so it is found soon or not at all.
func lists(lost []Range, topic string) bool {
	for i := range lost {
		if lost[i].Topic == topic {
			return true
		}
	}
	return false
}

// appendRanges appends the ranges of one topic.
func appendRanges(dst []byte, topic string, lost []Range) []byte {
	dst, _ = appendName(dst, topic)
	dst = append(dst, ":["...)
	begun := false
	for i := range lost {
		if lost[i].Topic != topic || lost[i].Partition == Whole {
			continue
		}
		if begun {
			dst = append(dst, ',')
		}
		begun = true
		dst = append(dst, `{"partition":`...)
		dst = strconv.AppendInt(dst, int64(lost[i].Partition), 10)
		dst = appendEnd(append(dst, `,"from":`...), lost[i].From)
		dst = appendEnd(append(dst, `,"to":`...), lost[i].To)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendEnd(dst []byte, offset int64) []byte {
	if offset < 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, offset, 10)
}
