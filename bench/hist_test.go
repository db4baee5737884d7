package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(rng.Int64N(1 << rng.IntN(40)))
		all = append(all, d)
		h.record(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.001, .25, .5, .9, .99, .999, 1} {
		want := all[max(0, int(q*float64(len(all))+0.5)-1)]
		if got := h.quantile(q); got < want || got > want+want/128+1 {
			t.Errorf("quantile %v: got %d, want %d and at most 0.8 %% more", q, got, want)
		}
	}
	h.record(-5)
	if s := h.summary(); s.Negative != 1 || s.Samples != 20_001 || h.max != all[len(all)-1] {
		t.Errorf("after a negative one: %+v", s)
	}
	h.record(1<<63 - 1) // the last bucket
	if empty := new(histogram); empty.quantile(.5) != 0 {
		t.Errorf("quantile of nothing: %v", empty.quantile(.5))
	}
}
