package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tailcast/bench"
)

const (
	// snapshotWithin bounds the time until every stream has caught up: the most
	// keys that are compared, at 300,000 events a second.
	snapshotWithin = 15 * time.Minute
	// changeTime is about how long a publisher takes for one order of changes.
	changeTime = time.Second
	// changesMin is the share of the changes asked for that must be published;
	// less, and the load was the limit.
	changesMin = 0.8
	// liveTime is how long changes go on when every stream has caught up.
	liveTime = time.Second
)

// snapshot has every stream come at once for the state of a topic that goes on
// changing. Half of them drop out in the middle and come back. In the end each
// is to have the latest record of each key.
func (r *run) snapshot() error {
	if !r.target.Checks.Resume {
		return errors.New("snapshot measures servers that keep the latest record of each key")
	}
	cfg := r.config()
	cfg.Keys, cfg.Reopen, cfg.RetryMax = r.setup.Keys, true, time.Second
	// So early that none has caught up by the time it has read what it had asked for.
	cfg.CutOnce, cfg.CutBefore = cfg.Conns/2, max(1, cfg.Keys*3/4)
	if err := r.prepare(cfg); err != nil {
		return err
	}
	stop := r.change(r.setup.Rate)
	if err := r.catchUp(cfg.Conns); err != nil {
		return errors.Join(err, stop())
	}
	r.doing("reading changes", liveTime)
	if err := r.client.Run(r.ctx, liveTime); err != nil {
		return errors.Join(err, stop())
	}
	if err := stop(); err != nil {
		return err
	}
	if p := &r.out.Published; float64(p.Sent) < changesMin*r.setup.Rate*p.Seconds {
		r.out.invalid("%.0f of %.0f changes a second were published", float64(p.Sent)/p.Seconds, r.setup.Rate)
	}
	if err := r.compareKeys(); err != nil {
		return err
	}
	return r.snapshotFigures()
}

// catchUp opens n streams and measures until each was told that it has caught
// up.
func (r *run) catchUp(n int) error {
	r.doing("reading the snapshot", 0)
	r.watch.begin()
	r.client.Measure()
	ctx, cancel := context.WithTimeout(r.ctx, openWithin)
	defer cancel()
	err := r.client.Open(ctx)
	if err == nil {
		late := r.client.RunUntil(r.ctx, snapshotWithin, func() bool { return r.client.Live() == n })
		if late != nil && r.ctx.Err() == nil {
			r.out.fault("%d of %d streams have not caught up within %v", n-r.client.Live(), n, snapshotWithin)
		}
	}
	r.endMeasured()
	return errors.Join(err, r.ctx.Err())
}

// compareKeys reads until every stream has what was published, and compares.
func (r *run) compareKeys() error {
	r.doing("draining", 0)
	ends := r.out.Published.Partitions
	err := r.client.RunUntil(r.ctx, drainWithin, func() bool { return r.client.Short(ends) == 0 })
	if err != nil && r.ctx.Err() == nil {
		r.out.fault("%d streams are not at %v %v after the last record was published", r.client.Short(ends), ends, drainWithin)
	}
	if err := r.client.Run(r.ctx, 100*time.Millisecond); err != nil { // to see what comes again
		return err
	}
	want := bench.Changes{Keys: r.setup.Keys, Partitions: r.setup.Partitions}
	want.Skip(r.setup.Keys + r.out.Published.Sent)
	r.client.CompareKeys(&want)
	return nil
}

func (r *run) snapshotFigures() error {
	if err := r.look(&r.out.End); err != nil {
		return err
	}
	res, f := r.client.Result(), &r.out.Figures
	f.set("load_s", r.started.Sub(r.server.Began).Seconds())
	f.set("byte_p50_ms", res.OpeningMS.P50)
	f.set("byte_p99_ms", res.OpeningMS.P99)
	f.set("byte_max_ms", res.OpeningMS.Max)
	f.set("first_p50_ms", res.FirstMS.P50)
	f.set("first_p99_ms", res.FirstMS.P99)
	f.set("first_max_ms", res.FirstMS.Max)
	f.set("live_p50_s", res.LiveMS.P50/1000)
	f.set("live_p99_s", res.LiveMS.P99/1000)
	f.set("live_max_s", res.LiveMS.Max/1000)
	f.set("events", float64(r.out.Window.Events))
	f.set("mb_per_s", r.out.Window.MBPerSec)
	f.set("reconnects", float64(res.Counts.Opened-int64(res.Conns)))
	f.set("rss_before_mb", float64(r.out.Before.RSS)/1e6)
	peak := max(r.out.Before.RSS, r.out.End.RSS)
	for _, s := range r.out.Slices {
		peak = max(peak, s.RSS)
	}
	f.set("rss_peak_mb", float64(peak)/1e6)
	m, err := scrape(r.ctx, r.server.Metrics)
	f.set("table_mb", m["tailcast_snapshot_bytes"]/1e6)
	return err
}

// change publishes at a rate, one order after the other, until it is stopped.
// The function it returns stops it, and waits for the end of the order under way
// while the client reads.
func (r *run) change(rate float64) (stop func() error) {
	o := bench.Order{Rate: rate, Count: count(rate, changeTime)}
	takes := time.Duration(float64(o.Count) / rate * float64(time.Second))
	over, end := make(chan struct{}), make(chan error, 1)
	var all []bench.Published // until end
	go func() {
		pace := time.NewTicker(takes)
		defer pace.Stop()
		for {
			p, err := r.server.Publisher.Publish(r.ctx, o)
			if err != nil {
				end <- err
				return
			}
			all = append(all, p)
			select {
			case <-over:
				end <- nil
				return
			case <-pace.C:
			}
		}
	}()
	return func() error {
		close(over)
		if err := r.await(end, takes); err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		for _, p := range all {
			r.out.published(p)
		}
		return nil
	}
}
