package harness

import (
	"time"

	"tailcast/bench"
)

// fanout opens the streams, publishes at the rate, measures, and waits until
// every stream has every record that is for it.
func (r *run) fanout() error {
	if err := r.open(r.config()); err != nil {
		return err
	}
	if err := r.stream(r.setup.Rate); err != nil {
		return err
	}
	if share := r.out.Load.ServerShare; r.setup.Users() > 0 && share > 0 {
		r.out.Figures.set("streams_per_core", float64(r.setup.Streams)/share)
	}
	if n := r.out.End.Fetches - r.out.Idle.Fetches; n > 0 {
		r.out.Figures.set("records_per_fetch", (r.out.End.Records-r.out.Idle.Records)/n)
	}
	return nil
}

// stream publishes at the rate, measures, and waits for the rest.
func (r *run) stream(rate float64) error {
	warm, length := time.Duration(r.setup.Warm), time.Duration(r.setup.For)
	published := r.publish(bench.Order{Rate: rate, Count: count(rate, warm+length+tailTime)})
	r.doing("warming up", warm)
	if err := r.client.Run(r.ctx, warm); err != nil {
		return err
	}
	if err := r.measured("measuring", length); err != nil {
		return err
	}
	if err := published(); err != nil {
		return err
	}
	return r.drain()
}

// count is how many records a rate gives in a time, at least one.
func count(rate float64, d time.Duration) int64 { return max(1, int64(rate*d.Seconds())) }
