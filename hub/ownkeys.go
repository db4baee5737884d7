package hub

import "tailcast/frame"

// ownKeys is how far a personal stream is with the keys of its feed.
type ownKeys struct {
	entered    bool
	part       int   // of the feed, that it is in
	to         int64 // where the feed was when it came there: what is behind comes from the log
	liveBefore int64 // tombstones before it are of keys that it never had

	vetted bool // the client's position was found to miss no deletion
	drops  int  // keys.drops then
	shut   bool // it was counted
}

// inside reports whether the stream, at next in a partition, is on its way
// through its keys.
func (k *ownKeys) inside(part int, next int64) bool {
	return k.entered && k.part == part && next < k.to
}

// keysLack returns the first partition, by topic and number, of which the
// stream lacks more than the log holds, or everything: the latest records stand
// for it. The feed's mutex must be held.
func (o *Own) keysLack() (part int, ok bool) {
	f := o.r.feed
	for g := range f.topics {
		if o.recreated.has(g) {
			continue
		}
		for _, i := range f.topics[g].byParts {
			if i < 0 {
				continue
			}
			p := &f.parts[i]
			next := o.ids.Next(g, p.id)
			if p.next > 0 && next != frame.Unknown && (o.keys.inside(int(i), next) || next == 0 || next < f.index.parts[i].base) {
				return int(i), true
			}
		}
	}
	return 0, false
}

// lacksKeys reports whether a stream whose next offsets in the feed's parts are
// these begins with the latest records of keys: keysLack, before there is an
// Own. mu must be held.
func (f *Feed) lacksKeys(next []int64) bool {
	for i := range f.parts {
		if f.parts[i].next > 0 && next[i] != frame.Unknown && (next[i] == 0 || next[i] < f.index.parts[i].base) {
			return true
		}
	}
	return false
}

// fromKeys copies the latest records of keys that the stream lacks. done says
// that the log holds the rest.
func (o *Own) fromKeys(dst []byte, limit int) (out []byte, state OwnState, done bool) {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.keys
	if k.refusal != "" {
		if !o.keys.shut {
			o.keys.shut = true
			f.stats.Shut++
		}
		return dst, OwnRefused, false
	}
	part, ok := o.keysLack()
	if !ok {
		return dst, OwnMore, true
	}
	lost, known := o.vet()
	switch {
	case !known || k.parts[part].table == nil:
		return dst, OwnIdle, false
	case len(lost) > 0:
		return o.startOver(dst, frame.Expired, lost), OwnMore, false
	}
	return o.fromTable(dst, limit, part), OwnMore, false
}

// vet returns the partitions in which the client may have missed deletions: the
// brokers, or this node, have forgotten tombstones behind its place. Where it
// has nothing, there is nothing to miss. It is false while that is not known.
// The feed's mutex must be held.
func (o *Own) vet() (lost []frame.Range, known bool) {
	f := o.r.feed
	k := f.keys
	if o.keys.vetted && o.keys.drops == k.drops {
		return nil, true
	}
	for i := range f.parts {
		p := &f.parts[i]
		next := o.ids.Next(p.group, p.id)
		if next <= 0 || next >= f.index.parts[i].base || p.next == frame.Unknown {
			continue
		}
		kp := &k.parts[i]
		if kp.table == nil {
			return nil, false
		}
		oldest := kp.table.dropped
		switch {
		case !o.keys.vetted:
			oldest = max(oldest, kp.trusted)
		case o.keys.inside(i, next) && oldest <= o.keys.liveBefore:
			continue // it is told of no key that these deleted
		}
		if next < oldest {
			lost = append(lost, frame.Range{Topic: f.topics[p.group].name, Partition: p.id, From: next, To: frame.Unknown})
		}
	}
	o.keys.vetted, o.keys.drops = true, k.drops
	return lost, true
}

// fromTable copies some of a partition's latest records. The feed's mutex must
// be held.
func (o *Own) fromTable(dst []byte, limit, part int) []byte {
	f := o.r.feed
	p, at := &f.parts[part], &o.keys
	from := o.ids.Next(p.group, p.id)
	if !at.entered || at.part != part || from >= at.to {
		*at = ownKeys{entered: true, part: part, to: p.next, vetted: true, drops: at.drops}
		if from == 0 {
			at.liveBefore = p.next
		}
	}
	full := false
	f.keys.parts[part].table.from(from, func(r *keyRecord) bool {
		if r.offset >= at.to {
			return false
		}
		if full = len(dst) >= limit || o.looks >= ownLooksMax; full {
			return false
		}
		from = r.offset + 1
		if b := r.rest; !r.dead && (r.at < 0 || r.offset >= at.liveBefore) && o.wantsKey(&b) {
			dst = o.copy(dst, b, p.group, p.id, r.offset)
		} else {
			o.looks++
		}
		return true
	})
	if !full {
		from = at.to
	}
	o.advance(p.group, p.id, from)
	return dst
}

// wantsKey reports whether the record in b is for the stream, and takes its
// label off.
func (o *Own) wantsKey(b *[]byte) bool {
	if o.r.feed.labeler == nil {
		return true
	}
	l, n := NextLabel(*b)
	*b = (*b)[n:]
	return o.filter == nil || o.filter.matches(l.values)
}
