package admin

import "time"

// Source is the running gateway as this room sees it. Both methods are called
// from any goroutine, one call a request; they must not wait for Kafka or for
// a browser.
type Source interface {
	// Snapshot returns the state and the counters of now. The caller keeps it.
	Snapshot() Snapshot
	// Ready returns nil when a balancer may send browsers here, else why not:
	// one line a reason (errors.Join does that), such as "draining",
	// "kafka: dial 127.0.0.1:9092: connection refused" or "topic events: not open".
	Ready() error
}

// Snapshot is what /status and /metrics show. Counters count from the start of
// the process and never fall, whatever feed or connection has ended since.
type Snapshot struct {
	Accept AcceptStats
	Guards GuardStats
	Loops  []LoopStats // in the loops' order; the index is the loop label
	Hub    HubStats
	Kafka  KafkaStats
}

// Counts are counters of one kind by label value. The values are a fixed set
// that the source knows (an enum of reasons, say) and lists whole from the
// start, so that a rate over a first occurrence is right. They never come from
// a request.
type Counts map[string]uint64

// AcceptStats is about the stream listeners, before a loop has the connection.
type AcceptStats struct {
	Accepted uint64 // connections enrolled in a loop
	Rejected Counts // connections refused at accept, by reason
}

// GuardStats is about the guards of routes.
type GuardStats struct {
	Tokens     Counts // requests to guarded routes, by what their token came to
	Challenges uint64 // sent to streams
	Renewals   uint64 // of them, those answered rightly
}

// LoopStats is one event loop.
type LoopStats struct {
	Connections int // open now, streams included
	Streams     int // of them, those that carry events
	Lagging     int // of the streams, those whose socket took less than there was

	Turns uint64
	// SinceTurn is how long ago the loop last ended a turn. A loop turns at
	// least once a second, if only for its timing wheel; one that has not
	// turned for stuckAfter fails /healthz. Zero when not known.
	SinceTurn time.Duration

	EventsSent  uint64
	BytesSent   uint64 // on sockets, heads and chunk framing included
	Closed      Counts // connections ended, by reason
	SlowDropped Counts // of them, slow streams, by lag, stall or overwritten
	Shed        Counts // streams ended right behind their head, by reason
	Responses   Counts // response heads sent, by status code

	Latency         Histogram // from a record's timestamp to the end of the pass that wrote it
	LatencyNegative uint64    // records whose timestamp was ahead of our clock; not in Latency
}

// HubStats is the hub: feeds, and what befell their records.
type HubStats struct {
	Feeds        []FeedStats
	FeedsRefused uint64 // feeds that requests asked for and that were not made: a route has as many as it may

	Skipped      uint64 // records over --max-event, sent as a skipped event
	Dropped      uint64 // records left out by binary: drop
	Replaced     uint64 // records with bytes that became U+FFFD
	NamesRefused uint64 // records whose event name was empty, reserved or not printable
	Keyless      uint64 // records that no snapshot has, since they have no key
	Shut         uint64 // streams ended because their snapshot is refused
	Resyncs      Counts // resync events, one a stream, by reason
	Replays      Counts // streams that started behind the live end, by where the records came from: log or kafka
}

// FeedStats is one feed, or those that the requests of one route made, together:
// then it has no places and no position.
type FeedStats struct {
	Route       string   // host and path as configured
	Topics      []string // in the feed's order, as configured
	Format      string   // raw or envelope
	Subscribers int
	Records     uint64 // appended since the feed began
	LogBytes    int64  // memory held by the log
	LogStart    int64  // the log's place of the oldest byte kept, counted from the feed's begin
	LogHead     int64  // the place after the newest
	Position    string // the id a stream at the head has; empty while not known
	Feeds       int    // that this stands for

	Snapshot *SnapshotStats // nil unless streams begin with the latest records of keys
}

// SnapshotStats are the latest records of a feed's keys.
type SnapshotStats struct {
	Loading bool   `json:"loading"`
	Refused string `json:"refused,omitempty"` // why there are none
	Keys    int    `json:"keys"`
	Deletes int    `json:"deletes"` // of them tombstones
	Bytes   int64  `json:"bytes"`
}

// KafkaStats is the tail.
type KafkaStats struct {
	Connected bool
	Error     string       // the last one while not connected
	Fetches   uint64       // answers of brokers that brought records
	Topics    []TopicStats // that routes name
	Others    OtherTopics
}

// OtherTopics are the topics that only requests name, all together: their names
// have no bound that monitoring could live with.
type OtherTopics struct {
	Topics  int
	Records uint64 // of those that are read no longer, too
	Lag     int64
}

// TopicStats is one topic that is tailed.
type TopicStats struct {
	Topic      string
	Open       bool   // positions are known, so that its streams can start
	Error      string // why it is not open, when that is known
	Records    uint64 // read since start
	Partitions []PartitionStats
}

// PartitionStats is one partition of a topic.
type PartitionStats struct {
	ID   int32
	Next int64 // the next offset to read; negative when not known
	End  int64 // the broker's end as last seen (the last stable offset under read_committed); negative when not known
}

// Lag is the number of offsets still to read; ok is false when it is not known.
func (p PartitionStats) Lag() (lag int64, ok bool) {
	if p.Next < 0 || p.End < 0 {
		return 0, false
	}
	return max(0, p.End-p.Next), true // a fetch may have passed the end we saw
}

// Histogram is a distribution of seconds.
type Histogram struct {
	Bounds []float64 // upper bounds, ascending, without +Inf
	Counts []uint64  // observations of each bucket alone, the last one over every bound: len(Bounds)+1
	Sum    float64
}

// add adds o to h. Every loop has the same bounds; an empty o adds nothing.
func (h *Histogram) add(o Histogram) {
	if len(o.Counts) == 0 {
		return
	}
	if h.Counts == nil {
		h.Bounds, h.Counts = o.Bounds, make([]uint64, len(o.Counts))
	}
	if len(o.Counts) != len(h.Counts) || len(o.Counts) != len(o.Bounds)+1 {
		panic("BUG: admin.Histogram: loops with different buckets")
	}
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
}

// totals is what the loops have done together.
type totals struct {
	connections, streams, lagging int
	events, bytes                 uint64
	closed, slow, shed, responses Counts
	latency                       Histogram
	negative                      uint64
}

func sum(loops []LoopStats) totals {
	t := totals{closed: Counts{}, slow: Counts{}, shed: Counts{}, responses: Counts{}}
	for _, l := range loops {
		t.connections += l.Connections
		t.streams += l.Streams
		t.lagging += l.Lagging
		t.events += l.EventsSent
		t.bytes += l.BytesSent
		t.closed.add(l.Closed)
		t.slow.add(l.SlowDropped)
		t.shed.add(l.Shed)
		t.responses.add(l.Responses)
		t.latency.add(l.Latency)
		t.negative += l.LatencyNegative
	}
	return t
}

func (c Counts) add(o Counts) {
	for k, n := range o {
		c[k] += n
	}
}

// seed returns c with every one of names in it, so that a series of the
// contract exists before its first occurrence.
func (c Counts) seed(names ...string) Counts {
	all := make(Counts, len(c)+len(names))
	for _, n := range names {
		all[n] = 0
	}
	all.add(c)
	return all
}

// The label values that docs/PROTOCOL.md names. Those of connections closed
// and rejected are the loop's to list.
var (
	slowReasons   = []string{"lag", "stall", "overwritten"}
	resyncReasons = []string{"expired", "truncated", "recreated", "too-far", "unknown"}
	replaySources = []string{"log", "kafka"}
)
