package hub

import (
	"log/slog"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"tailcast/frame"
)

// lagWindow is how far back the lag rule looks: a stream is slow when it is
// too far behind where the head was this long ago, so that a burst drops nobody.
const lagWindow = 5 * time.Second

// partitionsMax bounds the numbers of partitions, by which they are looked up:
// far above what one topic can have whose ids still fit a request head, and
// 400 KB a topic at most.
const partitionsMax = 100_000

// Feed is a set of topics in one format: its log, the index of the log and the
// position behind its newest record. Tails write it through sinks, loops read
// it through readers.
type Feed struct {
	hub    *Hub
	key    string
	spec   Spec
	src    Source
	sinks  []*sink // one a topic
	lot    *Lot    // that it was lent from; nil: it is kept
	log    log
	labels log // beside the frames; empty while no filter needs it

	lagMark atomic.Int64 // head of the log lagWindow ago; written by tick
	timed   atomic.Int64 // streams that look at the time: personal and filtered ones
	owns    atomic.Int64 // personal ones

	refused atomic.Bool // written under mu: see Refused

	claims atomic.Int64 // of who is about to attach a stream, or asks what it would be; raised under the shard's mutex
	kept   atomic.Bool  // opened for good, too
	used   atomic.Bool  // claimed since the last tick

	mu        sync.Mutex
	ended     bool      // sinks are deaf
	idleAt    time.Time // since when nobody reads it; zero: nobody did yet
	enc       *frame.Encoder
	ids       frame.IDWriter // the position as text; follows parts
	topics    []topic        // in the order of spec.Topics
	parts     []part         // in the order they became known
	index     index
	keys      *keys    // nil unless a route begins with them
	visible   uint64   // ordinal behind the newest record that loops may read
	fields    fieldSet // what filters compare
	labeler   *labeler // nil without fields
	evicted   int64    // the index holds nothing below this place
	unlabeled int64    // nor of which the label is below this one
	labeled   int64    // place of the frame of the newest published label, -1 without
	labeling  int64    // the same of the newest one
	silent    bool     // the position moved since the last frame that told it
	grew      bool     // a frame was appended since the last tick
	window    window   // in which marks wait
	beatAt    time.Time
	heads     [lagWindow / tickEvery]int64 // heads at the last ticks, a ring
	ticks     int
	readers   []*Reader // loops with streams of this feed
	losses    []loss    // the last of them; at most lossesMax
	lossN     int       // how many there ever were
	stats     Stats

	// Scratch.
	idBuf, frameBuf, labelBuf []byte
	want                      frame.Position
	nexts                     []int64
}

// topic is one topic of a feed.
type topic struct {
	name    string
	id      frame.TopicID
	tag     frame.Tag
	open    bool
	cuts    int     // how often its log was cut: the same offsets were other records before
	byParts []int32 // partition to its place in Feed.parts; -1: not known
}

// part is one partition of a feed.
type part struct {
	group int
	id    int32
	next  int64 // next offset to append; frame.Unknown until the tail knows
}

// Stats are a feed's counts since it was made.
type Stats struct {
	Records   uint64 // appended as an event, a delete or a skipped notice
	Silent    uint64 // passed over by the format's policies
	Dropped   uint64 // of them, those that are not UTF-8
	Skipped   uint64 // larger than the format allows
	Replaced  uint64 // sent with replacement characters
	Unnamed   uint64 // lost their event name: it was not fit for one
	Repeated  uint64 // offered again by the tail and ignored
	Refused   uint64 // of partitions outside 0 to partitionsMax-1, and ignored
	Heartbeat uint64
	Behind    uint64                  // streams placed before the end of the log
	Older     uint64                  // streams that began with history
	Keyless   uint64                  // records that no snapshot has: they have no key
	Shut      uint64                  // streams ended because their snapshot is refused
	Resyncs   map[frame.Reason]uint64 // events sent, by reason
}

// newFeed makes a feed, for lot if there is one.
func (h *Hub) newFeed(key string, spec Spec, src Source, lot *Lot) (*Feed, error) {
	if err := spec.checkTopics(); err != nil {
		return nil, err
	}
	spec.Topics = slices.Clone(spec.Topics)
	enc, err := frame.NewEncoder(spec.Format)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	f := &Feed{hub: h, key: key, spec: spec, src: src, lot: lot, enc: enc, beatAt: now, labeled: -1, labeling: -1}
	f.log.init(&h.pool, h.opts.LogBytes)
	f.labels.init(&h.pool, h.opts.LogBytes)
	for _, name := range spec.Topics {
		f.sinks = append(f.sinks, &sink{f, len(f.topics)})
		f.topics = append(f.topics, topic{name: name, tag: frame.MakeTag(name, frame.TopicID{})})
	}
	f.reposition()
	if err := f.learn(spec.Fields); err != nil || lot == nil {
		return f, err
	}
	lot.mu.Lock()
	defer lot.mu.Unlock()
	if err := lot.take(now); err != nil {
		return nil, err
	}
	lot.feeds[f] = struct{}{}
	return f, nil
}

// Topics returns the names of the feed's topics; the caller must not change them.
func (f *Feed) Topics() []string { return f.spec.Topics }

// isOpen reports whether every topic is open. mu must be held.
func (f *Feed) isOpen() bool {
	for i := range f.topics {
		if !f.topics[i].open {
			return false
		}
	}
	return true
}

// part returns the place of a partition in parts, or -1. mu must be held.
func (f *Feed) part(group int, partition int32) int {
	known := f.topics[group].byParts
	if partition < 0 || int(partition) >= len(known) {
		return -1
	}
	return int(known[partition])
}

// addPart makes a partition known; false if its number is out of bounds. mu
// must be held.
func (f *Feed) addPart(group int, partition int32, next int64) bool {
	if partition < 0 || partition >= partitionsMax {
		return false
	}
	t := &f.topics[group]
	for len(t.byParts) <= int(partition) {
		t.byParts = append(t.byParts, -1)
	}
	t.byParts[partition] = int32(len(f.parts))
	f.parts = append(f.parts, part{group, partition, next})
	f.index.parts = append(f.index.parts, partIndex{base: next})
	f.addKeyPart(next)
	return true
}

// position returns where the feed is. mu must be held.
func (f *Feed) position() frame.Position {
	pos := make(frame.Position, len(f.topics))
	for g := range f.topics {
		pos[g].Tag = f.topics[g].tag
	}
	for _, p := range f.parts {
		if p.next != 0 {
			pos[p.group].Parts = append(pos[p.group].Parts, frame.Partition{ID: p.id, Next: p.next})
		}
	}
	for _, g := range pos {
		sort.Slice(g.Parts, func(i, j int) bool { return g.Parts[i].ID < g.Parts[j].ID })
	}
	return pos
}

// reposition gives the id writer the topics and partitions as they are now.
// mu must be held.
func (f *Feed) reposition() {
	f.ids.Set(f.position())
	f.judge()
}

// Refused reports whether ids of the feed are longer than requests should have
// to bring back (frame.IDMax): it has too many partitions, and no stream may
// begin. Safe from any goroutine.
func (f *Feed) Refused() bool { return f.refused.Load() }

// judge says whether the feed is refused, now that its ids have changed. mu must
// be held.
func (f *Feed) judge() {
	n := f.ids.Len()
	if long := n > frame.IDMax; long != f.refused.Load() {
		if f.refused.Store(long); long {
			f.hub.log.Error("a feed is refused: its event ids are too long for requests to bring them back",
				slog.Any("topics", f.spec.Topics), slog.Int("partitions", len(f.parts)), slog.Int("bytes", n), slog.Int("most", frame.IDMax))
		}
	}
}

// put appends one whole frame that belongs to no record. mu must be held.
func (f *Feed) put(b []byte, kind LabelKind) {
	f.label(kind, f.log.append(b), len(b), nil)
	f.grew = true
	f.evict()
}

// evict makes labels and index follow the log's oldest end, and the log give
// up what the index can't hold. mu must be held.
func (f *Feed) evict() {
	for {
		if f.evicted != f.log.first || f.unlabeled != f.labels.first {
			f.evicted = f.log.first
			f.dropLabels(f.evicted)
			f.unlabeled = f.labels.first
			f.index.evict(f.evicted, f.unlabeled)
		}
		if int64(f.index.entries.len()) <= f.log.max/frameBytesMean || !f.log.dropOldest() {
			return
		}
	}
}

// flush lets the loops read what was appended and wakes them, with w's round or
// when the flush window is over. mu must be held.
func (f *Feed) flush(w *Wakes) {
	if f.publish() {
		f.markSoon(w)
	}
}

// flushNow is flush for what no window holds up. mu must be held.
func (f *Feed) flushNow(w *Wakes) {
	if f.publish() {
		f.mark(w)
	}
}

// publish lets the loops read what was appended and reports whether they are
// to be told. mu must be held.
func (f *Feed) publish() (news bool) {
	if f.silent {
		f.idBuf = f.ids.Append(f.idBuf[:0])
		f.frameBuf = frame.AppendIDBlock(f.frameBuf[:0], f.idBuf)
		f.put(f.frameBuf, LabelNone)
		f.silent = false
	}
	f.visible = f.index.entries.end()
	if f.log.head.Load() == f.log.end {
		return false
	}
	f.log.publish()
	f.labels.publish() // whoever sees a label sees its frame
	f.labeled = f.labeling
	return f.isOpen() // else its streams wait, and a mark would only beat them
}

// mark puts the feed into the mailboxes of the loops that read it, which are
// woken with w's round. mu must be held.
func (f *Feed) mark(w *Wakes) {
	f.window.closed(f.log.end)
	for _, r := range f.readers {
		r.box.mark(r, w)
	}
}

// tick follows the clock, every tickEvery. It reports whether the feed should
// end.
func (f *Feed) tick(now time.Time, w *Wakes) (ends bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follow(now, w)
	return f.idle(now)
}

// follow beats a silent feed and wakes streams that look at the time. mu must be
// held.
func (f *Feed) follow(now time.Time, w *Wakes) {
	f.moveLagMark()
	f.sweepKeys(now)
	if f.wantsLoad(now) {
		f.hub.load(f)
	}
	if f.timed.Load() > 0 {
		f.mark(w) // they look at the time
	}
	grew := f.grew
	f.grew = false
	open := f.isOpen()
	if grew && open {
		f.beatAt = now
	}
	if now.Sub(f.beatAt) < f.hub.opts.Heartbeat {
		return
	}
	f.beatAt = now
	if !open { // its streams have no place in the log, whatever is appended: their loops beat them
		f.mark(w)
		return
	}
	f.stats.Heartbeat++
	f.frameBuf = append(f.frameBuf[:0], frame.Heartbeat...)
	f.put(f.frameBuf, noLabel)
	f.flushNow(w)
	f.grew = false
}

// moveLagMark takes note of the head and brings up the note of lagWindow ago.
// mu must be held.
func (f *Feed) moveLagMark() {
	head := &f.heads[f.ticks%len(f.heads)]
	f.ticks++
	f.lagMark.Store(*head)
	*head = f.log.head.Load()
}

// weight is the log's bytes a subscriber, false while there is nothing to give up.
func (f *Feed) weight() (float64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(*f.log.table.Load()) < 2 {
		return 0, false
	}
	return float64(f.log.held+f.labels.held) / float64(1+f.streams()), true
}

// streams counts the feed's streams on all loops. mu must be held.
func (f *Feed) streams() int {
	n := 0
	for _, r := range f.readers {
		n += int(r.streams.Load())
	}
	return n
}

// dropOldest gives up the log's oldest segment; it is no growth that would
// put off a heartbeat.
func (f *Feed) dropOldest() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.log.dropOldest() {
		return false
	}
	f.evict()
	return true
}

// Snapshot is what a feed looks like at one moment.
type Snapshot struct {
	Topics      []string
	Open        bool
	ID          string // the position as an event id
	LogBytes    int64  // capacity of the segments of the log and its labels
	First, Head int64  // places of the oldest and behind the newest byte
	Indexed     int    // records in the log
	Streams     int
	Stats       Stats
}

// Snapshot is for status and metrics. Safe from any goroutine.
func (f *Feed) Snapshot() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Snapshot{
		Topics: f.spec.Topics, Open: f.isOpen(), ID: string(f.ids.Append(nil)),
		LogBytes: f.log.held + f.labels.held, First: f.log.first, Head: f.log.head.Load(),
		Indexed: f.index.entries.len(), Streams: f.streams(), Stats: f.stats,
	}
	s.Stats.Resyncs = maps.Clone(f.stats.Resyncs)
	return s
}

// resynced counts resync events by reason.
func (s *Stats) resynced(reason frame.Reason, n uint64) {
	if s.Resyncs == nil {
		s.Resyncs = map[frame.Reason]uint64{}
	}
	s.Resyncs[reason] += n
}

// IsOpen reports whether every topic is open, so that streams have places.
// Safe from any goroutine.
func (f *Feed) IsOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isOpen()
}
