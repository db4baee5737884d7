package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenario is the kind of a measurement.
type Scenario string

// The scenarios.
const (
	Fanout Scenario = "fanout"
)

// Spec is what is measured. Fixed once a plan runs.
type Spec struct {
	Scenario   Scenario `json:"scenario"`
	Streams    int      `json:"streams"`
	Partitions int      `json:"partitions"`
	Rate       float64  `json:"rate"` // records a second, all partitions and users together
	Size       int      `json:"size"` // bytes of a record's value
	Warm       Duration `json:"warm"` // with records coming, before measuring
	For        Duration `json:"for"`  // how long to measure
	Sample     int      `json:"sample"`
}

// Users is how many users the records are for, one after the other; 0: every
// record is for everyone.
func (s *Spec) Users() int64 { return 0 }

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

// scenario is what the harness knows of a scenario.
type scenario struct {
	name  Scenario
	about string // one line, for help
	spec  Spec   // the defaults
	run   func(*run) error
}

// scenarios, in the order of help.
func scenarios() []scenario {
	return []scenario{
		{
			Fanout, "every record goes to every stream at a fixed rate",
			Spec{Streams: 10_000, Rate: 8, Size: 200, Warm: seconds(2), For: seconds(10), Sample: 100},
			(*run).fanout,
		},
	}
}

func seconds(n int) Duration { return Duration(time.Duration(n) * time.Second) }

// About lists the scenarios with a line each.
func About() string {
	var b strings.Builder
	for _, sc := range scenarios() {
		fmt.Fprintf(&b, "  %-9s %s\n", sc.name, sc.about)
	}
	return b.String()
}

// Default is the specification of a scenario where nothing else is said, with
// one partition.
func Default(name string) (Spec, error) {
	all := scenarios()
	i := slices.IndexFunc(all, func(sc scenario) bool { return string(sc.name) == name })
	if i < 0 {
		return Spec{}, fmt.Errorf("unknown scenario %q", name)
	}
	s := all[i].spec
	s.Scenario, s.Partitions = all[i].name, 1
	return s, nil
}

// Bounds of a specification. They are far beyond what one machine takes, and
// keep the sums of the harness in range.
const (
	streamsMax    = 1_000_000
	partitionsMax = 1000 // per topic; an event id of more is no use to a browser
	rateMax       = 10_000_000
	sizeMax       = 1 << 20 // the largest record that brokers take by default
)

// Check reports the first thing that makes no sense, by the name of its flag.
func (s *Spec) Check() error {
	for _, b := range []struct {
		flag        string
		v, min, max float64
	}{
		{"streams", float64(s.Streams), 1, streamsMax},
		{"partitions", float64(s.Partitions), 1, partitionsMax},
		{"rate", s.Rate, 0.1, rateMax},
		{"size", float64(s.Size), 64, sizeMax},
		{"for", s.For.Seconds(), 0.01, 24 * 3600},
		{"warm", s.Warm.Seconds(), 0, 3600},
		{"sample", float64(s.Sample), 1, streamsMax},
	} {
		if b.v < b.min || b.v > b.max {
			return fmt.Errorf("--%s: %v is outside %v to %v", b.flag, b.v, b.min, b.max)
		}
	}
	return nil
}

// lookUp is the scenario of a name that is known.
func lookUp(name Scenario) *scenario {
	all := scenarios()
	return &all[slices.IndexFunc(all, func(sc scenario) bool { return sc.name == name })]
}
