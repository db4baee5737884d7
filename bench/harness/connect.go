package harness

import (
	"time"

	"tailcast/bench"
)

// probeRate is the rate of the few records that show that opened streams are
// alive.
const probeRate = 10

// connect opens the streams, and shows with one record that they are
// subscribed.
func (r *run) connect() error {
	if err := r.open(r.config()); err != nil {
		return err
	}
	return r.probe(1)
}

// idle holds silent streams.
func (r *run) idle() error {
	if err := r.open(r.config()); err != nil {
		return err
	}
	if err := r.measured("holding", time.Duration(r.setup.For)); err != nil {
		return err
	}
	return r.probe(1)
}

// probe publishes n records and waits until every stream has them.
func (r *run) probe(n int64) error {
	if err := r.publish(bench.Order{Rate: probeRate, Count: n})(); err != nil {
		return err
	}
	return r.drain()
}
