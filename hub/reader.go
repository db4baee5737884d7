package hub

import (
	"sync/atomic"

	"tailcast/frame"
)

// Reader is one feed on one loop: what the loop's streams of the feed share.
// Its methods belong to the loop.
type Reader struct {
	feed    *Feed
	box     *Mailbox
	dirty   atomic.Bool  // in the mailbox
	streams atomic.Int64 // attached and not yet detached; written by the loop
	seen    uint64       // ordinal behind the newest record that Times told

	// Streams is the loop's own: its streams of the feed.
	Streams any
}

// Reader makes the feed known to a loop, which calls it when its first stream
// of the feed comes, and Close when the last has gone.
func (f *Feed) Reader(box *Mailbox) *Reader {
	r := &Reader{feed: f, box: box}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.seen = f.visible
	f.readers = append(f.readers, r)
	return r
}

// Close ends what Reader began. The mailbox may still hold r once.
func (r *Reader) Close() {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, x := range f.readers {
		if x == r {
			last := len(f.readers) - 1
			f.readers[i] = f.readers[last]
			f.readers[last] = nil
			f.readers = f.readers[:last]
			return
		}
	}
}

// Feed returns the feed that r reads.
func (r *Reader) Feed() *Feed { return r.feed }

// Read returns the bytes of the log from place on that lie together, none at
// the head, or false when the log no longer holds place. They are whole
// frames if place was the beginning of one, read-only, and valid until the
// loop's turn ends.
func (r *Reader) Read(place int64) ([]byte, bool) { return r.feed.log.read(place) }

// Head is the place behind the newest frame.
func (r *Reader) Head() int64 { return r.feed.log.head.Load() }

// LagMark is where the head was about five seconds ago.
func (r *Reader) LagMark() int64 { return r.feed.lagMark.Load() }

// Records returns how many records' frames begin in the log from from to to,
// both in the log; those of an earlier generation don't count.
func (r *Reader) Records(from, to int64) int {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return int(f.index.at(to) - f.index.at(from))
}

// Boundary returns the place of the first frame that begins at or behind
// place, or the place behind the last frame.
func (r *Reader) Boundary(place int64) int64 {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.index.at(place); i < f.index.entries.end() {
		return f.index.entries.at(i).place
	}
	return f.log.end
}

// Times appends to dst the timestamps (in milliseconds since 1970, negative:
// none) of the records that became readable since the last call.
func (r *Reader) Times(dst []int64) []int64 {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	e := &f.index.entries
	for i := max(r.seen, e.first); i < f.visible; i++ {
		dst = append(dst, e.at(i).time)
	}
	r.seen = f.visible
	return dst
}

// Start is where a client asks to go on.
type Start struct {
	Position frame.Position // nil: nowhere in particular, so the start policy says
	Foreign  bool           // the client sent an id that is none of ours; Position is nil
}

// Placement is where a stream goes on.
type Placement struct {
	Place   int64        // in the log
	Waiting bool         // the feed is not open: call Attach again when it is marked
	Behind  bool         // Place is before the head
	Resync  frame.Reason // why the client's position could not be kept; empty if it was
}

// Attach places a stream and appends its first block to dst: retryMillis and
// the position it goes on from, then a resync event if that is not the
// client's own. With retryMillis 0 (a stream that waited) the block holds the
// id alone. From then on the stream gets every record appended: whatever the
// placement leaves out was delivered before.
func (r *Reader) Attach(start Start, retryMillis int, dst []byte) (Placement, []byte) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isOpen() {
		return Placement{Waiting: true}, frame.AppendPreamble(dst, retryMillis, nil)
	}
	at := Placement{Place: f.log.end}
	var id []byte
	switch {
	case start.Foreign:
		at.Resync = frame.UnknownID
	case start.Position != nil:
		var want frame.Position
		if want, at.Resync = f.match(start.Position); at.Resync == "" {
			at.Place, at.Resync = f.place(want)
			id = frame.AppendID(nil, want)
		}
	}
	if at.Resync != "" || id == nil {
		id = f.ids.Append(nil)
		at.Place = f.log.end
	}
	at.Behind = at.Place < f.log.end
	if retryMillis > 0 {
		dst = frame.AppendPreamble(dst, retryMillis, id)
	} else {
		dst = frame.AppendIDBlock(dst, id)
	}
	if at.Resync != "" {
		f.stats.resynced(at.Resync, 1)
		dst = frame.AppendResync(dst, id, at.Resync, nil)
	}
	return at, dst
}

// Attached and Detached count a stream of the feed on this loop.
func (r *Reader) Attached() { r.streams.Add(1) }

// Detached undoes Attached.
func (r *Reader) Detached() { r.streams.Add(-1) }

// match arranges a client's position by the feed's topics, with the feed's
// tags, so that its groups stand in the feed's order. A topic the position
// does not name follows the start policy. mu must be held.
func (f *Feed) match(pos frame.Position) (frame.Position, frame.Reason) {
	want := f.position()
	for _, g := range pos {
		t := f.named(g.Tag, len(pos))
		if t < 0 {
			return nil, frame.UnknownID
		}
		if tag := f.topics[t].tag; g.Tag.ID != [3]byte{} && g.Tag.ID != tag.ID {
			return nil, frame.Recreated
		}
		want[t].Parts = g.Parts
	}
	return want, ""
}

// named returns the topic a tag names, or -1. A group without a tag is taken
// for the only topic. mu must be held.
func (f *Feed) named(tag frame.Tag, groups int) int {
	if tag.Name == [2]byte{} {
		if groups == 1 && len(f.topics) == 1 {
			return 0
		}
		return -1
	}
	for t := range f.topics {
		if f.topics[t].tag.Name == tag.Name {
			return t
		}
	}
	return -1
}

// place finds where in the log a position goes on. want has the feed's
// groups. mu must be held.
func (f *Feed) place(want frame.Position) (int64, frame.Reason) {
	next := make([]int64, len(f.parts))
	for i := range f.parts {
		next[i] = 0
	}
	for g := range want {
		for _, p := range want[g].Parts {
			i := f.part(g, p.ID)
			if i < 0 {
				return 0, frame.UnknownID // a partition this node has not seen yet
			}
			next[i] = p.Next
		}
	}
	for i := range f.parts {
		p, base := &f.parts[i], f.index.parts[i].base
		switch {
		case next[i] == frame.Unknown:
			next[i] = p.next
		case p.next == frame.Unknown, next[i] < base, next[i] > p.next:
			return 0, frame.UnknownID
		}
	}
	place, ok := f.index.find(func(i int) int64 { return next[i] }, f.log.end)
	if !ok {
		return 0, frame.UnknownID
	}
	return place, ""
}
