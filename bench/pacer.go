package bench

import "time"

// Pacer says when things of an open loop are due: at a fixed rate from its
// start, whether or not earlier ones are done. Late ones keep their due time,
// so that a latency counted from it includes the wait (no coordinated
// omission).
type Pacer struct {
	start  time.Time
	rate   float64 // a second
	n      int64   // taken
	behind time.Duration
}

// NewPacer returns a pacer whose first thing is due now. REQUIRES: rate > 0.
func NewPacer(rate float64) *Pacer {
	return &Pacer{start: time.Now(), rate: rate}
}

// Due returns when the next thing is due, without taking it.
func (p *Pacer) Due() time.Time {
	return p.start.Add(time.Duration(float64(p.n) / p.rate * float64(time.Second)))
}

// Wait sleeps until the next thing is due, takes it and returns its due time.
func (p *Pacer) Wait() time.Time {
	due := p.Due()
	sleepUntil(due)
	p.n++
	p.behind = max(p.behind, time.Since(due))
	return due
}

// Behind is how late the latest thing was taken: well above a millisecond, the
// machine or the caller could not keep the rate.
func (p *Pacer) Behind() time.Duration { return p.behind }
