package kafkatail

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
	"tailcast/hub"
	"tailcast/internal/wait"
)

var _ hub.History = (*History)(nil)

// History reads what was written before. It works while the tail runs; safe
// from any goroutine.
//
// Fetches are bounded, for one partition and without a session, on a client of
// their own: a broker answers the requests of one connection in order, and
// neither the tail's records nor its discovery shall wait for history.
type History struct {
	open atomic.Pointer[past] // nil while the tail does not run
}

// past is a History at work: its client and what it knows of the brokers.
type past struct {
	t      *Tail
	list   *lister
	pools  *pools
	decode kgo.Decompressor
	slots  chan struct{} // one a fetch under way

	end   context.CancelFunc
	metas *asked[topicMeta]
	ends  *asked[extent]
	times *asked[extent]
	holes holes
}

// extent is where the partitions of one incarnation of a topic begin and end.
type extent struct {
	id     frame.TopicID
	bounds []hub.Bound // by partition; those that could be listed
}

var errNotRunning = errors.New("the Kafka tail does not run")

// newPast connects nothing yet.
func (t *Tail) newPast(ctx context.Context) (*past, error) {
	mem := new(pools)
	cl, err := t.newAsker(
		kgo.MaxDecompressBatchBytes(t.cfg.decompressBytesMax),
		kgo.WithPools(mem),
	)
	if err != nil {
		return nil, err
	}
	decode, ok := cl.OptValue(kgo.WithDecompressor).(kgo.Decompressor) // the default one, with our bound and our pools
	if !ok {
		cl.Close()
		return nil, errors.New("the library has no decompressor")
	}
	life, end := context.WithCancel(ctx)
	return &past{
		t: t, list: t.newLister(cl), pools: mem, decode: decode,
		slots: make(chan struct{}, historyFetchesMax),
		end:   end,
		metas: newAsked[topicMeta](life, metaAgeMax),
		ends:  newAsked[extent](life, boundsAgeMax),
		times: newAsked[extent](life, boundsAgeMax),
	}, nil
}

// close fails what is under way.
func (h *past) close() {
	h.end()
	h.list.cl.Close()
	h.metas.close()
	h.ends.close()
	h.times.close()
}

// Read implements hub.History. Records below the log start are not told, even
// where their batch is still there. A batch that would decompress beyond all
// bounds can't be told: an *hub.ExpiredError leads behind it, as the tail does.
func (s *History) Read(ctx context.Context, topic string, id frame.TopicID, partition int32, from int64, each func(*frame.Record)) (hub.Span, error) {
	h := s.open.Load()
	if h == nil {
		return hub.Span{}, errNotRunning
	}
	h.t.counters.reads.Add(1)
	var span hub.Span
	err := h.persist(ctx, func() error {
		meta, err := h.meta(ctx, topic)
		if err != nil {
			return err
		}
		to, err := meta.value.target(place{topic, partition}, id)
		if err == nil {
			span, err = h.read(ctx, to, from, each)
		}
		if err != nil && ctx.Err() == nil {
			h.metas.forget(topic, meta)
		}
		return err
	})
	if err != nil {
		return hub.Span{}, fmt.Errorf("read %s/%d from offset %d: %w", topic, partition, from, err)
	}
	return span, nil
}

// Bounds implements hub.History. Partitions whose leader does not answer are
// left out too, unless none does.
func (s *History) Bounds(ctx context.Context, topic string, id frame.TopicID) ([]hub.Bound, error) {
	h := s.open.Load()
	if h == nil {
		return nil, errNotRunning
	}
	return h.bounds(ctx, h.ends, topic, topic, id, h.list.extents)
}

// Since implements hub.History. Partitions are left out as by Bounds.
func (s *History) Since(ctx context.Context, topic string, id frame.TopicID, millis int64) ([]hub.Bound, error) {
	h := s.open.Load()
	if h == nil {
		return nil, errNotRunning
	}
	key := topic + " " + strconv.FormatInt(millis, 10)
	return h.bounds(ctx, h.times, key, topic, id, func(ctx context.Context, want []place) (starts, ends map[place]listed) {
		return h.list.since(ctx, want, max(0, millis))
	})
}

// bounds returns the answer for key, by list if there is none that is young enough.
func (h *past) bounds(ctx context.Context, from *asked[extent], key, topic string, id frame.TopicID, list listing) ([]hub.Bound, error) {
	var bounds []hub.Bound
	err := h.persist(ctx, func() error {
		an, err := from.get(ctx, key, func(ctx context.Context) (extent, error) { return h.extent(ctx, topic, list) })
		switch {
		case err != nil:
			return err
		case an.value.id != id:
			from.forget(key, an)
			return hub.ErrRecreated
		}
		bounds = append([]hub.Bound(nil), an.value.bounds...) // the answer is shared
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the offsets of %s: %w", topic, err)
	}
	return bounds, nil
}

// persist calls try until it succeeds, fails by what time does not heal, or
// has failed triesMax times: then others may need what the caller holds.
func (h *past) persist(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || n == triesMax || !heals(err) || ctx.Err() != nil {
			return err
		}
		h.t.counters.retries.Add(1)
		if n > 1 { // the first failure is mostly a leader that moved: at once
			wait.For(ctx, h.t.cfg.Timing.backoff(n-1))
		}
	}
}

// heals reports whether asking again may help. A topic that is another one is
// believed only when it is seen again: a broker may lag behind.
func heals(err error) bool {
	var expired *hub.ExpiredError
	switch {
	case errors.As(err, &expired), isDenied(err),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, kgo.ErrClientClosed), errors.Is(err, errNotRunning):
		return false
	}
	return true
}

func (h *past) meta(ctx context.Context, topic string) (*answer[topicMeta], error) {
	return h.metas.get(ctx, topic, func(ctx context.Context) (topicMeta, error) {
		m, err := h.list.metadata(ctx, []string{topic})
		return m[topic], err
	})
}

// target returns where to read a partition of the incarnation id.
func (m *topicMeta) target(pl place, id frame.TopicID) (target, error) {
	switch {
	case m.err != nil:
		return target{}, m.err
	case m.id != id:
		return target{}, hub.ErrRecreated
	case pl.partition < 0 || int(pl.partition) >= len(m.leaders):
		return target{}, kerr.UnknownTopicOrPartition
	case m.leaders[pl.partition] == noLeader:
		return target{}, errNoLeader
	}
	return target{pl, id, m.leaders[pl.partition], m.epochs[pl.partition]}, nil
}

// listing lists where partitions begin and end, in whatever sense.
type listing func(ctx context.Context, want []place) (starts, ends map[place]listed)

// extent asks where a topic begins and ends.
func (h *past) extent(ctx context.Context, topic string, list listing) (extent, error) {
	metas, err := h.list.metadata(ctx, []string{topic})
	if err != nil {
		return extent{}, err
	}
	m := metas[topic]
	if m.err != nil {
		return extent{}, m.err
	}
	var want []place
	for p, leader := range m.leaders {
		if leader != noLeader {
			want = append(want, place{topic, int32(p)})
		}
	}
	starts, ends := list(ctx, want)
	x := extent{id: m.id}
	for _, pl := range want {
		start, ok := starts[pl]
		if end, ended := ends[pl]; ok && ended {
			x.bounds = append(x.bounds, hub.Bound{Partition: pl.partition, Start: start.offset, End: max(start.offset, end.offset)})
		}
	}
	if len(want) > 0 && len(x.bounds) == 0 {
		return extent{}, errors.New("no broker lists them")
	}
	return x, nil
}

// read fetches once and tells what came.
func (h *past) read(ctx context.Context, to target, from int64, each func(*frame.Record)) (hub.Span, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return hub.Span{}, ctx.Err()
	}
	h.t.counters.historyFetches.Add(1)
	rp, err := h.list.fetch(ctx, to, from, historyBytesMax)
	if err != nil {
		if errors.Is(err, kerr.OffsetOutOfRange) {
			return h.outOfRange(ctx, to.place, from)
		}
		return hub.Span{}, err
	}
	span, err := h.tell(ctx, to.place, from, rp, each)
	if err != nil {
		return hub.Span{}, err
	}
	if end := h.list.readableEnd(rp); span.Next == from && from < end && len(rp.RecordBatches) == 0 {
		return h.hole(ctx, to.place, from, end), nil
	}
	h.holes.found(holeAt{to.place, from})
	return span, nil
}

// outOfRange says why the brokers refuse an offset.
func (h *past) outOfRange(ctx context.Context, pl place, from int64) (hub.Span, error) {
	starts, ends := h.list.extents(ctx, []place{pl})
	start, ok := starts[pl]
	end, ended := ends[pl]
	switch {
	case ok && from < start.offset:
		return hub.Span{}, &hub.ExpiredError{Start: start.offset}
	case ended && from > end.offset:
		return hub.Span{Start: from, Next: from}, nil
	}
	return hub.Span{}, kerr.OffsetOutOfRange // the log moved since, or can't be listed
}

// hole looks at an answer without records though the log goes on to end.
// Compaction may have left none there (the last records before an open
// transaction), and then none is to come. But remote storage that is slow
// answers so too (KIP-405): only what the leader itself holds is believed. And
// so does a leader that has just taken over and does not know yet how far it
// may read: only what is seen for long enough is believed.
func (h *past) hole(ctx context.Context, pl place, from, end int64) hub.Span {
	local, ok := h.list.offsets(ctx, []place{pl}, atLocalStart)[pl]
	if !ok || from < local.offset || !h.holes.last(holeAt{pl, from}, time.Now(), h.t.cfg.Timing.Confirm) {
		return hub.Span{Start: from, Next: from}
	}
	return hub.Span{Start: from, Next: end}
}

// holes are the offsets at which nothing was found though the log goes on.
type holes struct {
	mu   sync.Mutex
	seen map[holeAt]holeSeen // at most answersMax
}

type holeAt struct {
	place
	from int64
}

type holeSeen struct{ first, last time.Time }

// last reports whether a hole is seen again and again for as long as confirm.
func (s *holes) last(at holeAt, now time.Time, confirm time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen[at]
	if !ok || now.Sub(seen.last) > holeForget {
		seen.first = now
	}
	seen.last = now
	if s.seen == nil || !ok && len(s.seen) >= answersMax {
		s.seen = make(map[holeAt]holeSeen)
	}
	s.seen[at] = seen
	return now.Sub(seen.first) >= confirm
}

// found forgets a hole that is none.
func (s *holes) found(at holeAt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, at)
}

// tell gives the records of whole batches to each, and ends before a batch that
// can't be read: a later call begins with it.
//
// The first batch is told from its base, except below the log start. That its
// transaction was aborted is known there too: brokers list the aborted ones
// that reach to from or beyond.
func (h *past) tell(ctx context.Context, pl place, from int64, rp *kmsg.FetchResponseTopicPartition, each func(*frame.Record)) (hub.Span, error) {
	first, _ := cutBatch(rp.RecordBatches)
	if first == nil && len(rp.RecordBatches) > 0 {
		return hub.Span{}, fmt.Errorf("the broker answers with less than one batch: %d bytes", len(rp.RecordBatches))
	}
	start := from
	if first != nil && isBatch(first) {
		start = min(from, max(baseOffset(first), rp.LogStartOffset))
	}
	w := walk{past: h, place: pl, next: start, each: each}
	if h.list.isolation == readCommitted {
		w.aborted = abortsOf(rp)
	}
	for rest := rp.RecordBatches; w.bytes < toldBytesMax; {
		var b []byte
		if b, rest = cutBatch(rest); b == nil {
			break
		}
		if err := ctx.Err(); err != nil {
			return hub.Span{}, err
		}
		if err := w.batch(b); err != nil {
			if w.next > from {
				break
			}
			return hub.Span{}, h.fault(pl, from, err)
		}
		w.read += len(b)
	}
	h.t.counters.historyRecords.Add(w.records)
	h.t.counters.historyBytes.Add(uint64(w.read))
	return hub.Span{Start: start, Next: max(w.next, from), Bytes: w.read}, nil
}

// fault explains why the batch that holds from can't be read.
func (h *past) fault(pl place, from int64, err error) error {
	h.t.counters.errors[kindOf(err)].Add(1)
	if large, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err); ok && large.NextOffset > from {
		return &hub.ExpiredError{Start: large.NextOffset}
	}
	return err
}

// walk is the telling of one fetch.
type walk struct {
	past    *past
	place   place
	each    func(*frame.Record)
	aborted aborts

	next    int64 // offset behind what was told
	records uint64
	read    int // bytes of the batches told
	bytes   int // the same, decompressed
	rec     frame.Record
	headers []frame.Header
}

// batch tells one batch, or message, of the log. After an error nothing of it
// was told.
func (w *walk) batch(b []byte) error {
	whole := isBatch(b)
	if whole && w.aborted.hold(b) && !hasAttr(b, attrControl) {
		w.next = max(w.next, endOffset(b))
		w.bytes += len(b)
		return nil
	}
	// Isolation is ours to see to, so none is asked for.
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: w.next, Topic: w.place.topic, Partition: w.place.partition, KeepControlRecords: true, Pools: []kgo.Pool{w.past.pools},
	}, &kmsg.FetchResponseTopicPartition{Partition: w.place.partition, RecordBatches: b}, w.past.decode, func(m kgo.FetchBatchMetrics) { w.bytes += m.UncompressedBytes })
	defer recycle(fp.Records)
	switch {
	case fp.Err != nil:
		return fp.Err
	case whole && next < endOffset(b):
		return fmt.Errorf("the batch at offset %d holds records that can't be decoded", baseOffset(b))
	}
	for _, rec := range fp.Records {
		if rec.Attrs.IsControl() {
			w.aborted.end(rec)
			continue
		}
		w.headers = convert(&w.rec, w.headers[:0], w.place.topic, rec)
		w.each(&w.rec)
		w.records++
	}
	w.next = next
	return nil
}
