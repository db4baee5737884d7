package hub

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tailcast/frame"
	"tailcast/internal/wait"
)

const (
	// loadsMax bounds the feeds whose keys are loaded at a time: each reads and
	// encodes as fast as it can.
	loadsMax = 4
	// loadGap is how many offsets a loader may be behind its feed when the
	// records that are appended begin to be kept for it: about one read's.
	loadGap = 4096
)

// errVoid says that what was being loaded is not wanted any more.
var errVoid = errors.New("the topic has changed meanwhile")

// keyLoad is the loading of one partition's keys. It works beside the feed, and
// takes its lock once a read.
type keyLoad struct {
	f     *Feed
	round int
	part  int
	key   chunkKey
	topic string

	enc     *frame.Encoder
	labeler *labeler
	table   *keyTable
	from    int64 // next offset to read
	recent  int64 // tombstones from then on are still there; milliseconds since 1970
	trusted int64
	keyless uint64
	counted int64 // of the table's bytes, in keys.held
	buf     []byte
}

// wantsLoad reports whether a loader should start, and counts on it. mu must be
// held.
func (f *Feed) wantsLoad(now time.Time) bool {
	k := f.keys
	if k == nil || f.ended || k.loading || k.refusal != "" || f.hub.opts.History == nil || now.Before(k.retryAt) {
		return false
	}
	_, k.loading = f.nextLoad()
	return k.loading
}

// nextLoad returns a partition that is not loaded. mu must be held.
func (f *Feed) nextLoad() (part int, ok bool) {
	for i := range f.keys.parts {
		if f.keys.parts[i].table == nil && f.parts[i].next != frame.Unknown {
			return i, true
		}
	}
	return 0, false
}

// load loads the keys of a feed until there is nothing left to load, or what
// can't be loaded now.
func (f *Feed) load(ctx context.Context) {
	for {
		l, ok := f.newLoad()
		if !ok {
			return
		}
		err := l.run(ctx)
		if err == nil || errors.Is(err, errVoid) {
			continue
		}
		f.mu.Lock()
		k := f.keys
		if k != nil && k.round == l.round {
			k.held -= l.counted
			if news := k.parts[l.part].news; news != nil {
				k.held -= news.bytes()
			}
			k.parts[l.part] = keyPart{}
			k.retryAt = time.Now().Add(retryPause(k.tries))
			k.tries++
		}
		if k != nil {
			k.loading = false
		}
		f.mu.Unlock()
		f.hub.log.Debug("loading a snapshot failed; trying on", slog.String("topic", l.topic), slog.Int("partition", int(l.key.partition)), slog.Any("error", err))
		return
	}
}

func (f *Feed) newLoad() (*keyLoad, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.keys
	if k == nil {
		return nil, false
	}
	i, ok := f.nextLoad()
	if !ok || k.refusal != "" {
		k.loading = false
		return nil, false
	}
	var lb *labeler
	if f.labeler != nil {
		lb = newLabeler(f.fields)
	}
	p := &f.parts[i]
	t := &f.topics[p.group]
	enc, err := frame.NewEncoder(f.spec.Format)
	if err != nil {
		panic("BUG: hub: a feed's format is not one: " + err.Error())
	}
	return &keyLoad{
		f: f, round: k.round, part: i, key: chunkKey{f, p.group, t.id, t.cuts, p.id}, topic: t.name,
		enc: enc, labeler: lb, table: newKeyTable(), trusted: frame.Unknown,
	}, true
}

// run loads the partition and hands it to the feed.
func (l *keyLoad) run(ctx context.Context) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	for last := false; !last; {
		var to int64
		var err error
		if to, last, err = l.target(); err != nil {
			return err
		}
		for tries := 0; l.from < to; {
			n, err := l.read(ctx, to)
			switch {
			case err != nil:
				return err
			case n == 0:
				wait.For(ctx, retryPause(tries))
				tries++
			default:
				tries = 0
			}
			if !last {
				break // the target has moved, perhaps
			}
		}
	}
	return l.finish()
}

// begin finds out where the partition begins, and how the topic is cleaned up.
func (l *keyLoad) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readMax)
	defer cancel()
	src := l.f.hub.opts.History
	cleanup, err := src.Cleanup(ctx, l.topic)
	if err != nil {
		return err
	}
	bounds, err := src.Bounds(ctx, l.topic, l.key.id)
	if err != nil {
		return err
	}
	l.recent = time.Now().Add(-cleanup.DeleteRetention).UnixMilli()
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if err := l.void(); err != nil {
		return err
	}
	if known := &l.f.keys.cleanup[l.key.group]; *known == nil || **known != cleanup {
		*known = &cleanup
		if !cleanup.Compacted {
			l.f.hub.log.Warn("a snapshot of a topic that is not compacted holds what retention leaves", slog.String("topic", l.topic))
		}
	}
	for _, b := range bounds {
		if b.Partition == l.key.partition {
			l.from = b.Start
			return nil
		}
	}
	return errors.New("the partition is not listed")
}

// void says whether what is loaded is still wanted. Feed.mu must be held.
func (l *keyLoad) void() error {
	if l.f.ended || l.f.keys == nil || l.f.keys.round != l.round {
		return errVoid
	}
	return nil
}

// target returns the offset to read up to. The last one is where the feed is
// now: what it appends from then on is kept for the loader.
func (l *keyLoad) target() (to int64, last bool, err error) {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := l.void(); err != nil {
		return 0, false, err
	}
	if to = f.parts[l.part].next; to-l.from <= loadGap {
		f.keys.parts[l.part].news = newKeyTable()
		return to, true, nil
	}
	return to, false, nil
}

// count counts what the table has grown by. Feed.mu must be held.
func (l *keyLoad) count() error {
	if err := l.void(); err != nil {
		return err
	}
	k := l.f.keys
	k.held += l.table.bytes() - l.counted
	l.counted = l.table.bytes()
	if k.held > l.f.hub.opts.SnapshotBytes {
		l.f.refuseKeys(k.count() + l.table.live)
		return errVoid
	}
	return nil
}

// read reads once, and returns by how much that led on.
func (l *keyLoad) read(ctx context.Context, to int64) (int64, error) {
	reading, cancel := context.WithTimeout(ctx, readMax)
	defer cancel()
	from := l.from
	span, err := l.f.hub.opts.History.Read(reading, l.topic, l.key.id, l.key.partition, from, func(r *frame.Record) {
		if r.Offset >= from && r.Offset < to {
			l.add(r)
		}
	})
	var gone *ExpiredError
	switch {
	case errors.As(err, &gone):
		l.from = max(l.from, gone.Start)
	case err != nil:
		return 0, err
	default:
		l.from = max(l.from, min(span.Next, to))
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	return l.from - from, l.count()
}

// add makes a record the latest of its key.
func (l *keyLoad) add(r *frame.Record) {
	if l.trusted == frame.Unknown && r.Time >= l.recent {
		l.trusted = r.Offset
	}
	if r.Key == nil {
		l.keyless++
		return
	}
	l.buf = l.buf[:0]
	if l.labeler != nil {
		l.buf = endLabel(l.labeler.appendValues(appendLabel(l.buf, LabelRecord, 0, 0), r))
	}
	var out frame.Outcome
	if l.buf, out = l.enc.AppendEvent(l.buf, anyID, r); out.Kind == frame.Silent {
		l.table.forget(r.Key)
		return
	}
	at := int64(-1)
	if r.Value == nil {
		if at = time.Now().UnixMilli(); r.Time >= 0 {
			at = min(at, r.Time)
		}
	}
	l.table.put(r.Offset, r.Key, l.buf, at)
}

// finish hands the table to the feed, with what came meanwhile.
func (l *keyLoad) finish() error {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := l.void(); err != nil {
		return err
	}
	k := f.keys
	p := &k.parts[l.part]
	if l.trusted == frame.Unknown {
		l.trusted = l.from
	}
	k.held -= l.counted + p.news.bytes()
	for _, key := range p.gone {
		l.table.forget([]byte(key))
	}
	p.news.from(0, func(r *keyRecord) bool {
		if !r.dead {
			l.table.put(r.offset, r.key, r.rest, r.at)
		}
		return true
	})
	*p = keyPart{table: l.table, trusted: l.trusted}
	k.held += l.table.bytes()
	k.tries = 0
	f.stats.Keyless += l.keyless
	f.mark(nil) // some streams wait for it
	return nil
}
