package bench

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// window is the measured part of a run, as it was when it began.
type window struct {
	began  time.Time
	events int64
	bytes  int64
	cpu    time.Duration // of this thread
	result Window

	every  time.Duration // how long a slice is
	cut    time.Duration // when the slice under way is to end, by the client's clock
	sliced int64         // events when it began
}

// Measure begins the measured part; latencies count from now on. The caller
// stays on its thread until Measured, whose CPU time is counted.
func (cl *Client) Measure() {
	cl.tally.latency, cl.tally.slice, cl.tally.turns = histogram{}, histogram{}, histogram{}
	cl.tally.measuring = true
	cl.window = window{
		began: time.Now(), events: cl.tally.counts.Events, bytes: cl.tally.counts.Bytes, cpu: threadCPU(),
		every: sliceEvery, cut: cl.now + sliceEvery, sliced: cl.tally.counts.Events,
	}
}

// endSlice ends the slice under way.
func (cl *Client) endSlice() {
	w, h := &cl.window, &cl.tally.slice
	if len(w.result.Slices) == slicesMax {
		w.halve()
	}
	w.result.Slices = append(w.result.Slices, Slice{
		At: time.Since(w.began).Seconds(), Events: cl.tally.counts.Events - w.sliced,
		P50: milliseconds(h.quantile(.5)), P99: milliseconds(h.quantile(.99)), Max: milliseconds(h.max),
	})
	cl.tally.latency.add(h)
	*h = histogram{}
	w.sliced = cl.tally.counts.Events
	w.cut = cl.now + w.every
}

// halve makes one slice of each two, with the worse latencies.
func (w *window) halve() {
	all := w.result.Slices
	for i := range len(all) / 2 {
		a, b := all[2*i], all[2*i+1]
		all[i] = Slice{b.At, a.Events + b.Events, max(a.P50, b.P50), max(a.P99, b.P99), max(a.Max, b.Max)}
	}
	w.result.Slices = all[:len(all)/2]
	w.every *= 2
}

// Measured ends the measured part.
func (cl *Client) Measured() {
	cl.tally.measuring = false
	cl.endSlice()
	w := &cl.window
	d := time.Since(w.began)
	events, bytes := cl.tally.counts.Events-w.events, cl.tally.counts.Bytes-w.bytes
	w.result = Window{
		Seconds: d.Seconds(),
		Events:  events, EventsPerSec: perSecond(events, d),
		Bytes: bytes, MBPerSec: perSecond(bytes, d) / 1e6,
		BytesPerEvent: share(float64(bytes), float64(events)),
		ClientCPU:     share((threadCPU() - w.cpu).Seconds(), d.Seconds()),
		TurnMS:        cl.tally.turns.summary(),
		LatencyMS:     cl.tally.latency.summary(),
		Curve:         cl.tally.latency.curve(),
		Slices:        w.result.Slices,
	}
}

func threadCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Window is the part measured last.
func (cl *Client) Window() Window { return cl.window.result }

// Result sums up what the streams have seen so far.
func (cl *Client) Result() Result {
	return Result{
		Conns:       len(cl.conns),
		OpenSeconds: cl.openFor.Seconds(),
		OpensPerSec: perSecond(int64(len(cl.conns)), cl.openFor),
		OpeningMS:   cl.tally.opening.summary(),
		FirstMS:     cl.tally.first.summary(),
		LiveMS:      cl.tally.live.summary(),
		Seed:        cl.cfg.Seed,
		Counts:      cl.tally.counts,
		Groups:      cl.groups(),
		Partitions:  cl.partitions(),
		Statuses:    cl.status,
		Faults:      cl.tally.faults,
		Window:      cl.window.result,
	}
}

func (cl *Client) groups() map[Kind]Group {
	all := map[Kind]Group{}
	for i := range cl.conns {
		c := &cl.conns[i]
		g, ok := all[c.kind]
		if !ok {
			g.EventsMin = math.MaxInt64
		}
		g.Conns++
		if c.state == open {
			g.Open++
		}
		if c.gone {
			g.Gone++
		}
		g.EventsMin = min(g.EventsMin, c.events)
		g.EventsMax = max(g.EventsMax, c.events)
		all[c.kind] = g
	}
	return all
}

// partitions sums up the streams that read all.
func (cl *Client) partitions() []Partition {
	var all []Partition
	for i := range cl.conns {
		c := &cl.conns[i]
		if !c.reads() {
			continue
		}
		for p, m := range c.marks {
			if p >= len(all) {
				all = append(all, Partition{Partition: p, FirstMin: math.MaxInt64, LastMin: math.MaxInt64})
			}
			if m.first == anySeq {
				continue
			}
			s := &all[p]
			s.Streams++
			s.FirstMin, s.FirstMax = min(s.FirstMin, m.first), max(s.FirstMax, m.first)
			s.LastMin, s.LastMax = min(s.LastMin, m.last), max(s.LastMax, m.last)
		}
	}
	return all
}
