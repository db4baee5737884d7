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
	cpu    time.Duration // of this process
	result Window
}

// Measure begins the measured part; latencies count from now on.
func (cl *Client) Measure() {
	cl.tally.latency = histogram{}
	cl.tally.measuring = true
	cl.window = window{began: time.Now(), events: cl.tally.counts.Events, bytes: cl.tally.counts.Bytes, cpu: ownCPU()}
}

// Measured ends the measured part.
func (cl *Client) Measured() {
	cl.tally.measuring = false
	w := &cl.window
	d := time.Since(w.began)
	events, bytes := cl.tally.counts.Events-w.events, cl.tally.counts.Bytes-w.bytes
	w.result = Window{
		Seconds: d.Seconds(),
		Events:  events, EventsPerSec: perSecond(events, d),
		Bytes: bytes, MBPerSec: perSecond(bytes, d) / 1e6,
		BytesPerEvent: share(float64(bytes), float64(events)),
		ClientCPU:     share((ownCPU() - w.cpu).Seconds(), d.Seconds()),
		LatencyMS:     cl.tally.latency.summary(),
	}
}

func ownCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Result sums up what the streams have seen so far.
func (cl *Client) Result() Result {
	return Result{
		Conns:       len(cl.conns),
		OpenSeconds: cl.openFor.Seconds(),
		OpensPerSec: perSecond(int64(len(cl.conns)), cl.openFor),
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
