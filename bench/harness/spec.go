package harness

import (
	"errors"
	"fmt"
	"time"

	"tailcast/bench"
)

// Spec is what is measured. Fixed once a plan runs.
type Spec struct {
	Scenario   Scenario `json:"scenario"`
	Streams    int      `json:"streams,omitempty"`
	Partitions int      `json:"partitions"`
	Rate       float64  `json:"rate,omitempty"` // records a second, all partitions and users together
	Size       int      `json:"size"`           // bytes of a record's value
	Settle     Duration `json:"settle"`         // quiet time before the figures of idle streams are taken
	Warm       Duration `json:"warm"`           // with records coming, before measuring
	For        Duration `json:"for"`            // how long to measure
	Sample     int      `json:"sample"`         // the latency is taken of one of so many streams
	Opening    int      `json:"opening"`        // streams that wait for their response head at a time

	P99     Duration `json:"p99,omitempty"`     // saturate: the latency that must hold
	Steps   int      `json:"steps,omitempty"`   // saturate: rates to try at most, each a quarter faster
	Behind  int      `json:"behind,omitempty"`  // storm: records published while the streams are away
	Stalled int      `json:"stalled,omitempty"` // slow: streams, of all, that stop to read
	Records int64    `json:"records,omitempty"` // ingest: records to read
	Keys    int64    `json:"keys,omitempty"`    // snapshot: keys of the compacted topic
	Codec   string   `json:"codec"`             // compression of the records
	Churn   Duration `json:"churn,omitempty"`   // soak: how long a stream stays, on average

	Attackers int      `json:"attackers,omitempty"` // hostile: those that attack at a time
	Attack    []string `json:"attack,omitempty"`    // hostile: the attacks to make; none: all

	TLS    string `json:"tls,omitempty"`        // the version that streams speak, TLS12 or TLS13, or none
	Resume bool   `json:"tls_resume,omitempty"` // streams take up the session of an earlier one
}

// Users is how many users the records are for, one after the other; 0: every
// record is for everyone.
func (s *Spec) Users() int64 {
	if s.Scenario == Keyed || s.Scenario == Feeds {
		return int64(s.Streams)
	}
	return 0
}

// backlog is how many records are published before the server is started.
func (s *Spec) backlog() int64 {
	switch s.Scenario {
	case Ingest:
		return s.Records
	case Snapshot:
		return s.Keys
	default:
		return 0
	}
}

// Topics is how many topics there are: a user's own is the plan's topic, a hyphen
// and the user's number. 0: the plan's topic alone.
func (s *Spec) Topics() int64 {
	if s.Scenario == Feeds {
		return s.Users()
	}
	return 0
}

// Bounds of a specification. They are far beyond what one machine takes, and
// keep the sums of the harness in range.
const (
	streamsMax    = 1_000_000
	partitionsMax = 1000 // per topic; an event id of more is no use to a browser
	rateMax       = 10_000_000
	sizeMax       = 1 << 20 // the largest record that brokers take by default
	recordsMax    = 1_000_000_000
	// attackersMax leaves those that hold connections below the usual limit of
	// open files, 20,000 and more.
	attackersMax = 2000
	// openingMax is below the backlog of a listener where net.core.somaxconn is
	// its default.
	openingMax = 4000
	day        = 24 * 3600
)

// Check reports the first thing that makes no sense, by the name of its flag.
func (s *Spec) Check() error {
	used := map[string]bool{}
	for _, name := range lookUp(s.Scenario).flags {
		used[name] = true
	}
	switch {
	case s.TLS != "" && s.TLS != TLS12 && s.TLS != TLS13:
		return fmt.Errorf("--tls: %q is neither %s nor %s", s.TLS, TLS12, TLS13)
	case s.Resume && s.TLS == "":
		return errors.New("--tls-resume: needs --tls")
	}
	for _, b := range []struct {
		flag        string
		v, min, max float64
	}{
		{"streams", float64(s.Streams), 1, streamsMax},
		{"partitions", float64(s.Partitions), 1, partitionsMax},
		{"rate", s.Rate, 0.1, rateMax},
		{"size", float64(s.Size), 64, sizeMax},
		{"settle", s.Settle.Seconds(), 0, day},
		{"warm", s.Warm.Seconds(), 0, day},
		{"for", s.For.Seconds(), 0.01, day},
		{"sample", float64(s.Sample), 1, streamsMax},
		{"opening", float64(s.Opening), 1, openingMax},
		{"p99", s.P99.Seconds(), 0.001, 60},
		{"steps", float64(s.Steps), 1, 100},
		{"behind", float64(s.Behind), 1, recordsMax},
		{"stalled", float64(s.Stalled), 1, float64(s.Streams - 1)},
		{"records", float64(s.Records), 1, recordsMax},
		{"keys", float64(s.Keys), 1, recordsMax},
		{"churn", s.Churn.Seconds(), 0.01, day},
		{"attackers", float64(s.Attackers), 1, attackersMax},
	} {
		if used[b.flag] && (b.v < b.min || b.v > b.max) {
			return fmt.Errorf("--%s: %v is outside %v to %v", b.flag, b.v, b.min, b.max)
		}
	}
	if used["keys"] && s.Keys > bench.KeyStatesMax/int64(s.Streams) {
		return fmt.Errorf("--keys: %d of %d streams are more than the %d together that are compared", s.Keys, s.Streams, bench.KeyStatesMax)
	}
	_, err := s.attacks()
	return err
}

// Duration is a duration that JSON holds as text: "1m30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Seconds is d in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }
