package hub

import (
	"sync/atomic"
	"time"
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

// Labels is Read for the log of labels, of which Label.Place and Placement.Label
// are the places.
func (r *Reader) Labels(place int64) ([]byte, bool) { return r.feed.labels.read(place) }

// LabelHead is the place behind the newest label.
func (r *Reader) LabelHead() int64 { return r.feed.labels.head.Load() }

// LabelEnd returns LabelHead and the place of the frame of the label before it,
// negative without one.
func (r *Reader) LabelEnd() (head, frame int64) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.labels.head.Load(), f.labeled
}

// Heartbeat is how long a stream may be silent.
func (r *Reader) Heartbeat() time.Duration { return r.feed.hub.opts.Heartbeat }

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

// Boundary returns the place of the first record's frame that begins at or
// behind place, or the place behind the last frame.
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
// none) of the records whose frames begin before the place to, which a loop has
// read up to, but for those of the calls before.
func (r *Reader) Times(dst []int64, to int64) []int64 {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	e := &f.index.entries
	end := f.index.at(to)
	for i := max(r.seen, e.first); i < end; i++ {
		dst = append(dst, e.at(i).time)
	}
	r.seen = max(r.seen, end)
	return dst
}

// Watched and Unwatched count a filtered stream that is in the log, and has to
// be told the time.
func (r *Reader) Watched() { r.feed.timed.Add(1) }

// Unwatched undoes Watched.
func (r *Reader) Unwatched() { r.feed.timed.Add(-1) }

// Attached and Detached count a stream of the feed on this loop.
func (r *Reader) Attached() { r.streams.Add(1) }

// Detached undoes Attached.
func (r *Reader) Detached() { r.streams.Add(-1) }
