package hub

import (
	"errors"
	"sync"
	"time"
)

const (
	// lotFeedsMax bounds the feeds of one lot. A feed with little to say takes
	// some 15 KB here and a place in each fetch, so a lot that is full costs
	// less than 100 MB beside its logs, which LogBytesTotal bounds.
	lotFeedsMax = 5000
	// lotBurst and lotRate bound how fast a lot's feeds are made, each of which
	// asks brokers for offsets: a node that starts has its first thousand at
	// once, and a client that walks through names keeps nobody else from theirs
	// for longer than it takes browsers to come back.
	lotBurst = 1000
	lotRate  = 100 // a second
)

// ErrFull says that a lot has as many feeds as it may, or made them too fast:
// the client should come back later.
var ErrFull = errors.New("there are too many feeds")

// Lot is the feeds that the requests of one route make. Safe from any goroutine.
type Lot struct {
	mu    sync.Mutex // taken behind a shard's, before a feed's
	feeds map[*Feed]struct{}
	past  Stats // of feeds that ended

	refused uint64
	credit  float64 // feeds that may be made at once
	creditT time.Time
}

// NewLot returns a lot without feeds.
func NewLot() *Lot { return &Lot{feeds: map[*Feed]struct{}{}, credit: lotBurst} }

// take makes room for one more feed, or returns ErrFull. mu must be held.
func (l *Lot) take(now time.Time) error {
	if !l.creditT.IsZero() {
		l.credit = min(lotBurst, l.credit+now.Sub(l.creditT).Seconds()*lotRate)
	}
	l.creditT = now
	if len(l.feeds) >= lotFeedsMax || l.credit < 1 {
		l.refused++
		return ErrFull
	}
	l.credit--
	return nil
}

// LotSnapshot is what a lot's feeds look like at one moment, all together.
type LotSnapshot struct {
	Feeds    int
	Refused  uint64 // feeds that were not made
	Streams  int
	LogBytes int64
	Stats    Stats // of those that ended, too
}

// Snapshot is for status and metrics. Its counts never go back.
func (l *Lot) Snapshot() LotSnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := LotSnapshot{Feeds: len(l.feeds), Refused: l.refused}
	s.Stats.add(&l.past)
	for f := range l.feeds {
		f.mu.Lock()
		s.Streams += f.streams()
		s.LogBytes += f.log.held + f.labels.held
		s.Stats.add(&f.stats)
		f.mu.Unlock()
	}
	return s
}

// add adds the counts of b.
func (s *Stats) add(b *Stats) {
	s.Records += b.Records
	s.Silent += b.Silent
	s.Dropped += b.Dropped
	s.Skipped += b.Skipped
	s.Replaced += b.Replaced
	s.Unnamed += b.Unnamed
	s.Repeated += b.Repeated
	s.Refused += b.Refused
	s.Heartbeat += b.Heartbeat
	s.Behind += b.Behind
	s.Older += b.Older
	s.Keyless += b.Keyless
	s.Shut += b.Shut
	for reason, n := range b.Resyncs {
		s.resynced(reason, n)
	}
}

// Lend returns the feed of spec, made on first use for lot unless that is
// ErrFull. It ends when it has had no streams for Options.Idle; until the caller
// calls Release, once its stream is attached or given up, or Forgo, it has one.
func (h *Hub) Lend(spec Spec, src Source, lot *Lot) (*Feed, error) { return h.open(spec, src, lot) }

// Find is Lend for a feed that is there already; false if it is not.
func (h *Hub) Find(spec Spec) (*Feed, bool) {
	key := spec.key()
	s := h.shard(key)
	s.mu.Lock()
	f, ok := s.feeds[key]
	if ok {
		f.claim(true)
	}
	s.mu.Unlock()
	if ok && f.learn(spec.Fields) != nil { // which Lend says why
		f.Release()
		return nil, false
	}
	if ok && spec.Keys {
		f.keepKeys()
	}
	return f, ok
}

// claim keeps the feed: for one who will give it back if lent, else for good.
// Its shard's mutex must be held.
func (f *Feed) claim(lent bool) {
	if f.claims.Add(1); !lent {
		f.kept.Store(true)
	}
}

// Release gives back what Lend or Find returned.
func (f *Feed) Release() {
	f.used.Store(true)
	f.claims.Add(-1)
}

// Forgo is Release for one who wanted no stream: a feed that was made for no
// other does not stay for Options.Idle.
func (f *Feed) Forgo() { f.claims.Add(-1) }

// idle reports whether a lent feed has had no streams for long enough to end.
// mu must be held; Hub.Run only.
func (f *Feed) idle(now time.Time) bool {
	if f.lot == nil || f.kept.Load() {
		return false
	}
	switch {
	case f.used.Swap(false) || f.streams() > 0:
		f.idleAt = now
	case f.claims.Load() > 0:
		return false
	}
	return now.Sub(f.idleAt) >= f.hub.opts.Idle
}

// end ends a lent feed, unless somebody has just claimed it: its topics are
// tailed no longer for it, and its memory is free. Hub.Run only.
func (h *Hub) end(f *Feed) {
	s := h.shard(f.key)
	s.mu.Lock()
	f.lot.mu.Lock()
	f.mu.Lock()
	ends := f.claims.Load() == 0 && f.streams() == 0 && !f.kept.Load()
	if ends {
		delete(s.feeds, f.key)
		delete(f.lot.feeds, f)
		f.lot.past.add(&f.stats)
		f.stats = Stats{}
		f.close()
	}
	f.mu.Unlock()
	f.lot.mu.Unlock()
	s.mu.Unlock()
	if !ends {
		return
	}
	for _, sink := range f.sinks {
		f.src.End(f.topics[sink.group].name, sink)
	}
}

// close frees a feed's memory. mu must be held.
func (f *Feed) close() {
	f.ended = true
	f.log.publish()
	f.log.close()
	f.labels.publish()
	f.labels.close()
	f.index.reset()
	f.visible = f.index.entries.end()
	f.keys = nil
}
