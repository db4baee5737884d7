package bench

import (
	"math/bits"
	"time"
)

// subBits sets a histogram's resolution: buckets of equal width between two
// powers of two are 2^subBits, so a quantile is at most 0.8 % too high.
const subBits = 7

// histogram counts durations in log-linear buckets, as HDR histograms do: 58 KB
// whatever it holds, and recording allocates nothing.
type histogram struct {
	count    int64
	negative int64 // recorded as zero
	max      time.Duration
	buckets  [(64 - subBits) << subBits]int64
}

func (h *histogram) record(d time.Duration) {
	if d < 0 {
		h.negative++
		d = 0
	}
	h.count++
	h.max = max(h.max, d)
	h.buckets[bucket(uint64(d))]++
}

func bucket(v uint64) int {
	shift := max(0, bits.Len64(v)-subBits-1)
	return shift<<subBits + int(v>>shift)
}

// highest is the largest value of bucket i.
func highest(i int) time.Duration {
	shift := max(0, i>>subBits-1)
	return time.Duration((uint64(i-shift<<subBits)+1)<<shift - 1)
}

// quantile returns a value that the share q of all recorded ones doesn't
// exceed; zero without any.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(1, int64(q*float64(h.count)+0.5))
	for i, n := range h.buckets {
		if rank -= n; rank <= 0 {
			return min(highest(i), h.max)
		}
	}
	return h.max
}

// add adds what o holds.
func (h *histogram) add(o *histogram) {
	h.count += o.count
	h.negative += o.negative
	h.max = max(h.max, o.max)
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

// percentiles are the places of a histogram's curve that a Curve has.
var percentiles = []float64{0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100}

// Point is a place of a latency curve.
type Point struct {
	Percent float64 `json:"percent"` // so many do not exceed
	MS      float64 `json:"ms"`
}

// curve is the histogram's shape, empty without values.
func (h *histogram) curve() (all []Point) {
	if h.count == 0 {
		return nil
	}
	for _, p := range percentiles {
		all = append(all, Point{p, milliseconds(h.quantile(p / 100))})
	}
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Latency is a histogram's summary, in milliseconds.
type Latency struct {
	Samples  int64   `json:"samples"`
	Negative int64   `json:"negative,omitempty"` // the record seemed to come from the future
	P50      float64 `json:"p50"`
	P90      float64 `json:"p90"`
	P99      float64 `json:"p99"`
	P999     float64 `json:"p999"`
	Max      float64 `json:"max"`
}

func (h *histogram) summary() Latency {
	return Latency{
		Samples: h.count, Negative: h.negative,
		P50: milliseconds(h.quantile(.5)), P90: milliseconds(h.quantile(.9)),
		P99: milliseconds(h.quantile(.99)), P999: milliseconds(h.quantile(.999)), Max: milliseconds(h.max),
	}
}
