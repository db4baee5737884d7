package hub

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"tailcast/frame"
)

const (
	// chunkCacheBytes bounds the history kept for readers of near offsets:
	// enough for a few partitions' ranges while a crowd comes back.
	chunkCacheBytes = 64 << 20
	// chunkAgeMax is how long unused history is kept; a crowd that comes back
	// comes within it.
	chunkAgeMax = 30 * time.Second
	// readMax bounds one read of history or of bounds; the tail's own
	// requests have the same bound.
	readMax = 10 * time.Second
	// retryMin and retryMax bound the pause before a read that failed is tried
	// again.
	retryMin, retryMax = 100 * time.Millisecond, 5 * time.Second
)

// chunkKey is what chunks are found by.
type chunkKey struct {
	feed      *Feed
	group     int
	id        frame.TopicID
	cuts      int // topic.cuts when it was wanted
	partition int32
}

// chunk is a run of history, encoded for its feed with ids that are not yet
// any stream's. It does not change once it is published.
type chunk struct {
	Span
	frames  []byte
	labels  []byte       // of the entries, if the feed has fields
	fields  int          // the feed had
	entries []chunkEntry // by offset
	usedAt  time.Time    // replays.mu guards it
}

type chunkEntry struct {
	offset     int64
	pos, label int // of the frame in frames, and of its label in labels
}

func (c *chunk) size() int { return len(c.frames) + len(c.labels) + 24*len(c.entries) }

// add appends the record's event.
func (c *chunk) add(enc *frame.Encoder, lb *labeler, r *frame.Record) {
	pos := len(c.frames)
	var out frame.Outcome
	if c.frames, out = enc.AppendEvent(c.frames, anyID, r); out.Kind == frame.Silent {
		return
	}
	c.entries = append(c.entries, chunkEntry{r.Offset, pos, len(c.labels)})
	if lb != nil {
		at := len(c.labels)
		c.labels = lb.appendValues(appendLabel(c.labels, LabelRecord, int64(pos), len(c.frames)-pos), r)
		endLabel(c.labels[at:])
	}
}

// replays reads history for the streams of all feeds: one read a partition at
// a time, whoever waits for it, at most max reads in all, addresses in turn.
// Streams near each other share what was read. Safe from any goroutine.
//
// Lock order: replays.mu is taken last.
type replays struct {
	src History
	max int // reads at a time

	times chan struct{} // holds the questions about times that are under way, at most max

	ctx context.Context // ends the reads; set by start
	wg  sync.WaitGroup

	mu      sync.Mutex
	running bool
	active  int
	flights map[chunkKey]*flight
	queue   []*flight // waiting for a slot; the next to run is chosen by pick
	last    netip.Addr
	cache   map[chunkKey][]*chunk
	bytes   int // of the cache
	bounds  map[boundsKey]*boundsFlight
}

// flight is one read, wanted or under way.
type flight struct {
	key     chunkKey
	topic   string
	from    int64
	addr    netip.Addr // of the stream it is for first
	waiters []waiter
	tries   int
}

type waiter struct {
	own  *Own
	from int64
}

// deserted forgets the streams that have ended meanwhile, and reports whether
// nobody waits any more: what can't be read now, or ever, is tried for as long as
// somebody wants it. replays.mu must be held.
func (fl *flight) deserted() bool {
	fl.waiters = slices.DeleteFunc(fl.waiters, func(w waiter) bool { return w.own.closed })
	return len(fl.waiters) == 0
}

// boundsKey is a question about the partitions of a topic.
type boundsKey struct {
	topic string
	id    frame.TopicID
	since int64 // History.Since, or notByTime
}

const notByTime int64 = -1

type boundsFlight struct {
	waiters []*Own
}

func (rp *replays) init(src History, most int) {
	rp.src, rp.max = src, most
	rp.times = make(chan struct{}, max(1, most))
	rp.flights = map[chunkKey]*flight{}
	rp.cache = map[chunkKey][]*chunk{}
	rp.bounds = map[boundsKey]*boundsFlight{}
}

// start allows reads until ctx ends; stop waits for those under way.
func (rp *replays) start(ctx context.Context) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	rp.ctx, rp.running = ctx, true
	rp.fill()
	for key := range rp.bounds {
		rp.wg.Go(func() { rp.ask(key) })
	}
}

func (rp *replays) stop() {
	rp.mu.Lock()
	rp.running = false
	rp.mu.Unlock()
	rp.wg.Wait()
}

// tick forgets history that nobody used for chunkAgeMax.
func (rp *replays) tick(now time.Time) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	for key, chunks := range rp.cache {
		kept := slices.DeleteFunc(chunks, func(c *chunk) bool {
			old := now.Sub(c.usedAt) > chunkAgeMax
			if old {
				rp.bytes -= c.size()
			}
			return old
		})
		if rp.cache[key] = kept; len(kept) == 0 {
			delete(rp.cache, key)
		}
	}
}

// chunk returns the history that holds offset from, or nil: then it is read,
// and the loop of o hears of it.
func (rp *replays) chunk(o *Own, key chunkKey, topic string, from int64) *chunk {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	for _, c := range rp.cache[key] {
		if c.Start <= from && from < c.Next && (o.filter == nil || o.filter.fields <= c.fields) {
			c.usedAt = time.Now()
			return c
		}
	}
	o.reading = true
	w := waiter{o, from}
	if fl := rp.flights[key]; fl != nil {
		fl.waiters = append(fl.waiters, w)
		return nil
	}
	rp.want(&flight{key: key, topic: topic, from: from, addr: o.addr, waiters: []waiter{w}})
	return nil
}

// want queues a flight. mu must be held.
func (rp *replays) want(fl *flight) {
	rp.flights[fl.key] = fl
	rp.queue = append(rp.queue, fl)
	rp.fill()
}

// fill starts reads while there are slots. mu must be held.
func (rp *replays) fill() {
	for rp.running && rp.active < rp.max && len(rp.queue) > 0 {
		fl := rp.pick()
		if fl.deserted() {
			delete(rp.flights, fl.key)
			continue
		}
		rp.active++
		rp.wg.Go(func() { rp.fly(fl) })
	}
}

// pick takes the next flight: the oldest one of another address than the last,
// so that nobody holds up everybody. mu must be held.
func (rp *replays) pick() *flight {
	i := max(0, slices.IndexFunc(rp.queue, func(fl *flight) bool { return fl.addr != rp.last }))
	fl := rp.queue[i]
	rp.queue = slices.Delete(rp.queue, i, i+1)
	rp.last = fl.addr
	return fl
}

// fly reads once, tells those it concerns, and flies on for the others.
func (rp *replays) fly(fl *flight) {
	c, err := rp.read(fl)
	rp.mu.Lock()
	defer rp.mu.Unlock()
	rp.active--
	defer rp.fill()
	if c == nil && err == nil {
		rp.delay(fl)
		return
	}
	delete(rp.flights, fl.key)
	if c != nil {
		rp.keep(fl.key, c)
	}
	var rest []waiter
	for _, w := range fl.waiters {
		if w.own.closed {
			continue
		}
		var gone *ExpiredError // of what lies at fl.from; below it there may be more
		switch {
		case errors.Is(err, ErrRecreated), errors.As(err, &gone) && w.from >= fl.from:
			w.own.failure = failure{fl.key.group, fl.key.partition, err}
		case c == nil || w.from < c.Start || w.from >= c.Next:
			rest = append(rest, w)
			continue
		}
		w.own.ready()
	}
	if len(rest) > 0 && rp.ctx.Err() == nil {
		next := rest[0]
		for _, w := range rest { // another address first
			if w.own.addr != fl.addr {
				next = w
				break
			}
		}
		rp.want(&flight{key: fl.key, topic: fl.topic, from: next.from, addr: next.own.addr, waiters: rest})
	}
}

// delay queues a flight again after a pause, in which it holds no slot. mu
// must be held.
func (rp *replays) delay(fl *flight) {
	d := retryPause(fl.tries)
	fl.tries++
	time.AfterFunc(d, func() {
		rp.mu.Lock()
		defer rp.mu.Unlock()
		rp.queue = append(rp.queue, fl)
		rp.fill()
	})
}

func retryPause(tries int) time.Duration { return min(retryMin<<min(tries, 10), retryMax) }

// read reads and encodes one chunk. Nil without an error means that it has to
// be tried again.
func (rp *replays) read(fl *flight) (*chunk, error) {
	ctx, cancel := context.WithTimeout(rp.ctx, readMax)
	defer cancel()
	f := fl.key.feed
	enc, err := frame.NewEncoder(f.spec.Format)
	if err != nil {
		panic("BUG: hub: a feed's format is not one: " + err.Error())
	}
	lb := f.newLabeler()
	c := &chunk{usedAt: time.Now()}
	if lb != nil {
		c.fields = len(lb.fields)
	}
	span, err := rp.src.Read(ctx, fl.topic, fl.key.id, fl.key.partition, fl.from, func(r *frame.Record) {
		c.add(enc, lb, r)
	})
	var gone *ExpiredError
	switch {
	case errors.Is(err, ErrRecreated), errors.As(err, &gone):
		return nil, err
	case err != nil, span.Next <= fl.from:
		return nil, nil
	}
	c.Span = span
	return c, nil
}

// anyID stands in chunks for the id that a stream's own replaces.
var anyID = []byte("-")

// keep puts a chunk into the cache and the longest unused ones out. mu must be
// held.
func (rp *replays) keep(key chunkKey, c *chunk) {
	rp.cache[key] = append(rp.cache[key], c)
	rp.bytes += c.size()
	for rp.bytes > chunkCacheBytes {
		var oldKey chunkKey
		var old *chunk
		for k, chunks := range rp.cache {
			for _, x := range chunks {
				if x != c && (old == nil || x.usedAt.Before(old.usedAt)) {
					oldKey, old = k, x
				}
			}
		}
		if old == nil {
			return // one chunk may be larger than all the cache should be
		}
		rp.bytes -= old.size()
		rp.cache[oldKey] = slices.DeleteFunc(rp.cache[oldKey], func(x *chunk) bool { return x == old })
	}
}

// extents asks where the partitions of a topic begin and end; o hears of it by
// o.answer.
func (rp *replays) extents(o *Own, key boundsKey) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	o.reading = true
	if b := rp.bounds[key]; b != nil {
		b.waiters = append(b.waiters, o)
		return
	}
	rp.bounds[key] = &boundsFlight{waiters: []*Own{o}}
	if rp.running {
		rp.wg.Go(func() { rp.ask(key) })
	}
}

// ask asks until everybody who waits has an answer, or nobody waits. Who comes while a question
// is under way waits for the next one: an answer must not be older than the
// question it is for.
func (rp *replays) ask(key boundsKey) {
	var waiters []*Own
	for tries := 0; rp.ctx.Err() == nil; {
		rp.mu.Lock()
		b := rp.bounds[key]
		waiters = slices.DeleteFunc(append(waiters, b.waiters...), func(o *Own) bool { return o.closed })
		b.waiters = nil
		if len(waiters) == 0 {
			delete(rp.bounds, key)
			rp.mu.Unlock()
			return
		}
		rp.mu.Unlock()
		got, err := rp.list(key)
		if err != nil && !errors.Is(err, ErrRecreated) {
			select {
			case <-rp.ctx.Done():
			case <-time.After(retryPause(tries)):
			}
			tries++
			continue
		}
		tries = 0
		rp.mu.Lock()
		for _, o := range waiters {
			if !o.closed {
				o.answer = &extents{got, err}
				o.ready()
			}
		}
		rp.mu.Unlock()
		waiters = nil
	}
}

// list asks once. Questions about times are as many as clients can think of, so
// they take turns.
func (rp *replays) list(key boundsKey) ([]Bound, error) {
	ctx, cancel := context.WithTimeout(rp.ctx, readMax)
	defer cancel()
	if key.since == notByTime {
		return rp.src.Bounds(ctx, key.topic, key.id)
	}
	select {
	case rp.times <- struct{}{}:
		defer func() { <-rp.times }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return rp.src.Since(ctx, key.topic, key.id, key.since)
}

// extents is an answer to extents.
type extents struct {
	bounds []Bound
	err    error // ErrRecreated or nil
}

// failure is a read that can't succeed.
type failure struct {
	group     int
	partition int32
	err       error // ErrRecreated or an *ExpiredError
}
