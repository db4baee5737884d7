package bench

import "time"

// Counts is what a client has seen since it was made. The faults are those of
// a server that promises every record exactly once, in partition order.
type Counts struct {
	Events   int64 `json:"events"` // with data, the reserved names below apart
	Resyncs  int64 `json:"resyncs"`
	Skipped  int64 `json:"skipped"`
	Deletes  int64 `json:"deletes"`
	Live     int64 `json:"live"`
	Named    int64 `json:"named"` // of Events, those with another name
	Comments int64 `json:"comments"`
	IDBlocks int64 `json:"id_blocks"` // an id without data
	Bytes    int64 `json:"bytes"`

	Gaps       int64 `json:"gaps"`       // places where records are absent
	Missing    int64 `json:"missing"`    // records absent there
	Duplicates int64 `json:"duplicates"` // records that came again
	Reordered  int64 `json:"reordered"`  // records that came late
	Foreign    int64 `json:"foreign"`    // records that are for another user
	BadIDs     int64 `json:"bad_ids"`    // not of an id's form, absent, or not beyond the one before
	Unreadable int64 `json:"unreadable"` // data that is no payload
	Malformed  int64 `json:"malformed"`  // streams given up for broken framing
	Refused    int64 `json:"refused"`    // answers that make a browser give up: not 200, not text/event-stream

	// Of the keys of all streams; see Config.Keys.
	Stale   int64 `json:"stale,omitempty"`   // records that came after a later one of their key
	Wrong   int64 `json:"wrong,omitempty"`   // keys that a stream has another record of than the latest
	Lacking int64 `json:"lacking,omitempty"` // keys that it does not have
	Undead  int64 `json:"undead,omitempty"`  // keys that it has though they are deleted

	Handshakes   int64 `json:"handshakes"`    // of TLS, done
	Resumed      int64 `json:"resumed"`       // of these, by taking up a session
	Opened       int64 `json:"opened"`        // streams, reconnections included
	ConnectFails int64 `json:"connect_fails"` // no connection, or closed before the response head
	EndedClean   int64 `json:"ended_clean"`   // by the server, with the last chunk
	EndedEOF     int64 `json:"ended_eof"`     // by the server, with a FIN alone
	EndedReset   int64 `json:"ended_reset"`   // by a RST
	Cut          int64 `json:"cut"`           // by the client
}

// Faults is how many things a verified run must not show.
func (c *Counts) Faults() int64 {
	return c.Gaps + c.Duplicates + c.Reordered + c.Foreign + c.BadIDs + c.Unreadable + c.Malformed + c.Refused + c.KeyFaults()
}

// KeyFaults is how many keys of all streams are not as they should be.
func (c *Counts) KeyFaults() int64 { return c.Stale + c.Wrong + c.Lacking + c.Undead }

// Ended is how many streams the server ended.
func (c *Counts) Ended() int64 { return c.EndedClean + c.EndedEOF + c.EndedReset }

// Group sums up the streams of one behaviour.
type Group struct {
	Conns int `json:"conns"`
	Open  int `json:"open"` // now
	Gone  int `json:"gone"` // ended by the server, or never opened, and not coming back
	// Events a stream has got so far, named ones apart.
	EventsMin int64 `json:"events_min"`
	EventsMax int64 `json:"events_max"`
}

// Partition sums up what the streams have seen of one partition: every record
// was seen by all of them when both firsts are the first published, both lasts
// the last, and there is no fault.
type Partition struct {
	Partition int   `json:"partition"`
	Streams   int   `json:"streams"` // that have seen it
	FirstMin  int64 `json:"first_min"`
	FirstMax  int64 `json:"first_max"`
	LastMin   int64 `json:"last_min"`
	LastMax   int64 `json:"last_max"`
}

// Result is what a client has to say.
type Result struct {
	Conns       int            `json:"conns"`
	OpenSeconds float64        `json:"open_s"` // until every stream had its response head
	OpensPerSec float64        `json:"opens_per_s"`
	OpeningMS   Latency        `json:"opening_ms"`        // from connect(2) to the response head, reconnections included
	FirstMS     Latency        `json:"first_ms,omitzero"` // of streams with keys: from the first connect(2) to the first record
	LiveMS      Latency        `json:"live_ms,omitzero"`  // and to the event that they have caught up
	Seed        uint64         `json:"seed"`
	Counts      Counts         `json:"counts"` // since the start
	Groups      map[Kind]Group `json:"groups"`
	Partitions  []Partition    `json:"partitions,omitempty"`
	Statuses    map[int]int64  `json:"statuses"`         // response heads by status
	Faults      []string       `json:"faults,omitempty"` // the first ones

	Window Window `json:"window"`
}

// Window is the measured part of a run.
type Window struct {
	Seconds       float64 `json:"seconds"`
	Events        int64   `json:"events"`
	EventsPerSec  float64 `json:"events_per_s"`
	Bytes         int64   `json:"bytes"`
	MBPerSec      float64 `json:"mb_per_s"`
	BytesPerEvent float64 `json:"bytes_per_event"`
	ClientCPU     float64 `json:"client_cpu_share"` // of one core; near 1 the client is the limit
	// TurnMS is how long the client worked between two waits: what came
	// meanwhile was read, and so measured, that much late.
	TurnMS    Latency `json:"turn_ms"`
	LatencyMS Latency `json:"latency_ms"`
	Curve     []Point `json:"curve,omitempty"` // of the latencies
	Slices    []Slice `json:"slices,omitempty"`
}

// sliceEvery is how long a slice of the measured part is, and slicesMax bounds
// how many are kept: beyond an hour neighbours are told as one.
const (
	sliceEvery = 500 * time.Millisecond
	slicesMax  = 7200
)

// Slice is one piece of the measured part.
type Slice struct {
	At     float64 `json:"at_s"` // its end, since measuring began
	Events int64   `json:"events"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

func share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func perSecond(n int64, d time.Duration) float64 { return share(float64(n), d.Seconds()) }
