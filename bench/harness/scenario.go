package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenario is the kind of a measurement.
type Scenario string

// The scenarios.
const (
	Connect  Scenario = "connect"
	Idle     Scenario = "idle"
	Fanout   Scenario = "fanout"
	Saturate Scenario = "saturate"
	Keyed    Scenario = "keyed"
	Feeds    Scenario = "feeds"
	Storm    Scenario = "storm"
	Slow     Scenario = "slow"
	Ingest   Scenario = "ingest"
	Latency  Scenario = "latency"
	Soak     Scenario = "soak"
	Snapshot Scenario = "snapshot"
	Hostile  Scenario = "hostile"
)

// scenario is what the harness knows of a scenario.
type scenario struct {
	name  Scenario
	about string   // one line, for help
	spec  Spec     // the defaults, besides those of base
	flags []string // the settings that matter, besides those of everyone
	floor bool     // whether the floor tells something
	run   func(*run) error
}

// base is what scenarios say nothing else of.
var base = Spec{
	Streams: 10_000, Partitions: 1, Rate: 8, Size: 200, Codec: "none", Sample: 100, Opening: 256,
	Settle: seconds(1), Warm: seconds(2), For: seconds(10),
}

// everyone are the settings of every scenario, clients those of one with
// streams, paced those of one with records at a rate, and streaming both.
var (
	everyone  = []string{"partitions", "size", "codec"}
	clients   = []string{"streams", "opening", "tls", "tls-resume"}
	paced     = []string{"rate", "settle", "warm", "for", "sample"}
	streaming = slices.Concat(clients, paced)
)

// scenarios, in the order of help.
func scenarios() []scenario {
	return []scenario{
		{
			Connect, "open streams as fast as they are taken",
			Spec{Streams: 15_000},
			clients,
			true, (*run).connect,
		},
		{
			Idle, "hold silent streams: memory",
			Spec{Streams: 15_000, Settle: seconds(5)},
			append([]string{"settle", "for"}, clients...),
			false, (*run).idle,
		},
		{
			Fanout, "every record goes to every stream, at a fixed rate",
			Spec{},
			streaming, true, (*run).fanout,
		},
		{
			Saturate, "raise the rate of fanout until the latency or a stream breaks",
			Spec{Rate: 20, For: seconds(5), P99: Duration(150 * time.Millisecond), Steps: 30},
			append([]string{"p99", "steps"}, streaming...), true, (*run).saturate,
		},
		{
			Keyed, "every record is for one stream, which asks for the records of its user",
			Spec{Rate: 20_000, Sample: 10},
			streaming, true, (*run).fanout,
		},
		{
			Feeds, "every stream is of a topic of its own, and every record for one of them",
			Spec{Streams: 1000, Rate: 1000, Sample: 1, Settle: seconds(5), Warm: seconds(5), For: seconds(20)},
			streaming, true, (*run).fanout,
		},
		{
			Storm, "all streams come back at once, some records behind",
			Spec{Streams: 15_000, Behind: 100, Opening: 2000},
			append([]string{"behind", "settle"}, clients...),
			false, (*run).storm,
		},
		{
			Slow, "some streams stop to read: what the others notice",
			Spec{Rate: 20, Stalled: 100, Sample: 10},
			append([]string{"stalled"}, streaming...), false, (*run).slow,
		},
		{
			Ingest, "read a backlog from Kafka, encode it and append it, for nobody",
			Spec{Records: 3_000_000},
			[]string{"records"},
			false, (*run).ingest,
		},
		{
			Latency, "fanout with few streams, the latency of each",
			Spec{Streams: 1000, Rate: 10, Sample: 1},
			streaming, true, (*run).fanout,
		},
		{
			Soak, "fanout for a long time, with streams that come and go",
			Spec{Rate: 8, For: seconds(20 * 60), Churn: seconds(60)},
			append([]string{"churn"}, streaming...), false, (*run).soak,
		},
		{
			Snapshot, "all streams come at once for the latest record of each key, half cut off in the middle",
			Spec{Streams: 1000, Keys: 100_000, Rate: 100, Opening: 2000},
			append([]string{"keys", "rate"}, clients...),
			false, (*run).snapshot,
		},
		{
			Hostile, "attack the server in many ways: what honest streams notice",
			Spec{Streams: 1000, Rate: 64, For: seconds(8), Warm: seconds(1), Sample: 10, Attackers: 200},
			append([]string{"attackers", "attack", "streams", "opening"}, paced...), false, (*run).hostile,
		},
	}
}

func seconds(n int) Duration { return Duration(time.Duration(n) * time.Second) }

// lookUp is the scenario of a name that is known.
func lookUp(name Scenario) *scenario {
	all := scenarios()
	i := slices.IndexFunc(all, func(sc scenario) bool { return sc.name == name })
	sc := &all[i]
	sc.flags = append(slices.Clone(everyone), sc.flags...)
	return sc
}

// About lists the scenarios with a line each.
func About() string {
	var b strings.Builder
	for _, sc := range scenarios() {
		fmt.Fprintf(&b, "  %-9s %s\n", sc.name, sc.about)
	}
	return b.String()
}

// Default is the specification of a scenario where nothing else is said.
func Default(name string) (Spec, error) {
	if !slices.ContainsFunc(scenarios(), func(sc scenario) bool { return string(sc.name) == name }) {
		var names []string
		for _, sc := range scenarios() {
			names = append(names, string(sc.name))
		}
		return Spec{}, fmt.Errorf("unknown scenario (want one of %s)", strings.Join(names, ", "))
	}
	s, d := base, lookUp(Scenario(name)).spec
	s.Scenario = Scenario(name)
	s.Streams = cmp.Or(d.Streams, s.Streams)
	s.Rate = cmp.Or(d.Rate, s.Rate)
	s.Settle, s.Warm, s.For = cmp.Or(d.Settle, s.Settle), cmp.Or(d.Warm, s.Warm), cmp.Or(d.For, s.For)
	s.Sample, s.Opening = cmp.Or(d.Sample, s.Sample), cmp.Or(d.Opening, s.Opening)
	s.P99, s.Steps = d.P99, d.Steps
	s.Behind, s.Stalled, s.Records, s.Churn, s.Keys, s.Attackers = d.Behind, d.Stalled, d.Records, d.Churn, d.Keys, d.Attackers
	return s, nil
}

// Uses reports whether a setting, by the name of its flag, matters to the
// scenario.
func (name Scenario) Uses(flag string) bool { return slices.Contains(lookUp(name).flags, flag) }

// Floor reports whether the floor tells something beside the scenario.
func (name Scenario) Floor() bool { return lookUp(name).floor }
