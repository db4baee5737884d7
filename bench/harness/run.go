package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tailcast/bench"
)

const (
	// openWithin bounds the opening of all streams.
	openWithin = 2 * time.Minute
	// drainWithin bounds the wait for what was published and has not come yet.
	drainWithin = 20 * time.Second
	// tailTime is how much longer records are published than is measured, so
	// that the end of publishing is not measured.
	tailTime = 200 * time.Millisecond
)

// run is one measurement of one target. It belongs to one goroutine, which
// stays on its thread.
type run struct {
	ctx    context.Context //nolint:containedctx // a run is a call that is spread over methods
	setup  *Setup
	target *Target
	server *Server
	client *bench.Client
	watch  *watch
	// started is when the server was up.
	started time.Time
	out     *Run
	say     func(Progress)
}

// measure starts the server, has the scenario run and takes the figures.
func (r *run) measure(sc *scenario) (err error) {
	r.doing("starting", 0)
	if r.server, err = r.target.Start(r.ctx, r.setup); err != nil {
		return err
	}
	r.started = time.Now()
	if r.server.Stop != nil {
		defer func() { err = errors.Join(err, r.server.Stop()) }()
	}
	if _, err := r.server.Publisher.Publish(r.ctx, bench.Order{}); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	if r.watch, err = newWatch(r.server, r.setup.LoadCPU); err != nil {
		return err
	}
	err = sc.run(r)
	if r.client != nil {
		r.finish()
		err = errors.Join(err, r.client.Close())
	}
	return err
}

// finish takes the figures from what was seen.
func (r *run) finish() {
	res := r.client.Result()
	r.out.take(&res)
	r.out.judge(&res.Counts, &r.target.Checks)
}

func (r *run) doing(what string, d time.Duration) {
	pr := Progress{Doing: what, For: d}
	if r.client != nil {
		pr.Events = r.client.Seen
	}
	r.say(pr)
}

// config is the client's of a plain scenario.
func (r *run) config() bench.Config {
	return bench.Config{
		URL: r.server.URL, TLS: r.server.TLS, Conns: r.setup.Streams, Sample: r.setup.Sample,
		Opening: r.setup.Opening,
		Verify:  true, OtherIDs: !r.target.Checks.IDs, AnyUser: !r.target.Checks.Users,
	}
}

// prepare makes the client, and takes the state of the server before its first
// stream.
func (r *run) prepare(cfg bench.Config) (err error) {
	if r.client, err = bench.New(cfg); err != nil {
		return err
	}
	r.out.Before, err = r.watch.quiet(r.ctx)
	return err
}

// open opens every stream and takes the figures of an idle server.
func (r *run) open(cfg bench.Config) (err error) {
	if err := r.prepare(cfg); err != nil {
		return err
	}
	r.doing(fmt.Sprintf("opening %d streams", cfg.Conns), 0)
	ctx, cancel := context.WithTimeout(r.ctx, openWithin)
	defer cancel()
	began, load := r.watch.cpu(), readCPUTimes(r.setup.LoadCPU)
	if err := r.client.Open(ctx); err != nil {
		return err
	}
	if r.setup.Topics() > 0 && r.target.Checks.Places {
		r.doing("waiting for the topics", 0)
		told := func() bool { return r.client.Result().Counts.IDBlocks >= int64(cfg.Conns) }
		if err := r.client.RunUntil(ctx, openWithin, told); err != nil {
			return fmt.Errorf("not every stream was told its position: %w", err)
		}
	}
	r.opened((r.watch.cpu() - began).Seconds(), readCPUTimes(r.setup.LoadCPU).busySince(load))
	settle := time.Duration(r.setup.Settle)
	r.doing("settling", settle)
	if err := r.client.Run(r.ctx, settle); err != nil {
		return err
	}
	r.out.Idle, err = r.watch.quiet(r.ctx)
	return err
}

// opened takes the figures of opening the streams, by the server's CPU time in
// seconds and how busy the load was, or 0.
func (r *run) opened(cpu, busy float64) {
	f := &r.out.Figures
	f.set("connect_cpu_us", cpu*1e6/float64(r.setup.Streams))
	if busy > 0 {
		f.set("open_load_busy", busy)
	}
	n := r.client.Result().Counts
	if n.Handshakes == 0 {
		return
	}
	f.set("resumed", float64(n.Resumed)/float64(n.Handshakes))
	if cpu > 0 {
		f.set("handshakes_per_cpu_s", float64(n.Handshakes)/cpu)
	}
}

// look takes the server's state.
func (r *run) look(into *State) (err error) {
	*into, err = r.watch.look(r.ctx)
	return err
}

// publish begins to carry out an order. The function it returns waits for the
// end of it while the client reads.
func (r *run) publish(o bench.Order) (wait func() error) {
	var done bench.Published
	over := r.aside(func() (err error) {
		done, err = r.server.Publisher.Publish(r.ctx, o)
		return err
	})
	return func() error {
		if err := over(time.Duration(float64(o.Count) / max(o.Rate, 1) * float64(time.Second))); err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		r.out.published(done)
		r.out.late(done)
		return nil
	}
}

// aside begins to do something that ends with the run's context at the latest.
// The function it returns waits for the end of it, about the time d, while the
// client reads.
func (r *run) aside(do func() error) (wait func(d time.Duration) error) {
	end := make(chan error, 1)
	go func() { end <- do() }()
	return func(d time.Duration) error { return r.await(end, d) }
}

// await reads until what goes on beside the streams ends, which takes about the
// time d.
func (r *run) await(end <-chan error, d time.Duration) (err error) {
	ended := false
	waitErr := r.client.RunUntil(r.ctx, 3*drainWithin+d, func() bool {
		select {
		case err = <-end:
			ended = true
		default:
		}
		return ended
	})
	return errors.Join(err, waitErr)
}

// measured reads for the time d and takes the figures of that time.
func (r *run) measured(what string, d time.Duration) error {
	r.doing(what, d)
	r.watch.begin()
	r.client.Measure()
	err := r.client.Run(r.ctx, d)
	r.endMeasured()
	return errors.Join(err, r.look(&r.out.End))
}

// endMeasured takes the figures of the time since the client began to measure.
func (r *run) endMeasured() {
	r.client.Measured()
	r.out.Window = r.client.Window()
	r.out.Load, r.out.Slices = r.watch.end()
	r.out.suspect(r.setup)
}

// drain reads until every stream has what was published, and a little longer,
// to see what comes twice.
func (r *run) drain() error {
	if !r.target.Checks.Exact {
		return nil
	}
	r.doing("draining", 0)
	want := r.out.Published.Sent
	if n := r.setup.Users(); n > 0 {
		want /= n
	}
	if err := r.client.RunUntil(r.ctx, drainWithin, func() bool { return r.client.Behind(want) == 0 }); err != nil && r.ctx.Err() == nil {
		r.out.fault("%d streams have not got all of %d records %v after the last was published", r.client.Behind(want), want, drainWithin)
	}
	return r.client.Run(r.ctx, 100*time.Millisecond)
}
