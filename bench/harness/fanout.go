package harness

import (
	"time"

	"tailcast/bench"
)

// fanout opens the streams, publishes at the rate, measures, and waits until
// every stream has every record.
func (r *run) fanout() error {
	if err := r.open(r.config()); err != nil {
		return err
	}
	s := r.setup
	d := time.Duration(s.Warm) + time.Duration(s.For)
	published := r.publish(bench.Order{Rate: s.Rate, Count: int64((d + tailTime).Seconds() * s.Rate)})
	r.doing("warming up", time.Duration(s.Warm))
	if err := r.client.Run(r.ctx, time.Duration(s.Warm)); err != nil {
		return err
	}
	if err := r.measured("measuring", time.Duration(s.For)); err != nil {
		return err
	}
	if err := published(); err != nil {
		return err
	}
	return r.drain()
}
