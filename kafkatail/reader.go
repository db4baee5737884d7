package kafkatail

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
	"tailcast/hub"
)

// reader is the consuming client and the goroutine that polls it.
//
// Everything that moves a position or changes what is consumed runs on that
// goroutine, between two polls: then no fetch that was polled before a change
// is applied after it. A reader that is stuck is retired, and another one goes
// on from the same positions.
type reader struct {
	t     *Tail
	cl    *kgo.Client
	pacer pacer // of its fetches

	commands chan func()        // unbuffered but for one: the keeper waits for each
	stop     context.CancelFunc // ends the reader's life
	stopped  chan struct{}

	mu     sync.Mutex
	base   context.Context // of the reader's life
	poll   context.Context // of the poll that is under way or comes next
	cancel context.CancelFunc

	// Owned by the reader's goroutine.
	polls  uint64
	paused map[place]time.Time // partitions left alone after errors, and until when
	seeks  seeks               // positions that moved in this round, for the library to follow
	round  []*topic            // topics whose sinks may have been called since the last flush
	wakes  hub.Wakes           // of the round that is being flushed
	batch  batch
}

// seeks are positions by topic and partition, as the library takes them.
type seeks map[string]map[int32]kgo.EpochOffset

func (s seeks) add(topic string, partition int32, to kgo.EpochOffset) {
	if s[topic] == nil {
		s[topic] = make(map[int32]kgo.EpochOffset)
	}
	s[topic][partition] = to
}

// newReader connects nothing yet; the library dials when it has something to do.
func (t *Tail) newReader(ctx context.Context) (*reader, error) {
	iso, _ := t.cfg.isolation()
	base, stop := context.WithCancel(ctx)
	r := &reader{
		t: t, pacer: pacer{dial: t.dial, life: base}, base: base, stop: stop,
		commands: make(chan func(), 1), stopped: make(chan struct{}),
		paused: make(map[place]time.Time), seeks: make(seeks),
	}
	opts := append(t.clientOpts(),
		kgo.Dialer(r.pacer.connect),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // where to go on is our decision, see reconcile
		kgo.KeepRetryableFetchErrors(),
		kgo.KeepControlRecords(), // they move the position
		kgo.FetchIsolationLevel(iso),
		kgo.FetchMinBytes(1),
		kgo.FetchMaxWait(t.cfg.Timing.FetchWait), // what an added partition may wait for
		kgo.FetchMaxBytes(fetchBytesMax),
		kgo.FetchMaxPartitionBytes(partitionBytesMax),
		kgo.MaxDecompressBatchBytes(t.cfg.decompressBytesMax),
		kgo.WithPools(new(pools)),
	)
	if t.cfg.Rack != "" {
		opts = append(opts, kgo.Rack(t.cfg.Rack))
	}
	var err error
	if r.cl, err = kgo.NewClient(opts...); err != nil {
		stop()
		return nil, err
	}
	r.poll, r.cancel = context.WithCancel(base)
	go r.run()
	return r, nil
}

func (r *reader) run() {
	defer close(r.stopped)
	defer r.stop()
	for {
		poll := r.nextPoll()
		if r.base.Err() != nil {
			return
		}
		select {
		case f := <-r.commands:
			f()
		default:
		}
		timer := r.resume(time.Now())
		fetches := r.cl.PollFetches(poll)
		if timer != nil {
			timer.Stop()
		}
		if fetches.IsClientClosed() {
			return
		}
		r.polls++
		r.t.counters.polls.Add(1)
		r.apply(fetches)
	}
}

// nextPoll renews the poll's context once it is used up. A command is sent
// before the interrupt, so whoever sees the new context sees the command.
func (r *reader) nextPoll() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.poll.Err() != nil {
		r.poll, r.cancel = context.WithCancel(r.base)
	}
	return r.poll
}

// interrupt ends the poll under way, or the next one. Safe from any goroutine.
func (r *reader) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
}

var errStuck = errors.New("the reader does not answer")

// do runs f on the reader's goroutine and waits for it. One caller at a time.
func (r *reader) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	timeout := time.NewTimer(r.t.cfg.Timing.Stalled)
	defer timeout.Stop()
	select {
	case r.commands <- func() { defer close(done); f() }:
	case <-timeout.C:
		return errStuck
	case <-ctx.Done():
		return ctx.Err()
	}
	r.interrupt()
	select {
	case <-done:
		return nil
	case <-timeout.C:
		return errStuck
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resume fetches paused partitions again whose time has come, and returns a
// timer that interrupts the poll when the next one's has. Reader only.
func (r *reader) resume(now time.Time) *time.Timer {
	if len(r.paused) == 0 {
		return nil
	}
	var next time.Time
	due := make(map[string][]int32)
	for pl, at := range r.paused {
		if !at.After(now) {
			due[pl.topic] = append(due[pl.topic], pl.partition)
			delete(r.paused, pl)
		} else if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if len(due) > 0 {
		r.cl.ResumeFetchPartitions(due)
	}
	if next.IsZero() {
		return nil
	}
	return time.AfterFunc(next.Sub(now), r.interrupt)
}

// pause leaves a partition alone for a while. Reader only.
func (r *reader) pause(pl place, d time.Duration) {
	r.paused[pl] = time.Now().Add(d)
	r.cl.PauseFetchPartitions(map[string][]int32{pl.topic: {pl.partition}})
}

// apply gives what was polled to the sinks. Records of a partition come before
// its error, except that a position that moved back voids them.
func (r *reader) apply(fetches kgo.Fetches) {
	for i := range fetches {
		for j := range fetches[i].Topics {
			ft := &fetches[i].Topics[j]
			for k := range ft.Partitions {
				if fp := &ft.Partitions[k]; fp.Err != nil && kindOf(fp.Err) == kindDataLoss {
					r.dataLoss(fp.Err)
				}
			}
		}
	}
	for i := range fetches {
		if !fetches[i : i+1].Empty() {
			r.t.counters.fetches.Add(1)
		}
		for j := range fetches[i].Topics {
			ft := &fetches[i].Topics[j]
			for k := range ft.Partitions {
				fp := &ft.Partitions[k]
				if len(fp.Records) > 0 {
					r.records(ft, fp)
				}
				if fp.Err != nil {
					r.fault(ft.Topic, fp.Partition, fp.Err)
				}
			}
		}
	}
	r.seek()
	r.flush()
}

// seek moves the library to where positions moved, which drops what it has
// fetched but not given to us. Reader only; Tail.mu must not be held.
func (r *reader) seek() {
	if len(r.seeks) > 0 {
		r.cl.SetOffsets(r.seeks)
		clear(r.seeks)
	}
}

// flush ends the round: what was appended becomes visible.
func (r *reader) flush() {
	if len(r.round) == 0 {
		return
	}
	t := r.t
	defer r.wakes.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader == r {
		for _, tp := range r.round {
			t.warmed(tp, time.Now())
			tp.flush(&r.wakes)
		}
	}
	clear(r.round)
	r.round = r.round[:0]
}

// partition returns where records of a fetch go, or nils when they are void:
// this reader is retired, the topic is another one now, the position moved.
// Tail.mu must be held.
func (r *reader) partition(topic string, id [16]byte, partition int32) (*topic, *partition) {
	if r.t.reader != r {
		return nil, nil
	}
	tp := r.t.topics[topic]
	if tp == nil || id != ([16]byte{}) && id != tp.id {
		return nil, nil
	}
	p := tp.part(partition)
	if p == nil || !p.reading || p.skipPoll == r.polls {
		return nil, nil
	}
	r.touch(tp)
	return tp, p
}

// touch has the topic flushed at the end of the round. The partitions of one
// topic come together, so looking at the last one keeps the list short.
func (r *reader) touch(tp *topic) {
	if n := len(r.round); n == 0 || r.round[n-1] != tp {
		r.round = append(r.round, tp)
	}
}

// records appends one partition's fetch. The records' bytes are the library's;
// they are handed back batch by batch.
func (r *reader) records(ft *kgo.FetchTopic, fp *kgo.FetchPartition) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	tp, p := r.partition(ft.Topic, ft.TopicID, fp.Partition)
	if p == nil {
		recycle(fp.Records)
		return
	}
	if first := fp.Records[0].Offset; first > p.next && fp.LogStartOffset > p.next {
		// Retention passed the position, and the library skipped what is
		// gone. Other gaps are markers, aborted or compacted records.
		from, to := p.next, min(first, fp.LogStartOffset)
		p.next = to
		t.lost(tp, frame.Expired, []frame.Range{{Topic: tp.name, Partition: fp.Partition, From: from, To: to - 1}})
	}
	p.errs, p.err = 0, nil
	appended := p.next
	done := 0 // records handed back
	for i, rec := range fp.Records {
		switch {
		case rec.Offset < p.next: // read again after a reader was replaced
		case rec.Attrs.IsControl():
			p.next = rec.Offset + 1
			t.counters.control.Add(1)
		default:
			p.next = rec.Offset + 1
			if r.batch.add(tp.name, rec) < batchRecordsMax {
				continue
			}
			r.batch.appendTo(tp, fp.Partition)
			appended = p.next
			recycle(fp.Records[done : i+1])
			done = i + 1
		}
	}
	if r.batch.len() > 0 {
		appended = r.batch.appendTo(tp, fp.Partition)
	}
	recycle(fp.Records[done:])
	if p.next > appended {
		tp.advance(fp.Partition, p.next)
	}
}

func recycle(recs []*kgo.Record) {
	for _, rec := range recs {
		rec.Recycle()
	}
}

// dataLoss follows the library, which found by leader epochs where the log was
// cut and has moved back there (KIP-320).
func (r *reader) dataLoss(err error) {
	loss, ok := errors.AsType[*kgo.ErrDataLoss](err)
	if !ok {
		return
	}
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	tp, p := r.partition(loss.Topic, [16]byte{}, loss.Partition)
	if p == nil {
		return
	}
	p.skipPoll = r.polls // read again from where the position is now
	next := min(loss.ResetTo, p.next)
	if from := p.next; next < from {
		p.next = next
		t.lost(tp, frame.Truncated, []frame.Range{{Topic: tp.name, Partition: loss.Partition, From: next, To: from - 1}})
	}
	r.seeks.add(loss.Topic, loss.Partition, kgo.EpochOffset{Epoch: loss.ResetToEpoch, Offset: next})
}

// tooLarge skips a batch that no decompression is allowed to finish. Streams are
// told that it expired: of the reasons there are, that one says that a range is
// gone and that the stream goes on behind it. Tail.mu must be held.
func (r *reader) tooLarge(tp *topic, p *partition, large *kgo.ErrDecompressTooLarge) {
	r.touch(tp)
	from := p.next
	p.next = max(large.NextOffset, from)
	if p.next > from {
		r.t.lost(tp, frame.Expired, []frame.Range{{Topic: tp.name, Partition: large.Partition, From: from, To: p.next - 1}})
	}
	r.seeks.add(tp.name, large.Partition, kgo.EpochOffset{Epoch: large.Epoch, Offset: p.next})
	r.t.log.LogAttrs(context.Background(), slog.LevelError, "a batch decompresses beyond the limit and is skipped",
		slog.String("topic", tp.name), slog.Int("partition", int(large.Partition)),
		slog.Int64("from", from), slog.Int64("to", p.next-1), slog.Int("limit_bytes", r.t.cfg.decompressBytesMax))
}

// fault handles one partition's fetch error, or with partition -1 one of a
// whole topic or client.
func (r *reader) fault(topic string, partition int32, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // our own interrupt
	}
	t := r.t
	kind := kindOf(err)
	t.counters.errors[kind].Add(1)

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader != r {
		return
	}
	tp := t.topics[topic]
	if tp == nil {
		t.logOnce(topic, partition, err)
		return
	}
	if kind == kindDenied {
		t.deny(tp, err)
	}
	if kind == kindUnknownTopic || kind == kindDenied || kind == kindOutOfRange {
		tp.asked = true
		t.lookNow()
	}
	p := tp.part(partition)
	if p == nil || !p.reading || kind == kindDataLoss {
		return
	}
	if large, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err); ok {
		if p.skipPoll != r.polls {
			r.tooLarge(tp, p, large)
		}
		return
	}
	if kind == kindOutOfRange {
		p.outOfRange = true // the next look says where to go on
	}
	r.backOff(place{topic, partition}, p, kind, err)
}

// backOff leaves a failing partition alone, longer each time. Leadership that
// moves is no reason at first: the library asks for metadata and goes on.
// Tail.mu must be held.
func (r *reader) backOff(pl place, p *partition, kind errorKind, err error) {
	now := time.Now()
	if now.Sub(p.errAt) > errorsForget {
		p.errs = 0
	}
	if p.errs == 0 && kind != kindTransient {
		r.t.log.LogAttrs(context.Background(), slog.LevelWarn, "a fetch failed",
			slog.String("topic", pl.topic), slog.Int("partition", int(pl.partition)), slog.Int64("offset", p.next), slog.String("error", err.Error()))
	}
	p.errs++
	p.errAt, p.err = now, err
	switch {
	case kind == kindDenied:
		r.pause(pl, r.t.cfg.Timing.Denied)
	case kind == kindTransient && p.errs == 1:
	default:
		r.pause(pl, min(firstPause<<min(p.errs-1, 10), longestPause))
	}
}

// close ends the reader; it may hang where the library does.
func (r *reader) close() {
	r.stop()
	r.cl.Close()
	<-r.stopped
}
