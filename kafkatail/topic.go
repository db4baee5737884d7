package kafkatail

import (
	"slices"
	"time"

	"tailcast/frame"
	"tailcast/hub"
)

// State is how a topic is doing.
type State string

// The states of a topic.
const (
	Opening State = "opening" // not answered for yet, or its offsets are not listed yet
	Warming State = "warming" // its newest records are read before its streams start
	Tailing State = "tailing"
	Missing State = "missing" // does not exist, or was deleted
	Denied  State = "denied"  // an ACL forbids it
	Failing State = "failing" // the brokers answer with an error
)

// topic is one topic, read once, whatever the number of its sinks.
//
// Tail.mu guards it. Positions change and sinks are called on the reader's
// goroutine alone, so a sink is never called by two goroutines at a time.
type topic struct {
	name  string
	subs  []subscription
	state State
	err   error // why it is Denied or Failing

	id      frame.TopicID   // of the incarnation in parts; zero: never seen
	retired []frame.TopicID // former ids, newest last; at most retiredMax
	parts   []partition     // by partition
	opened  bool            // sinks know parts
	whole   bool            // it was seen missing or is re-created: read from its log start
	warm    *warmup         // under way, and sinks wait to be opened; nil otherwise

	okSince      time.Time // first look that found this incarnation
	missingSince time.Time // first of an unbroken run of looks that did not find it
	probeAt      time.Time // when a topic whose fetches are denied is tried again
	asked        bool      // a fetch failed: the next look is at it, too

	records   uint64 // appended
	unflushed bool   // a sink was called since the last Flush
}

// partition is our place in one partition.
type partition struct {
	next    int64 // next offset to deliver, or frame.Unknown
	start   int64 // where the log began at the last look; -1: not listed yet
	end     int64 // where it ended
	hole    int64 // a probe found no record between next and here
	leader  int32 // or noLeader
	reading bool  // the reader's client has it

	outOfRange bool      // the brokers refuse next; the next look lists where to go on
	skipPoll   uint64    // the poll whose records are void: the position moved meanwhile
	errs       int       // fetch errors in a row
	errAt      time.Time // the last of them
	err        error     // the last of them, nil once records arrive

	behindAt   time.Time // since when end > next while next stood at behindNext
	behindNext int64
	beyondAt   time.Time // since when the log is seen to end before next

	reported int64 // what the reporter's group has; -1: nothing
}

// subscription is one sink and what it was told.
type subscription struct {
	sink hub.Sink
	warm bool // it is being warmed, and opened when that ends
	open bool
	id   frame.TopicID // the incarnation it knows; zero: that there is none
}

// reads reports whether the sink follows tp's present incarnation.
func (s *subscription) reads(tp *topic) bool {
	return (s.open || s.warm) && s.id == tp.id && tp.opened
}

// part returns nil where the partition is not known.
func (tp *topic) part(p int32) *partition {
	if p < 0 || int(p) >= len(tp.parts) {
		return nil
	}
	return &tp.parts[p]
}

// positions copies where each partition stands.
func (tp *topic) positions() []frame.Partition {
	parts := make([]frame.Partition, len(tp.parts))
	for i := range tp.parts {
		parts[i] = frame.Partition{ID: int32(i), Next: tp.parts[i].next}
	}
	return parts
}

// announce tells the sinks that do not know it yet which incarnation is read
// and from where, or that there is none. Reader only; Tail.mu must be held.
func (tp *topic) announce() {
	if !tp.opened && tp.state != Missing {
		return
	}
	for i := range tp.subs {
		if s := &tp.subs[i]; s.announce(tp) {
			tp.unflushed = true
		}
	}
}

// announce tells the sink what it does not know yet; false if that is nothing.
func (s *subscription) announce(tp *topic) bool {
	known := s.open || s.warm
	switch {
	case s.warm && s.id == tp.id:
		if tp.warm != nil {
			return false
		}
		s.sink.Open(tp.id, tp.positions())
	case tp.state == Missing:
		if s.open {
			return false // a deleted topic's streams wait for what comes
		}
		s.sink.Open(frame.TopicID{}, nil)
	case s.open && s.id == tp.id:
		return false
	case known && s.id != (frame.TopicID{}):
		s.sink.Recreated(tp.id, tp.positions())
		if s.warm {
			s.sink.Open(tp.id, tp.positions())
		}
		s.id = tp.id
	case tp.warm != nil:
		s.sink.Warm(tp.id, tp.positions())
		s.warm, s.id = true, tp.id
		return true
	default:
		s.sink.Open(tp.id, tp.positions())
		s.id = tp.id
	}
	s.warm, s.open = false, true
	return true
}

// append gives consecutive records to the sinks. Reader only; Tail.mu must be held.
func (tp *topic) append(p int32, recs []frame.Record) {
	for i := range tp.subs {
		if s := &tp.subs[i]; s.reads(tp) {
			s.sink.Append(p, recs)
		}
	}
	tp.records += uint64(len(recs))
	tp.unflushed = true
}

// advance moves a partition over offsets without records, or makes it known.
// Reader only; Tail.mu must be held.
func (tp *topic) advance(p int32, next int64) {
	tp.parts[p].next = next
	for i := range tp.subs {
		if s := &tp.subs[i]; s.reads(tp) {
			s.sink.Advance(p, next)
		}
	}
	tp.unflushed = true
}

// lost says what can't be delivered; positions have moved already. Reader
// only; Tail.mu must be held.
func (tp *topic) lost(reason frame.Reason, ranges []frame.Range) {
	parts := make([]frame.Partition, 0, len(ranges))
	for _, r := range ranges {
		parts = append(parts, frame.Partition{ID: r.Partition, Next: tp.parts[r.Partition].next})
	}
	for i := range tp.subs {
		if s := &tp.subs[i]; s.reads(tp) {
			s.sink.Lost(reason, ranges, parts)
		}
	}
	tp.unflushed = true
}

// flush ends a round of the calls above; w gathers the loops to wake. Reader
// only; Tail.mu must be held.
func (tp *topic) flush(w *hub.Wakes) {
	if !tp.unflushed {
		return
	}
	tp.unflushed = false
	for i := range tp.subs {
		if s := &tp.subs[i]; s.open || s.warm {
			s.sink.Flush(w)
		}
	}
}

// begin starts on an incarnation; a former one is retired. Tail.mu must be held.
func (tp *topic) begin(id frame.TopicID, now time.Time) {
	if tp.id != (frame.TopicID{}) {
		tp.whole = true
		if len(tp.retired) == retiredMax {
			tp.retired = slices.Delete(tp.retired, 0, 1)
		}
		tp.retired = append(tp.retired, tp.id)
	}
	tp.id, tp.parts, tp.opened, tp.warm, tp.okSince = id, nil, false, nil, now
}

// grow adds partitions up to n. Those of a topic that is open already are
// newer than its streams and are read from their beginning. Reader only;
// Tail.mu must be held.
func (tp *topic) grow(n int) {
	for len(tp.parts) < n {
		tp.parts = append(tp.parts, partition{next: frame.Unknown, start: -1, end: -1, leader: noLeader, reported: -1})
		if tp.opened {
			tp.advance(int32(len(tp.parts)-1), 0)
		}
	}
}

// reading counts the partitions that the reader's client has.
func (tp *topic) reading() (n int) {
	for i := range tp.parts {
		if tp.parts[i].reading {
			n++
		}
	}
	return n
}

// lag is how many offsets the partition is behind its last listed end; some of
// them may hold no record.
func (p *partition) lag() int64 {
	if p.next < 0 || p.hole >= p.end {
		return 0
	}
	return max(0, p.end-p.next)
}
