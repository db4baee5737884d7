package harness

import (
	"fmt"
	"time"
)

const (
	// stepBy is how much faster each step of saturate is than the one before.
	stepBy = 1.25
	// keptUp is the share of the events that must come within the measured
	// time; less, and the server falls behind.
	keptUp = 0.97
)

// Step is what a rate gave.
type Step struct {
	Rate         float64 `json:"rate"` // records a second
	EventsPerSec float64 `json:"events_per_s"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	CPUPerEvent  float64 `json:"cpu_us_per_event"`
	ServerShare  float64 `json:"server_cpu_share"`
	LoadBusy     float64 `json:"load_cpu_busy"`
	Broke        string  `json:"broke,omitempty"` // why the rate does not hold
}

// saturate raises the rate until it does not hold. The figures of the run are
// those of the last rate that did.
func (r *run) saturate() error {
	if err := r.open(r.config()); err != nil {
		return err
	}
	r.out.Figures.set("rate_max", 0)
	best := *r.out
	rate := r.setup.Rate
	for range r.setup.Steps {
		began := len(r.out.Invalid)
		if err := r.stream(rate); err != nil {
			return err
		}
		step := r.step(rate)
		r.out.Steps = append(r.out.Steps, step)
		r.say(Progress{Doing: fmt.Sprintf("%.0f records a second: %.0f events a second, p99 %.0f ms", rate, step.EventsPerSec, step.P99)})
		if step.Broke != "" {
			break
		}
		best = *r.out
		best.Invalid = r.out.Invalid[began:]
		best.Figures.set("rate_max", rate)
		rate *= stepBy
	}
	steps, faults, text := r.out.Steps, r.out.Faults, r.out.FaultText
	*r.out = best
	r.out.Steps, r.out.Faults, r.out.FaultText = steps, faults, text
	return nil
}

// step says what the rate gave that was just measured.
func (r *run) step(rate float64) Step {
	w, l := &r.out.Window, &r.out.Load
	s := Step{
		Rate: rate, EventsPerSec: w.EventsPerSec, P50: w.LatencyMS.P50, P99: w.LatencyMS.P99,
		CPUPerEvent: perEvent(l, w), ServerShare: l.ServerShare, LoadBusy: l.LoadBusy,
	}
	gone := r.client.Gone()
	switch want := rate * float64(r.setup.Streams); {
	case gone > 0:
		s.Broke = fmt.Sprintf("%d streams were dropped", gone)
	case s.P99 > float64(r.setup.P99)/float64(time.Millisecond):
		s.Broke = fmt.Sprintf("p99 %.0f ms", s.P99)
	case s.EventsPerSec < keptUp*want:
		s.Broke = fmt.Sprintf("%.0f of %.0f events a second", s.EventsPerSec, want)
	case r.out.Faults > 0:
		s.Broke = "faults"
	}
	return s
}
