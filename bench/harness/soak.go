package harness

import "time"

// soak is fanout for a long time with streams that come and go, and looks
// whether the server grows.
func (r *run) soak() error {
	cfg := r.config()
	cfg.Reconnecting, cfg.ReconnectEvery, cfg.RetryMax = cfg.Conns, time.Duration(r.setup.Churn), time.Second
	if err := r.open(cfg); err != nil {
		return err
	}
	if err := r.stream(r.setup.Rate); err != nil {
		return err
	}
	if n := len(r.out.Slices) / 4; n > 0 {
		first, last := meanRSS(r.out.Slices[n:2*n]), meanRSS(r.out.Slices[len(r.out.Slices)-n:])
		r.out.Figures.set("rss_growth_mb", (last-first)/1e6)
	}
	r.out.Figures.set("goroutine_growth", r.out.End.Goroutines-r.out.Idle.Goroutines)
	r.out.Figures.set("reconnects", float64(r.client.Result().Counts.Cut))
	return nil
}

func meanRSS(slices []Slice) (mean float64) {
	for _, s := range slices {
		mean += float64(s.RSS) / float64(len(slices))
	}
	return mean
}
