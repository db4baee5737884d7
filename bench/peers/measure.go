package main

import (
	"context"
	"fmt"
	"time"

	"tailcast/bench/harness"
)

// measurement is one of the comparisons.
type measurement struct {
	name  string
	title string
	spec  harness.Spec
	// best measures peers at the highest rate that each sustains, instead of
	// the specification's.
	best bool
	// columns are the figures of the table.
	columns []string
}

// measurements, in the order of the tables, each measured for so many seconds.
func measurements(sec int) []measurement {
	spec := func(sc harness.Scenario, rate float64) harness.Spec {
		s, err := harness.Default(string(sc))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		s.Rate, s.For = rate, harness.Duration(time.Duration(sec)*time.Second)
		return s
	}
	idle := spec(harness.Idle, 1)
	idle.Warm, idle.For = 0, harness.Duration(time.Second) // the figures are taken before
	return []measurement{
		{
			"fanout", "10,000 streams, 8 records a second of 200 B", spec(harness.Fanout, 8), false,
			[]string{"cpu_us_per_event", "server_cpu", "events_per_s", "p50_ms", "p99_ms", "bytes_per_event"},
		},
		{
			"best", "10,000 streams, tailcast and the floor at 100 records a second, peers at their best rate", spec(harness.Fanout, 100), true,
			[]string{"events_per_s", "cpu_us_per_event", "server_cpu", "p50_ms", "p99_ms"},
		},
		{
			"latency", "1,000 streams, 10 records a second", spec(harness.Latency, 10), false,
			[]string{"p50_ms", "p99_ms", "max_ms", "cpu_us_per_event"},
		},
		{
			"idle", "15,000 idle streams", idle, false,
			[]string{"rss_per_stream", "kernel_per_stream", "opens_per_s", "connect_cpu_us"},
		},
	}
}

// runTime is about how long one run takes: starting, opening, settling, ending.
func (m *measurement) runTime() time.Duration {
	const starts, ends = 2 * time.Second, time.Second
	const opensPerSec = 5000
	opens := time.Duration(m.spec.Streams) * time.Second / opensPerSec
	return starts + opens + time.Duration(m.spec.Settle) + time.Duration(m.spec.Warm) + time.Duration(m.spec.For) + ends
}

// What makes a rate sustained: at least keptShare of what was published reaches
// the streams meanwhile, and nothing waits for longer than keptMS, so no queue
// grows.
const (
	keptShare = 0.95
	keptMS    = 1000
)

// rates are those tried for the best one, each about a fifth above the one
// before.
var rates = []float64{0.5, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 40, 48, 58, 70, 85, 100, 120, 145, 175}

// firstTry is the index of the rate that is tried first, 8: near what servers
// reach that write to each stream for each event.
const firstTry = 8

// attempts is how often a rate is tried before it is taken for too high: what
// else the machine does must not make a peer look worse.
const attempts = 2

// tries is about how many runs it takes to find the best rate.
const tries = 3 + attempts

// best finds the highest rate that the plan's only target sustains.
func best(ctx context.Context, p harness.Plan, say func(string, ...any)) (float64, error) {
	t := &p.Targets[0]
	rate, ok, err := highest(func(rate float64) (ok bool, err error) {
		t.Rate = rate
		for n := 0; n < attempts && !ok; n++ {
			res, err := p.Run(ctx)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			ok = err == nil && kept(&res.Runs[0], p.Spec.Streams)
			say("%s at %v records a second: sustained %t %s", t.Name, rate, ok, outcome(res, err))
		}
		return ok, nil
	})
	if err == nil && !ok {
		err = fmt.Errorf("%s does not sustain even %v records a second", t.Name, rates[0])
	}
	return rate, err
}

// highest finds the highest of the rates that is sustained, step by step from
// the first tried. ok is false when not even the lowest is.
func highest(sustains func(rate float64) (bool, error)) (rate float64, ok bool, err error) {
	at := firstTry
	if ok, err = sustains(rates[at]); err != nil {
		return 0, false, err
	}
	if !ok {
		for at--; at >= 0; at-- {
			if ok, err = sustains(rates[at]); ok || err != nil {
				return rates[at], ok, err
			}
		}
		return 0, false, nil
	}
	for ; at+1 < len(rates); at++ {
		if ok, err = sustains(rates[at+1]); !ok || err != nil {
			break
		}
	}
	return rates[at], true, err
}

// kept reports whether the server kept the rate in a run.
func kept(r *harness.Run, streams int) bool {
	n := &r.Counts
	return r.Window.EventsPerSec >= keptShare*r.Rate*float64(streams) && r.Window.LatencyMS.P99 <= keptMS &&
		n.Gaps == 0 && n.EndedClean+n.EndedEOF+n.EndedReset == 0
}

// outcome is what a run of one target gave, in a few words.
func outcome(res *harness.Result, err error) string {
	if err != nil {
		return "(" + err.Error() + ")"
	}
	w := &res.Runs[0].Window
	return fmt.Sprintf("(%.0f events/s, p99 %.0f ms)", w.EventsPerSec, w.LatencyMS.P99)
}
