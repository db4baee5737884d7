package hub

import (
	"fmt"
	"log/slog"
	"time"

	"tailcast/frame"
)

const (
	// sweepEvery is how often tombstones are looked for that brokers need not
	// keep either: their retention is hours.
	sweepEvery = 10 * time.Second
	// sweepMost bounds the segments of a table that one sweep looks through, some
	// 2 ms in which the feed is locked; the rest is for the next tick.
	sweepMost = 64
	// deleteRetention is Kafka's default for delete.retention.ms.
	deleteRetention = 24 * time.Hour
)

// keys are the latest records of a feed's keys, from which streams with
// FromSnapshot begin. One for all routes and clients of the feed: a stream
// reads it in slices, and holds nothing of it but its position. Feed.mu guards
// it.
//
// A table is read from the brokers once (load), and kept up by Feed.append from
// then on.
type keys struct {
	parts   []keyPart // of Feed.parts
	held    int64     // bytes of all tables, and of those that are being loaded
	refusal string    // why it holds nothing; empty if it does
	drops   int       // sweeps that forgot tombstones
	sweptAt time.Time

	round   int  // changes when what is being loaded is void
	loading bool // a loader is at work
	retryAt time.Time
	tries   int
	cleanup []*Cleanup // of the topics, once they are known

	buf []byte // scratch
}

// keyPart is one partition of keys.
type keyPart struct {
	table   *keyTable // nil until it is loaded
	news    *keyTable // what was appended since the loader reads the last of it
	gone    []string  // keys that have no record any more since then, at most loadGap
	trusted int64     // who has a position before it may have missed deletions
}

// KeysStats say how it stands with the keys of a feed.
type KeysStats struct {
	Loading bool   // some partition is not loaded
	Refusal string // why there are none; empty if there are
	Keys    int
	Deletes int // of them tombstones
	Bytes   int64
}

// keepKeys has the feed hold its keys from now on.
func (f *Feed) keepKeys() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys != nil {
		return
	}
	f.keys = &keys{cleanup: make([]*Cleanup, len(f.topics))}
	for i := range f.parts {
		f.addKeyPart(f.parts[i].next)
	}
}

// addKeyPart adds a partition, which needs no loading if it has nothing yet.
// mu must be held.
func (f *Feed) addKeyPart(next int64) {
	if f.keys == nil {
		return
	}
	var p keyPart
	if next == 0 {
		p.table = newKeyTable()
	}
	f.keys.parts = append(f.keys.parts, p)
}

// voidKeys forgets what is held, of one partition or with -1 of all, so that it
// is loaded again, and with it what came beside a table that is being loaded: no
// loader will finish that. mu must be held.
func (f *Feed) voidKeys(part int) {
	k := f.keys
	if k == nil {
		return
	}
	k.round++
	k.refusal, k.retryAt, k.tries = "", time.Time{}, 0
	for i := range k.parts {
		if part < 0 || i == part || k.parts[i].table == nil {
			k.parts[i] = keyPart{}
		}
	}
	k.held = 0
	for i := range k.parts {
		if t := k.parts[i].table; t != nil {
			k.held += t.bytes()
		}
	}
}

// keep makes a record that was just appended the latest of its key. mu must be
// held.
func (f *Feed) keep(i int, rec *frame.Record, out frame.Outcome) {
	k := f.keys
	if k == nil || k.refusal != "" {
		return
	}
	t := k.parts[i].table
	if t == nil {
		t = k.parts[i].news
	}
	switch {
	case t == nil: // the loader will come to it
		return
	case rec.Key == nil:
		f.stats.Keyless++
		return
	}
	before := t.bytes()
	if out.Kind == frame.Silent {
		if !f.forgetKey(&k.parts[i], t, rec.Key) {
			return
		}
	} else {
		k.buf = k.buf[:0]
		if f.labeler != nil {
			k.buf = append(k.buf, f.labelBuf...)
		}
		k.buf = frame.AppendReframed(k.buf, anyID, f.frameBuf, out.Extents)
		at := int64(-1)
		if rec.Value == nil {
			at = time.Now().UnixMilli()
		}
		t.put(rec.Offset, rec.Key, k.buf, at)
	}
	if k.held += t.bytes() - before; k.held > f.hub.opts.SnapshotBytes {
		f.refuseKeys(k.count())
	}
}

// forgetKey removes a key whose latest record is none of the format's; false if
// all keys were given up for it. mu must be held.
func (f *Feed) forgetKey(p *keyPart, t *keyTable, key []byte) bool {
	if t.forget(key); t != p.news {
		return true
	}
	if p.gone = append(p.gone, string(key)); len(p.gone) > loadGap {
		f.voidKeys(-1) // it takes the loader too long
		return false
	}
	return true
}

func (k *keys) count() (n int) {
	for i := range k.parts {
		for _, t := range []*keyTable{k.parts[i].table, k.parts[i].news} {
			if t != nil {
				n += t.live
			}
		}
	}
	return n
}

// refuseKeys gives up the keys, which are at least so many, until the topic is
// another one: streams that begin with them are ended. mu must be held.
func (f *Feed) refuseKeys(keys int) {
	why := fmt.Sprintf("the latest records of %d keys need more than %d bytes (--snapshot-bytes)", keys, f.hub.opts.SnapshotBytes)
	f.voidKeys(-1)
	f.keys.refusal = why
	f.hub.log.Error("a snapshot is refused", slog.Any("topics", f.spec.Topics), slog.String("reason", why))
	f.mark(nil)
}

// sweepKeys forgets tombstones that have been there for as long as brokers keep
// them. mu must be held.
func (f *Feed) sweepKeys(now time.Time) {
	k := f.keys
	if k == nil || now.Sub(k.sweptAt) < sweepEvery {
		return
	}
	for i := range k.parts {
		t := k.parts[i].table
		if t == nil {
			continue
		}
		was, before := t.dropped, t.bytes()
		more := t.expire(now.Add(-f.retention(f.parts[i].group)).UnixMilli(), sweepMost)
		if k.held += t.bytes() - before; t.dropped != was {
			k.drops++
		}
		if more {
			return
		}
	}
	k.sweptAt = now
}

// retention is how long the brokers keep a topic's tombstones. mu must be held.
func (f *Feed) retention(group int) time.Duration {
	if c := f.keys.cleanup[group]; c != nil {
		return c.DeleteRetention
	}
	return deleteRetention
}

// Keys reports how it stands with the feed's keys; false if it holds none. Safe
// from any goroutine.
func (f *Feed) Keys() (KeysStats, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.keys
	if k == nil {
		return KeysStats{}, false
	}
	s := KeysStats{Refusal: k.refusal, Bytes: k.held, Loading: !f.isOpen()}
	for i := range k.parts {
		if t := k.parts[i].table; t != nil {
			s.Keys += t.live
			s.Deletes += t.deletes
		} else if f.parts[i].next != frame.Unknown && k.refusal == "" {
			s.Loading = true
		}
	}
	return s, true
}
