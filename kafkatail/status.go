package kafkatail

import (
	"cmp"
	"slices"
	"time"

	"tailcast/frame"
)

// Status is how the tail is doing at one moment.
type Status struct {
	Connected   bool      // the last look was answered
	LastContact time.Time // of the last answered look; zero: never
	Error       string    // why the last look was not answered
	Topics      []TopicStatus
	Counters    Counters
}

// TopicStatus is one topic's part of a Status.
type TopicStatus struct {
	Name       string
	ID         frame.TopicID // zero: never seen
	State      State
	Error      string // of the states Denied and Failing
	Opened     bool   // its sinks are open: they know where each partition starts, or that the topic is missing
	Sinks      int
	Records    uint64 // appended since the start
	Lag        int64  // sum over partitions
	Partitions []PartitionStatus
}

// PartitionStatus is one partition's part of a Status.
type PartitionStatus struct {
	ID     int32
	Leader int32  // -1: none
	Next   int64  // next offset to deliver, or frame.Unknown
	Start  int64  // where the log began at the last look: what is before is gone; -1: not known
	End    int64  // where the log ended at the last look: last stable offset, or high watermark; -1: not known
	Lag    int64  // End - Next where End is ahead; transaction markers and compacted records count
	Error  string // of the last fetch, gone once records arrive
}

// Counters only grow.
type Counters struct {
	Records  uint64            // appended, once per topic whatever the number of sinks
	Control  uint64            // transaction markers passed over
	Polls    uint64            // rounds of the reader, with or without records
	Fetches  uint64            // answers of brokers that brought records
	Looks    uint64            // times the brokers were asked what there is
	Failed   uint64            // looks that no broker answered
	Errors   map[string]uint64 // fetch errors by kind
	Resyncs  map[string]uint64 // losses and re-creations by reason
	Rebuilds uint64            // readers replaced because they were stuck
	History  HistoryCounters
}

// HistoryCounters count what History reads.
type HistoryCounters struct {
	Reads   uint64 // asked for
	Fetches uint64 // requests to brokers for them
	Retries uint64 // reads, or lists of bounds, tried again
	Records uint64
	Bytes   uint64 // before decompression
}

// Status copies the present state. Safe from any goroutine that holds no lock
// a sink takes: it waits for at most one partition's share of a fetch.
func (t *Tail) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Status{
		Connected:   t.contact.reach == reachOK,
		LastContact: t.contact.lastOK,
		Topics:      make([]TopicStatus, 0, len(t.topics)),
		Counters:    t.counters.snapshot(),
	}
	if t.contact.err != nil {
		s.Error = t.contact.err.Error()
	}
	s.Counters.Records = t.past
	for _, tp := range t.topics {
		s.Topics = append(s.Topics, tp.status())
		s.Counters.Records += tp.records
	}
	slices.SortFunc(s.Topics, func(a, b TopicStatus) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (tp *topic) status() TopicStatus {
	s := TopicStatus{
		Name: tp.name, ID: tp.id, State: tp.state, Sinks: len(tp.subs), Records: tp.records,
		Opened:     tp.opened && tp.warm == nil || tp.state == Missing,
		Partitions: make([]PartitionStatus, len(tp.parts)),
	}
	if tp.err != nil {
		s.Error = tp.err.Error()
	}
	for i := range tp.parts {
		p := &tp.parts[i]
		s.Partitions[i] = PartitionStatus{ID: int32(i), Leader: p.leader, Next: p.next, Start: p.start, End: p.end, Lag: p.lag()}
		if p.err != nil {
			s.Partitions[i].Error = p.err.Error()
		}
		s.Lag += p.lag()
	}
	return s
}

// contactMax is how old the last answer may be for the brokers to count as
// reachable: a few looks, or a restart of the only broker, is no alarm.
const contactMax = 15 * time.Second

// Ready returns nil if every topic has opened once and brokers answered
// recently, else why not. A topic that is missing or denied is no reason: the
// node serves its other topics.
func (s Status) Ready(now time.Time) error {
	switch {
	case s.LastContact.IsZero() && s.Error == "":
		return notReadyError("Kafka was not asked yet")
	case s.LastContact.IsZero() || !s.Connected && now.Sub(s.LastContact) > contactMax:
		return notReadyError("Kafka does not answer: " + s.Error)
	}
	for _, tp := range s.Topics {
		if !tp.Opened && tp.State != Denied {
			return notReadyError("topic " + tp.Name + " is " + string(tp.State))
		}
	}
	return nil
}

// notReadyError is a reason for /readyz.
type notReadyError string

func (e notReadyError) Error() string { return string(e) }

func (c *counters) snapshot() Counters {
	s := Counters{
		Control:  c.control.Load(),
		Polls:    c.polls.Load(),
		Fetches:  c.fetches.Load(),
		Looks:    c.looks.Load(),
		Failed:   c.failed.Load(),
		Rebuilds: c.rebuilds.Load(),
		Errors:   make(map[string]uint64, kinds),
		Resyncs: map[string]uint64{
			string(frame.Expired):   c.expired.Load(),
			string(frame.Truncated): c.cut.Load(),
			string(frame.Recreated): c.recreate.Load(),
		},
	}
	s.History = HistoryCounters{
		Reads:   c.reads.Load(),
		Fetches: c.historyFetches.Load(),
		Retries: c.retries.Load(),
		Records: c.historyRecords.Load(),
		Bytes:   c.historyBytes.Load(),
	}
	for k := range kinds {
		s.Errors[k.String()] = c.errors[k].Load()
	}
	return s
}
