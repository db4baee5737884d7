package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"tailcast/bench"
	"tailcast/bench/harness"
)

// plots makes every plot that the result has something for.
func plots(res *harness.Result) (all []plot) {
	shown := typical(res)
	for _, p := range []plot{
		steps(res, shown), curves(shown), overTime(shown), events(shown), busy(shown), memory(shown),
	} {
		if slices.ContainsFunc(p.lines, func(l line) bool { return len(l.points) > 1 }) {
			all = append(all, p)
		}
	}
	return all
}

// typical picks the run of each target that is in the middle by its p99.
func typical(res *harness.Result) (runs []*harness.Run) {
	for _, s := range res.Summaries {
		var of []*harness.Run
		for i := range res.Runs {
			if res.Runs[i].Target == s.Target {
				of = append(of, &res.Runs[i])
			}
		}
		slices.SortStableFunc(of, func(a, b *harness.Run) int {
			return int(math.Copysign(1, a.Figures["p99_ms"]-b.Figures["p99_ms"]))
		})
		runs = append(runs, of[(len(of)-1)/2])
	}
	return runs
}

// each makes a line of each run.
func each(runs []*harness.Run, points func(*harness.Run) []point) (all []line) {
	for _, r := range runs {
		all = append(all, line{name: r.Target, points: points(r)})
	}
	return all
}

// nines is how many nines a percentile has: 0 for none, 2 for 99 %.
func nines(percent float64) float64 { return -math.Log10(1 - min(percent, 99.995)/100) }

// curves is the latency of each share of the events.
func curves(runs []*harness.Run) plot {
	p := plot{
		title: "Latency by percentile",
		x:     axis{label: "share of the events that come within", names: []string{"0", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"}},
		y:     axis{label: "ms", log: true},
	}
	for _, percent := range []float64{0, 50, 90, 99, 99.9, 99.99} {
		p.x.ticks = append(p.x.ticks, nines(percent))
	}
	p.lines = each(runs, func(r *harness.Run) (pts []point) {
		for _, c := range r.Window.Curve {
			pts = append(pts, point{nines(c.Percent), c.MS, fmt.Sprintf("%v %% within %s ms", c.Percent, number(c.MS))})
		}
		return pts
	})
	return p
}

// overTime is the latency of each slice of time.
func overTime(runs []*harness.Run) plot {
	p := plot{title: "Latency p99 over time", x: axis{label: "s"}, y: axis{label: "ms", log: true}}
	p.lines = each(runs, func(r *harness.Run) (pts []point) {
		for _, s := range whole(r) {
			if s.Events > 0 {
				pts = append(pts, point{s.At, s.P99, fmt.Sprintf("%s ms at %s s", number(s.P99), number(s.At))})
			}
		}
		return pts
	})
	return p
}

// events is how many events came in each slice of time.
func events(runs []*harness.Run) plot {
	p := plot{title: "Events a second", x: axis{label: "s"}, y: axis{label: "events a second"}}
	p.lines = each(runs, func(r *harness.Run) (pts []point) {
		before := 0.0
		for _, s := range whole(r) {
			rate := float64(s.Events) / (s.At - before)
			before = s.At
			pts = append(pts, point{s.At, rate, fmt.Sprintf("%s a second at %s s", number(rate), number(s.At))})
		}
		return pts
	})
	return p
}

// whole are a run's slices without a last one that is much shorter than the
// others, whose rate says nothing.
func whole(r *harness.Run) []bench.Slice {
	all := r.Window.Slices
	if n := len(all); n > 1 && all[n-1].At-all[n-2].At < all[0].At/2 {
		return all[:n-1]
	}
	return all
}

// busy is what the server took of a processor.
func busy(runs []*harness.Run) plot {
	p := plot{title: "Server CPU", x: axis{label: "s"}, y: axis{label: "% of a core"}}
	p.lines = each(runs, func(r *harness.Run) (pts []point) {
		for _, s := range r.Slices {
			pts = append(pts, point{s.At, 100 * s.Share, fmt.Sprintf("%s %% at %s s", number(100*s.Share), number(s.At))})
		}
		return pts
	})
	return p
}

// memory is what the server held.
func memory(runs []*harness.Run) plot {
	p := plot{title: "Server memory", x: axis{label: "s"}, y: axis{label: "MB resident"}}
	p.lines = each(runs, func(r *harness.Run) (pts []point) {
		for _, s := range r.Slices {
			pts = append(pts, point{s.At, float64(s.RSS) / 1e6, fmt.Sprintf("%s MB at %s s", number(float64(s.RSS)/1e6), number(s.At))})
		}
		return pts
	})
	return p
}

// steps is what each rate of saturate gave.
func steps(res *harness.Result, runs []*harness.Run) plot {
	p := plot{
		title: "Latency p99 by rate", x: axis{label: "events a second"}, y: axis{label: "ms", log: true},
		bound: float64(time.Duration(res.Spec.P99)) / float64(time.Millisecond),
	}
	p.lines = each(runs, func(r *harness.Run) (pts []point) {
		for _, s := range r.Steps {
			pts = append(pts, point{s.EventsPerSec, s.P99, fmt.Sprintf("%s records a second: %s ms %s", strconv.FormatFloat(s.Rate, 'f', 0, 64), number(s.P99), s.Broke)})
		}
		return pts
	})
	return p
}
