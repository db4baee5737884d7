package harness

import (
	"context"
	"errors"
	"time"

	"tailcast/bench"
)

// stormWithin bounds a storm.
const stormWithin = 2 * time.Minute

// storm has every stream go away, publishes records, and has all come back at
// once for what they have missed.
func (r *run) storm() error {
	if err := r.open(r.config()); err != nil {
		return err
	}
	if err := r.probe(3); err != nil { // so that each has an id
		return err
	}
	r.client.Away()
	r.doing("publishing", 0)
	if err := r.publish(bench.Order{Count: int64(r.setup.Behind)})(); err != nil {
		return err
	}
	want := r.out.Published.Sent
	r.doing("coming back", 0)
	r.watch.begin()
	r.client.Measure()
	began := time.Now()
	r.client.Back()
	ctx, cancel := context.WithTimeout(r.ctx, stormWithin)
	defer cancel()
	err := r.client.Open(ctx)
	r.out.Figures.set("storm_open_s", time.Since(began).Seconds())
	if err == nil && r.target.Checks.Resume {
		err = r.client.RunUntil(ctx, stormWithin, func() bool { return r.client.Behind(want) == 0 })
		r.out.Figures.set("storm_s", time.Since(began).Seconds())
	}
	r.endMeasured()
	// From when a record was due includes the time away.
	r.out.Window.LatencyMS, r.out.Window.Curve = bench.Latency{}, nil
	if err != nil {
		return err
	}
	return errors.Join(r.look(&r.out.End), r.client.Run(r.ctx, time.Duration(r.setup.Settle)))
}
