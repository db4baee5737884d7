// Package kafkatail reads Kafka topics at their end and gives every record to
// the hub's sinks, in partition order, each once. franz-go is met here alone.
//
// It owns positions: partitions are assigned directly, without a group, from
// offsets it listed itself, and what can't be delivered is said (retention,
// truncation, re-creation), never skipped in silence. What was written before is
// read for who asks (History). It encodes nothing and keeps no records.
package kafkatail

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
	"tailcast/hub"
)

var _ hub.Source = (*Tail)(nil)

// Tail reads topics of one cluster. A topic is read once, whatever the number
// of its sinks.
//
// Two goroutines do the work while Run runs. The keeper asks brokers about
// topics and offsets (the lister's client) and finds what has to change; the
// reader polls records (its own client), carries the changes out and calls the
// sinks. mu guards what both look at.
type Tail struct {
	cfg  Config
	log  *slog.Logger
	opts []kgo.Opt // of every client
	dial dialFunc  // of every client but the reader's, which paces it

	wake     chan struct{} // the keeper should look now; holds one
	counters counters
	history  History

	presences presences

	// A lock of its own: who calls Tail may hold locks that a sink wants.
	pendingMu sync.Mutex
	pending   []pending

	// mu is held while sinks are called. Lock order: mu -> the sinks' locks.
	mu      sync.Mutex
	topics  map[string]*topic
	past    uint64  // records of topics that are read no longer
	reader  *reader // the one that may call sinks; nil before Run
	contact contact
	lastErr loggedErr
}

// pending is a sink that the keeper has not adopted yet, or not let go.
type pending struct {
	topic string
	sink  hub.Sink
	ends  bool
}

// counters only grow.
type counters struct {
	control  atomic.Uint64
	errors   [kinds]atomic.Uint64
	expired  atomic.Uint64
	cut      atomic.Uint64
	recreate atomic.Uint64
	rebuilds atomic.Uint64
	polls    atomic.Uint64
	fetches  atomic.Uint64
	looks    atomic.Uint64
	failed   atomic.Uint64

	reads          atomic.Uint64
	retries        atomic.Uint64
	historyFetches atomic.Uint64
	historyRecords atomic.Uint64
	historyBytes   atomic.Uint64
}

// loggedErr keeps a repeated error from filling the log.
type loggedErr struct {
	text string
	at   time.Time
}

// New checks cfg and connects to nothing yet.
func New(cfg Config, logger *slog.Logger) (*Tail, error) {
	cfg = cfg.defaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	sasl, err := cfg.sasl()
	if err != nil {
		return nil, err
	}
	dial, err := cfg.dialer()
	if err != nil {
		return nil, err
	}
	t := &Tail{
		cfg:    cfg,
		log:    logger,
		dial:   dial,
		wake:   make(chan struct{}, 1),
		topics: make(map[string]*topic),
	}
	t.opts = append([]kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.ClientID(cfg.ClientID),
		kgo.SoftwareNameAndVersion("tailcast", "1"),
		kgo.Dialer(dial),
		kgo.BrokerMaxReadBytes(responseBytesMax),
		kgo.MetadataMinAge(time.Second), // how fast a new leader is found
		kgo.MetadataMaxAge(30 * time.Second),
		kgo.RetryBackoffFn(cfg.Timing.backoff),
		kgo.DisableClientMetrics(), // KIP-714: brokers get none of ours
		kgo.WithLogger(libraryLog{logger}),
	}, sasl...)
	t.presences.init()
	if err := kgo.ValidateOpts(t.opts...); err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	if cfg.SASL.Mechanism == "PLAIN" && !cfg.TLS.On {
		logger.LogAttrs(context.Background(), slog.LevelWarn, "the Kafka password crosses the network in clear: --kafka-sasl-mechanism PLAIN without --kafka-tls")
	}
	return t, nil
}

func (t *Tail) clientOpts() []kgo.Opt { return append([]kgo.Opt(nil), t.opts...) }

// newAsker makes a client that consumes nothing and is asked now and then.
func (t *Tail) newAsker(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(append(t.clientOpts(),
		kgo.RequestRetries(2), // who asks has a backoff of its own, and the reason should come soon
		kgo.RetryTimeout(t.cfg.Timing.Request),
		kgo.ConnIdleTimeout(5*time.Minute),
	), opts...)...)
}

func (t *Tail) newLister(cl *kgo.Client) *lister {
	_, isolation := t.cfg.isolation()
	return &lister{cl: cl, isolation: isolation, timeout: t.cfg.Timing.Request}
}

// History reads the topics of the same cluster while Run runs.
func (t *Tail) History() *History { return &t.history }

// Tail begins to read topic into sink. It returns at once and calls the sink
// from another goroutine, for a topic that is read already at the position
// where the reading is. Safe from any goroutine, before and during Run.
func (t *Tail) Tail(topic string, sink hub.Sink) { t.enlist(pending{topic, sink, false}) }

// End ends the reading of topic into sink. A topic without sinks is not read
// any more; one that gets another sink later is read from its end again. Safe
// from any goroutine.
func (t *Tail) End(topic string, sink hub.Sink) { t.enlist(pending{topic, sink, true}) }

func (t *Tail) enlist(p pending) {
	t.pendingMu.Lock()
	t.pending = append(t.pending, p)
	t.pendingMu.Unlock()
	t.lookNow()
}

// lookNow makes the keeper look without waiting. Safe from any goroutine.
func (t *Tail) lookNow() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run reads until ctx ends; brokers that are away end nothing. It returns when
// no sink is called any more. Call it once.
func (t *Tail) Run(ctx context.Context) error {
	cl, err := t.newAsker()
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer cl.Close()
	past, err := t.newPast(ctx)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	t.history.open.Store(past)
	defer func() {
		t.history.open.Store(nil)
		past.close()
	}()
	rep, err := t.newReporter()
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	if rep != nil {
		defer rep.close()
	}
	r, err := t.newReader(ctx)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	t.mu.Lock()
	t.reader = r
	t.mu.Unlock()

	k := keeper{t: t, lister: t.newLister(cl)}
	var asking sync.WaitGroup
	asking.Go(func() { t.answer(ctx, k.lister) })
	if rep != nil {
		asking.Go(func() { rep.run(ctx) })
	}
	k.run(ctx)
	asking.Wait()
	return t.retire()
}

// retire ends the present reader and waits, within bounds, until it is closed.
func (t *Tail) retire() error {
	t.mu.Lock()
	r := t.reader
	t.reader = nil
	t.mu.Unlock()
	if r == nil {
		return nil
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		r.close()
	}()
	timer := time.NewTimer(closeMax)
	defer timer.Stop()
	select {
	case <-closed:
		return nil
	case <-timer.C:
		return fmt.Errorf("the Kafka client did not close within %v", closeMax)
	}
}

// rebuild replaces a reader that is stuck. The next look assigns partitions to
// the new one, from where the positions are. Keeper only.
func (t *Tail) rebuild(ctx context.Context, why string) error {
	t.log.LogAttrs(ctx, slog.LevelWarn, "the Kafka reader is stuck and is replaced", slog.String("reason", why))
	t.counters.rebuilds.Add(1)
	if err := t.retire(); err != nil {
		t.log.LogAttrs(ctx, slog.LevelError, "the Kafka reader that was replaced hangs", slog.String("error", err.Error()))
	}
	r, err := t.newReader(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reader = r
	for _, tp := range t.topics {
		for i := range tp.parts {
			p := &tp.parts[i]
			p.reading, p.skipPoll, p.errs, p.behindAt = false, 0, 0, time.Time{}
		}
	}
	return nil
}

// lost counts and logs a loss and tells the sinks. Reader only; mu must be held.
func (t *Tail) lost(tp *topic, reason frame.Reason, ranges []frame.Range) {
	level := slog.LevelWarn
	if reason == frame.Truncated {
		level = slog.LevelError
		t.counters.cut.Add(1)
	} else {
		t.counters.expired.Add(1)
	}
	for _, g := range ranges {
		t.log.LogAttrs(context.Background(), level, "records are lost to the streams", slog.String("reason", string(reason)),
			slog.String("topic", tp.name), slog.Int("partition", int(g.Partition)), slog.Int64("from", g.From), slog.Int64("to", g.To))
	}
	tp.lost(reason, ranges)
}

// deny notes that an ACL forbids the topic. mu must be held.
func (t *Tail) deny(tp *topic, err error) {
	if tp.state != Denied {
		tp.probeAt = time.Now().Add(t.cfg.Timing.Denied)
		t.setState(tp, Denied, err)
	}
}

// setState logs a change of a topic's state, once. mu must be held.
func (t *Tail) setState(tp *topic, s State, err error) {
	if tp.state == s && (err == nil) == (tp.err == nil) {
		tp.err = err
		return
	}
	tp.state, tp.err = s, err
	attrs := []slog.Attr{slog.String("topic", tp.name), slog.String("state", string(s))}
	level := slog.LevelInfo
	if s == Tailing {
		attrs = append(attrs, slog.Int("partitions", len(tp.parts)))
	}
	if len(t.topics) > loggedTopicsMax {
		level = slog.LevelDebug
	}
	if err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	t.log.LogAttrs(context.Background(), level, "a topic's state changed", attrs...)
}

// logOnce logs a fetch error that belongs to no topic of ours, if it is another
// than the last or that was a while ago. mu must be held.
func (t *Tail) logOnce(topic string, partition int32, err error) {
	now := time.Now()
	if text := err.Error(); text != t.lastErr.text || now.Sub(t.lastErr.at) > errorsForget {
		t.log.LogAttrs(context.Background(), slog.LevelWarn, "a fetch failed", slog.String("topic", topic), slog.Int("partition", int(partition)), slog.String("error", text))
		t.lastErr = loggedErr{text, now}
	}
}
