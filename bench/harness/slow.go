package harness

import (
	"time"

	"tailcast/bench"
)

// slow measures twice under the same records: while all streams read, and while
// some do not.
func (r *run) slow() error {
	cfg := r.config()
	cfg.Stalled, cfg.StallOnCue = r.setup.Stalled, true
	if err := r.open(cfg); err != nil {
		return err
	}
	warm, length := time.Duration(r.setup.Warm), time.Duration(r.setup.For)
	published := r.publish(bench.Order{Rate: r.setup.Rate, Count: count(r.setup.Rate, 2*(warm+length)+tailTime)})
	r.doing("warming up", warm)
	if err := r.client.Run(r.ctx, warm); err != nil {
		return err
	}
	if err := r.measured("measuring, all read", length); err != nil {
		return err
	}
	calm := r.out.Window.LatencyMS
	r.out.Figures.set("calm_p50_ms", calm.P50)
	r.out.Figures.set("calm_p99_ms", calm.P99)
	if err := r.client.Stall(); err != nil {
		return err
	}
	r.doing("some stop to read", warm)
	if err := r.client.Run(r.ctx, warm); err != nil {
		return err
	}
	if err := r.measured("measuring, some stalled", length); err != nil {
		return err
	}
	r.out.Figures.set("slow_p99_ratio", r.out.Window.LatencyMS.P99/calm.P99)
	if err := published(); err != nil {
		return err
	}
	return r.drain()
}
