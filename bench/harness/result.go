package harness

import (
	"fmt"
	"os"
	"slices"
	"time"

	"tailcast/bench"
)

// Schema names the form of a Result in JSON. A field may be added under the
// same name; one that changes its meaning makes a new one.
const Schema = "tailcast-bench/1"

// Result is what a plan has measured.
type Result struct {
	Schema  string    `json:"schema"`
	Began   time.Time `json:"began"`
	Command []string  `json:"command"`
	Machine Machine   `json:"machine"`
	Spec    Spec      `json:"spec"`
	// Summaries are in the order of the targets.
	Summaries []Summary `json:"summaries"`
	// FloorRatio is CPU per event of the first target to that of the floor.
	FloorRatio *Spread `json:"floor_ratio,omitempty"`
	// Ratios are those of the first target to each other one, run by run.
	Ratios []Ratio `json:"ratios,omitempty"`
	// Invalid says why the figures are not to be trusted.
	Invalid []string `json:"invalid,omitempty"`
	Runs    []Run    `json:"runs"`
}

// Summary is what the runs of a target come to.
type Summary struct {
	Target  string            `json:"target"`
	Version string            `json:"version,omitempty"`
	Runs    int               `json:"runs"`
	Faults  int64             `json:"faults"`
	Figures map[string]Spread `json:"figures"`
}

// Spread is the median of some runs, and how far they go.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Ratio is how the first target's figure relates to another's: the spread of
// the ratios of runs that followed each other.
type Ratio struct {
	To     string `json:"to"`
	Figure string `json:"figure"`
	Spread
}

// Run is one measurement of one target.
type Run struct {
	Target  string    `json:"target"`
	Version string    `json:"version,omitempty"`
	Number  int       `json:"number"` // from 1
	Rate    float64   `json:"rate"`   // asked for, records a second
	Began   time.Time `json:"began"`
	Figures Values    `json:"figures"`
	// Faults are broken promises of the server, Invalid what makes the figures
	// not to be trusted.
	Faults    int64           `json:"faults"`
	FaultText []string        `json:"fault_text,omitempty"` // the first ones
	Invalid   []string        `json:"invalid,omitempty"`
	Published bench.Published `json:"published"`
	Counts    bench.Counts    `json:"counts"`
	Steps     []Step          `json:"steps,omitempty"`   // of saturate
	Attacks   []Attack        `json:"attacks,omitempty"` // of hostile
	Window    bench.Window    `json:"window"`
	OpeningMS bench.Latency   `json:"opening_ms"`
	Load      Load            `json:"load"`
	Slices    []Slice         `json:"server_slices,omitempty"`
	Before    State           `json:"before"` // the first stream
	Idle      State           `json:"idle"`   // streams open and settled
	End       State           `json:"end"`    // of measuring
}

// Values are figures by name; see Figures.
type Values map[string]float64

func (v *Values) set(name string, x float64) {
	if *v == nil {
		*v = Values{}
	}
	(*v)[name] = x
}

// fault notes a broken promise.
func (r *Run) fault(format string, args ...any) {
	r.Faults++
	r.FaultText = append(r.FaultText, fmt.Sprintf(format, args...))
}

func (r *Run) invalid(format string, args ...any) {
	r.Invalid = append(r.Invalid, fmt.Sprintf(format, args...))
}

// published adds what came of an order.
func (r *Run) published(p bench.Published) {
	sum := &r.Published
	sum.Sent += p.Sent
	sum.Failed += p.Failed
	sum.Seconds += p.Seconds
	sum.Partitions = p.Partitions // they count from the start
	sum.BehindMS = max(sum.BehindMS, p.BehindMS)
}

// late says that latencies are not to be trusted if records were late.
func (r *Run) late(p bench.Published) {
	if p.BehindMS > behindMaxMS {
		r.invalid("a record was published %.0f ms late", p.BehindMS)
	}
}

// take takes what the client has seen.
func (r *Run) take(res *bench.Result) {
	r.Counts, r.OpeningMS = res.Counts, res.OpeningMS
	r.FaultText = append(r.FaultText, res.Faults...)
	f, w := &r.Figures, &r.Window
	f.set("opens_per_s", res.OpensPerSec)
	f.set("open_p99_ms", res.OpeningMS.P99)
	if n := float64(res.Conns); r.Idle.RSS > 0 {
		f.set("rss_per_stream", float64(r.Idle.RSS-r.Before.RSS)/n)
		f.set("kernel_per_stream", float64(r.Idle.KernelTCP-r.Before.KernelTCP)/n)
		if r.Idle.Heap > 0 {
			f.set("heap_per_stream", (r.Idle.Heap-r.Before.Heap)/n)
		}
	}
	if r.Load.ServerCPU > 0 {
		f.set("server_cpu", r.Load.ServerShare)
	}
	if r.End.RSS > 0 {
		f.set("rss_mb", float64(r.End.RSS)/1e6)
	}
	if w.Events == 0 {
		return
	}
	f.set("events_per_s", w.EventsPerSec)
	f.set("bytes_per_event", w.BytesPerEvent)
	if r.Load.ServerCPU > 0 {
		f.set("cpu_us_per_event", perEvent(&r.Load, w))
	}
	if w.LatencyMS.Samples == 0 {
		return
	}
	f.set("p50_ms", w.LatencyMS.P50)
	f.set("p99_ms", w.LatencyMS.P99)
	f.set("p999_ms", w.LatencyMS.P999)
	f.set("max_ms", w.LatencyMS.Max)
}

// perEvent is the server's CPU time for an event that reached a client, in
// microseconds.
func perEvent(l *Load, w *bench.Window) float64 { return l.ServerCPU * 1e6 / float64(w.Events) }

// Limits beyond which figures are not to be trusted.
const (
	// busyMax is how busy the load's processors may be before the clients, the
	// broker or the publisher are taken for the limit.
	busyMax = 0.97
	// behindMax is how late a record may be published. Its latency counts from
	// when it was due, so more than this is not the server's.
	behindMaxMS = 100
)

// judge counts the faults by what the target promises.
func (r *Run) judge(n *bench.Counts, c *Checks) {
	r.Faults += n.Malformed + n.Refused + n.Foreign + n.ConnectFails
	if c.Records {
		r.Faults += n.Unreadable
	}
	if c.Exact {
		r.Faults += n.Gaps + n.Duplicates + n.Reordered + n.KeyFaults()
	}
	if c.IDs {
		r.Faults += n.BadIDs + n.Resyncs
	}
}

// suspect says what of the measured part is not to be trusted.
func (r *Run) suspect(s *Setup) {
	if r.Load.LoadBusy > busyMax {
		r.invalid("the load's processors were %.0f %% busy: clients, broker or publisher may have been the limit", 100*r.Load.LoadBusy)
	} else if s.LoadCPU == "" && r.Window.ClientCPU > busyMax {
		r.invalid("the client's thread was %.0f %% busy", 100*r.Window.ClientCPU)
	}
}

func newResult(p *Plan) *Result {
	return &Result{Schema: Schema, Began: time.Now().UTC().Truncate(time.Second), Command: os.Args, Machine: readMachine(), Spec: p.Spec}
}

// SumUp makes the summaries of the runs, and their ratios.
func (res *Result) SumUp() {
	res.Summaries, res.FloorRatio, res.Ratios, res.Invalid = nil, nil, nil, nil
	byTarget := map[string][]*Run{}
	var names []string
	for i := range res.Runs {
		r := &res.Runs[i]
		if _, ok := byTarget[r.Target]; !ok {
			names = append(names, r.Target)
		}
		byTarget[r.Target] = append(byTarget[r.Target], r)
		for _, why := range r.Invalid {
			res.Invalid = append(res.Invalid, fmt.Sprintf("%s, run %d: %s", r.Target, r.Number, why))
		}
	}
	for _, name := range names {
		res.Summaries = append(res.Summaries, summarize(name, byTarget[name]))
	}
	for _, name := range names[1:] {
		res.compare(byTarget[names[0]], name, byTarget[name])
	}
}

func summarize(name string, runs []*Run) Summary {
	s := Summary{Target: name, Version: runs[0].Version, Runs: len(runs), Figures: map[string]Spread{}}
	values := map[string][]float64{}
	for _, r := range runs {
		s.Faults += r.Faults
		for name, v := range r.Figures {
			values[name] = append(values[name], v)
		}
	}
	for name, v := range values {
		s.Figures[name] = spread(v)
	}
	return s
}

// compare makes the ratios of the first target's runs to another's.
func (res *Result) compare(first []*Run, to string, other []*Run) {
	for _, f := range Figures {
		if !f.Ratio {
			continue
		}
		var all []float64
		for i := range min(len(first), len(other)) {
			a, okA := first[i].Figures[f.Name]
			b, okB := other[i].Figures[f.Name]
			if okA && okB && b != 0 {
				all = append(all, a/b)
			}
		}
		if len(all) == 0 {
			continue
		}
		res.Ratios = append(res.Ratios, Ratio{to, f.Name, spread(all)})
		if to == FloorName && f.Name == "cpu_us_per_event" {
			sp := spread(all)
			res.FloorRatio = &sp
		}
	}
}

// spread is the median, and the least and the largest of v, which is not empty.
func spread(v []float64) Spread {
	v = slices.Sorted(slices.Values(v))
	mid := len(v) / 2
	s := Spread{Median: v[mid], Min: v[0], Max: v[len(v)-1]}
	if len(v)%2 == 0 {
		s.Median = (v[mid-1] + v[mid]) / 2
	}
	return s
}
