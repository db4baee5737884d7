// Package hub holds what browsers read: one shared log of encoded frames a
// feed, an index of the records in it, and the places from which streams go
// on. It takes records from tails (Sink) and wakes event loops (Mailbox); it
// never writes to a socket, never waits for a browser and knows neither Kafka
// nor gnet.
package hub

import (
	"container/heap"
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"tailcast/internal/wait"
)

// Options are the bounds and periods of a hub. Every field but FlushWindow must
// be set; those behind History only with it.
type Options struct {
	LogBytes      int64         // ceiling of one feed's log, at least two segments
	LogBytesTotal int64         // ceiling of all logs together
	Heartbeat     time.Duration // silence after which a stream gets a heartbeat
	Idle          time.Duration // how long a lent feed is kept without streams
	FlushWindow   time.Duration // how long loops may be left asleep over new records; 0: not at all

	History    History // reads what logs no longer hold; nil: nothing does
	ReplayMax  int64   // records of history delivered to one resume
	ReplayScan int64   // bytes of history read for one resume
	Replays    int     // reads of history at a time

	SnapshotBytes int64 // ceiling of the latest records of one feed's keys

	Log *slog.Logger // nil: nothing is logged
}

// tickEvery is how often Run looks at each feed: the grain of heartbeats
// (15 s by default) and of the lag rule's five seconds.
const tickEvery = 500 * time.Millisecond

// feedShards is how many locks the names of feeds are spread over, so that
// loops opening streams of different feeds do not meet.
const feedShards = 64

// Hub is the set of feeds of one process. Safe from any goroutine.
type Hub struct {
	opts    Options
	pool    pool
	replays replays
	loads   chan struct{} // holds those who load keys, at most loadsMax
	log     *slog.Logger
	seed    maphash.Seed

	shards [feedShards]shard

	// Scratch of Tick.
	ticked []*Feed
	wakes  Wakes
}

type shard struct {
	mu    sync.Mutex
	feeds map[string]*Feed
}

// New returns a hub without feeds. boxes are the loops that will read from
// it, one each; the set is fixed because a segment is used again only when
// every one of them has passed a turn.
func New(opts Options, boxes []*Mailbox) *Hub {
	h := &Hub{opts: opts, seed: maphash.MakeSeed()}
	h.loads = make(chan struct{}, loadsMax)
	if h.log = opts.Log; h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.pool.boxes = boxes
	h.replays.init(opts.History, opts.Replays)
	for i := range h.shards {
		h.shards[i].feeds = map[string]*Feed{}
	}
	return h
}

// Open returns the feed of spec, made on first use, asking src to tail its
// topics. It is kept for good. An error names the part of spec that is wrong.
func (h *Hub) Open(spec Spec, src Source) (*Feed, error) { return h.open(spec, src, nil) }

// open is Open, and Lend for lot.
func (h *Hub) open(spec Spec, src Source, lot *Lot) (*Feed, error) {
	key := spec.key()
	s := h.shard(key)
	s.mu.Lock()
	f, ok := s.feeds[key]
	if !ok {
		var err error
		if f, err = h.newFeed(key, spec, src, lot); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		s.feeds[key] = f
	}
	f.claim(lot != nil)
	s.mu.Unlock()
	if spec.Keys {
		f.keepKeys()
	}
	if ok {
		if err := f.learn(spec.Fields); err != nil {
			f.Release()
			return nil, err
		}
		return f, nil
	}
	for _, sink := range f.sinks {
		src.Tail(f.topics[sink.group].name, sink)
	}
	return f, nil
}

func (h *Hub) shard(key string) *shard { return &h.shards[maphash.String(h.seed, key)%feedShards] }

// Feeds returns every feed, ordered by topics, for metrics and for the tick.
func (h *Hub) Feeds() []*Feed {
	all := h.all(nil)
	slices.SortFunc(all, func(a, b *Feed) int { return strings.Compare(a.key, b.key) })
	return all
}

// all appends every feed to dst.
func (h *Hub) all(all []*Feed) []*Feed {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		for _, f := range s.feeds {
			all = append(all, f)
		}
		s.mu.Unlock()
	}
	return all
}

// Run beats silent feeds, keeps the marks of the lag rule, ends lent feeds that
// nobody reads, holds all logs below LogBytesTotal and reads history, until ctx
// ends.
func (h *Hub) Run(ctx context.Context) {
	h.replays.start(ctx)
	defer h.replays.stop()
	wait.Every(ctx, tickEvery, h.Tick)
}

// Tick is what Run does twice a second. Not beside Run: it is for those who drive
// the time by hand.
func (h *Hub) Tick(now time.Time) {
	h.ticked = h.all(h.ticked[:0])
	for _, f := range h.ticked {
		if f.tick(now, &h.wakes) {
			h.end(f)
		}
	}
	h.wakes.Wake()
	h.trim(h.ticked)
	clear(h.ticked)
	h.replays.tick(now)
}

// load has the keys of a feed loaded. Hub.Run only.
func (h *Hub) load(f *Feed) {
	ctx := h.replays.ctx
	h.replays.wg.Go(func() {
		select {
		case h.loads <- struct{}{}:
			defer func() { <-h.loads }()
			f.load(ctx)
		case <-ctx.Done():
		}
	})
}

// trim takes the oldest segments of the feeds with most bytes a subscriber
// until all logs together are below the ceiling. It runs once a tick: between
// two ticks the total may pass the ceiling by what was appended meanwhile.
func (h *Hub) trim(feeds []*Feed) {
	if h.pool.held.Load() <= h.opts.LogBytesTotal {
		return
	}
	var heaviest weights
	for _, f := range feeds {
		if bytes, ok := f.weight(); ok {
			heaviest = append(heaviest, weight{f, bytes})
		}
	}
	heap.Init(&heaviest)
	for len(heaviest) > 0 && h.pool.held.Load() > h.opts.LogBytesTotal {
		f := heap.Pop(&heaviest).(weight).feed
		if !f.dropOldest() {
			continue
		}
		if bytes, ok := f.weight(); ok {
			heap.Push(&heaviest, weight{f, bytes})
		}
	}
}

// weights are feeds that have something to give up, the heaviest first: a heap.
type weights []weight

type weight struct {
	feed  *Feed
	bytes float64 // a subscriber
}

func (w *weights) Len() int           { return len(*w) }
func (w *weights) Less(i, k int) bool { return (*w)[i].bytes > (*w)[k].bytes }
func (w *weights) Swap(i, k int)      { (*w)[i], (*w)[k] = (*w)[k], (*w)[i] }
func (w *weights) Push(x any)         { *w = append(*w, x.(weight)) }
func (w *weights) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = (*w)[:last]
	return x
}
