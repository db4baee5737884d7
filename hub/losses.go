package hub

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"tailcast/frame"
)

// loss is what a feed's live streams were told by one resync event, for the
// personal streams, which read it here and not in the log.
type loss struct {
	reason frame.Reason
	group  int
	lost   []frame.Range
	parts  []frame.Partition // where the partitions concerned went on
	tag    frame.Tag         // of the topic, from then on
}

// appeared is the reason of what is no loss: a topic that did not exist, or
// seemed not to, does. The tag says which incarnation it is.
const appeared frame.Reason = ""

// remember keeps a loss for the personal streams. mu must be held.
func (f *Feed) remember(l loss) {
	if len(f.losses) == lossesMax {
		f.losses = slices.Delete(f.losses, 0, 1)
	}
	f.losses = append(f.losses, l)
	f.lossN++
}

// takeLosses applies what befell the feed's topics since the last call.
func (o *Own) takeLosses(dst []byte) []byte {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for o.lossN < f.lossN {
		missed := f.lossN - o.lossN
		if missed > len(f.losses) {
			o.lossN = f.lossN
			o.recreated, o.checking, o.begun, o.expired, o.cut = 0, 0, 0, nil, nil
			return o.startOver(dst, frame.UnknownID, nil)
		}
		dst = o.tellLocked(dst) // before its ids move on
		l := &f.losses[len(f.losses)-missed]
		o.lossN++
		o.keys.entered = false
		o.blocked, o.known = time.Time{}, 0
		dst = o.take(dst, l)
	}
	return dst
}

// take applies one loss. What retention took is found out by reading: the
// stream may still get more than the live ones did. mu must be held.
func (o *Own) take(dst []byte, l *loss) []byte {
	switch l.reason { //nolint:exhaustive // the others are found out by reading
	case appeared:
		o.appear(l)
	case frame.Recreated:
		parts, had := o.had(l)
		switch {
		case had:
		case o.begins():
			parts = slices.Clone(o.r.feed.begin(o.policy)[l.group].Parts)
		default:
			parts = slices.Clone(l.parts)
		}
		pos := o.ids.Position().Clone()
		pos[l.group] = frame.Group{Tag: l.tag, Parts: parts}
		o.ids.Set(pos)
		o.recreated = o.recreated.without(l.group)
		o.checking = o.checking.without(l.group)
		if had { // nobody told it yet where it is
			o.moved = false
			o.id = o.ids.Append(o.id[:0])
			return frame.AppendIDBlock(dst, o.id)
		}
		return o.resync(dst, frame.Recreated, o.r.feed.anew(groups(0).with(l.group)))
	case frame.Expired:
		if o.policy.From == FromSnapshot { // what it has may have changed in what is lost
			return o.startOver(dst, frame.Expired, l.lost)
		}
	case frame.Truncated:
		cut := false
		for _, p := range l.parts {
			if o.ids.Next(l.group, p.ID) > p.Next {
				o.ids.Advance(l.group, p.ID, p.Next)
				cut = true
			}
		}
		if cut {
			return o.resync(dst, frame.Truncated, l.lost)
		}
	}
	return dst
}

// appear compares the topic that appeared with the one that the client's id is
// of. mu must be held.
func (o *Own) appear(l *loss) {
	pos := o.ids.Position().Clone()
	g := &pos[l.group]
	if g.Tag.ID != [3]byte{} && g.Tag.ID != l.tag.ID && !o.recreated.has(l.group) {
		o.recreated = o.recreated.with(l.group)
		o.sent = pos.Clone()
	}
	g.Tag = l.tag
	o.ids.Set(pos)
}

// had returns where the client was in the topic that l leads to, if it came with
// an id of it: another node, which told it, knew of the topic first. mu must be
// held.
func (o *Own) had(l *loss) (parts []frame.Partition, had bool) {
	if !o.recreated.has(l.group) {
		return nil, false
	}
	i := slices.IndexFunc(o.sent, func(g frame.Group) bool { return g.Tag == l.tag })
	if i < 0 {
		return nil, false
	}
	return slices.Clone(o.r.feed.known(l.group, o.sent[i].Parts, o.policy)), true
}

// bounded applies the bounds of the topic that was asked for: what retention
// took while the client was away, where a re-created topic begins, and whether
// what the stream has and this node does not exists at all. tell says so.
func (o *Own) bounded(got *extents, now time.Time) {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.starting {
		o.starting = false
		if got.err != nil {
			o.blocked = now.Add(blockedFor)
			return
		}
		o.started(got.bounds, now)
		return
	}
	checking := o.checking.has(o.asked)
	o.checking = o.checking.without(o.asked)
	if got.err != nil {
		o.blocked = now.Add(blockedFor)
		return
	}
	o.known = o.known.with(o.asked)
	if o.recreated.has(o.asked) {
		o.recreated = o.recreated.without(o.asked)
		o.begun = o.begun.with(o.asked)
		o.begin(got.bounds)
		return
	}
	name := f.topics[o.asked].name
	for _, b := range got.bounds {
		next := o.ids.Next(o.asked, b.Partition)
		switch {
		case next == frame.Unknown:
		case next < b.Start && o.before(b):
			o.expired = append(o.expired, frame.Range{Topic: name, Partition: b.Partition, From: next, To: b.Start - 1})
			o.ids.Advance(o.asked, b.Partition, b.Start)
		case checking && next > max(b.End, o.node(b)):
			o.cut = append(o.cut, frame.Range{Topic: name, Partition: b.Partition, From: b.End, To: next - 1})
			// Not where this node is if that is before the end: what lies
			// between the two was delivered.
			o.ids.Advance(o.asked, b.Partition, max(b.End, o.node(b)))
		}
	}
	if checking {
		o.cut = o.cutUnknown(o.cut, name, got.bounds)
	}
}

// tell appends an event for each reason of what bounds said, and what the
// stream was not told yet of where it begins.
func (o *Own) tell(dst []byte, now time.Time) []byte {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	dst = o.tellLocked(dst)
	if o.untold && o.unsaid(now) == 0 {
		dst = o.tellStart(dst)
	}
	return dst
}

// tellLocked is tell, but for where the stream begins. The feed's mutex must be held.
func (o *Own) tellLocked(dst []byte) []byte {
	f := o.r.feed
	begun, expired, cut := o.begun, o.expired, o.cut
	o.begun, o.expired, o.cut = 0, nil, nil
	if begun != 0 {
		dst = o.resync(dst, frame.Recreated, f.anew(begun))
	}
	if len(expired) > 0 {
		dst = o.resync(dst, frame.Expired, expired)
	}
	if len(cut) > 0 {
		dst = o.resync(dst, frame.Truncated, cut)
	}
	return dst
}

// before reports whether what the brokers no longer have is not in the log
// either. The feed's mutex must be held.
func (o *Own) before(b Bound) bool {
	f := o.r.feed
	i := f.part(o.asked, b.Partition)
	return i >= 0 && f.parts[i].next != frame.Unknown && o.ids.Next(o.asked, b.Partition) < f.index.parts[i].base
}

// node is where this node is in a partition. The feed's mutex must be held.
func (o *Own) node(b Bound) int64 {
	if i := o.r.feed.part(o.asked, b.Partition); i >= 0 && o.r.feed.parts[i].next != frame.Unknown {
		return o.r.feed.parts[i].next
	}
	return b.End
}

// cutUnknown forgets the partitions of the topic that was asked for which
// neither this node nor the brokers know. The feed's mutex must be held.
func (o *Own) cutUnknown(cut []frame.Range, name string, bounds []Bound) []frame.Range {
	pos := o.ids.Position().Clone()
	g := &pos[o.asked]
	g.Parts = slices.DeleteFunc(g.Parts, func(p frame.Partition) bool {
		gone := o.r.feed.part(o.asked, p.ID) < 0 &&
			!slices.ContainsFunc(bounds, func(b Bound) bool { return b.Partition == p.ID })
		if gone {
			cut = append(cut, frame.Range{Topic: name, Partition: p.ID, From: 0, To: p.Next - 1})
		}
		return gone
	})
	if len(cut) > 0 {
		o.ids.Set(pos)
	}
	return cut
}

// begin puts the stream at the beginning of the topic that was asked for, if
// it may have all of it, else where the start policy says. The feed's mutex must be held.
func (o *Own) begin(bounds []Bound) {
	f := o.r.feed
	var records int64
	for _, b := range bounds {
		records += b.End - b.Start
	}
	pos := o.ids.Position().Clone()
	pos[o.asked] = f.begin(o.policy)[o.asked]
	if records <= f.hub.opts.ReplayMax && o.policy.From != FromSnapshot {
		g := frame.Group{Tag: f.topics[o.asked].tag}
		for _, b := range bounds {
			g.Parts = append(g.Parts, frame.Partition{ID: b.Partition, Next: b.Start})
		}
		slices.SortFunc(g.Parts, func(a, b frame.Partition) int { return int(a.ID - b.ID) })
		pos[o.asked] = g
	}
	o.ids.Set(pos)
}

// failed applies a read that can't succeed.
func (o *Own) failed(dst []byte, why failure, now time.Time) []byte {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	var gone *ExpiredError
	if !errors.As(why.err, &gone) {
		o.blocked = now.Add(blockedFor)
		return dst
	}
	next := o.ids.Next(why.group, why.partition)
	if next >= gone.Start {
		return dst // it has moved meanwhile
	}
	o.ids.Advance(why.group, why.partition, gone.Start)
	return o.resync(dst, frame.Expired, []frame.Range{{
		Topic: f.topics[why.group].name, Partition: why.partition, From: next, To: gone.Start - 1,
	}})
}

// atEnd returns where this node is, but for partitions in which the stream is
// ahead of it: what it had is not sent again. The feed's mutex must be held.
func (o *Own) atEnd() frame.Position {
	f := o.r.feed
	pos := f.position()
	for g, own := range o.ids.Position() {
		parts := &pos[g].Parts
		for _, p := range own.Parts {
			if i := f.part(g, p.ID); p.Next == frame.Unknown || i >= 0 && p.Next <= f.parts[i].next {
				continue
			}
			k, ok := slices.BinarySearchFunc(*parts, p.ID, func(q frame.Partition, id int32) int { return cmp.Compare(q.ID, id) })
			if ok {
				(*parts)[k] = p
			} else {
				*parts = slices.Insert(*parts, k, p)
			}
		}
	}
	return pos
}

// tooFar ends a resume that is larger than one may be: the stream goes on
// where this node is.
func (o *Own) tooFar(dst []byte) []byte {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	var lost []frame.Range
	for i := range f.parts {
		p := &f.parts[i]
		if next := o.ids.Next(p.group, p.id); next < p.next && next != frame.Unknown {
			lost = append(lost, frame.Range{Topic: f.topics[p.group].name, Partition: p.id, From: next, To: p.next - 1})
		}
	}
	if o.chosen {
		o.policy = Policy{} // it is what led too far
	}
	o.ids.Set(o.atEnd())
	o.delivered, o.scanned = 0, 0
	return o.resync(dst, frame.TooFar, lost)
}

// resync tells the stream why it does not go on where it was: it goes on where
// it is now or, on routes that say so, by the start policy. The feed's mutex
// must be held.
func (o *Own) resync(dst []byte, reason frame.Reason, lost []frame.Range) []byte {
	if o.restart {
		return o.startOver(dst, reason, lost)
	}
	return o.notify(dst, notice{reason, lost})
}
