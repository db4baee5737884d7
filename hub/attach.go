package hub

import (
	"net/netip"
	"slices"

	"tailcast/frame"
)

// Start is where a client asks to go on.
type Start struct {
	Position frame.Position // nil: nowhere in particular, so the start policy says
	Foreign  bool           // the client sent an id that is none of ours; Position is nil
	Policy   Policy         // where it begins of what Position does not say
	Asked    bool           // the client chose Policy, so its history is bounded like a resume's
	Restart  bool           // what can't be resumed exactly begins by the start policy
	Addr     netip.Addr     // of the client: reads of history take turns by it
	Filter   *Filter        // what the stream is to have of the records; nil: all
}

// Placement is where a stream goes on.
type Placement struct {
	Place   int64        // in the log
	Label   int64        // of the first label behind Place, if the stream is filtered
	Own     *Own         // not nil: the stream is personal first, and Place means nothing
	Waiting bool         // the feed is not open: call Attach again when it is marked
	Behind  bool         // Place is before the head
	Resync  frame.Reason // why the client's position could not be kept; empty if it was

	lost []frame.Range // what the event with Resync says of it
}

// Attach places a stream and appends its first block to dst: retryMillis and
// the position it goes on from, with a resync event if that is not the
// client's own. With retryMillis 0 (a stream that waited) the block holds the
// id alone. From then on the stream gets every record appended: whatever the
// placement leaves out was delivered before.
func (r *Reader) Attach(start Start, retryMillis int, dst []byte) (Placement, []byte) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isOpen() {
		if retryMillis > 0 {
			dst = frame.AppendPreamble(dst, retryMillis, nil)
		}
		return Placement{Waiting: true}, dst
	}
	var at Placement
	at, f.idBuf = f.settle(r, start, f.idBuf[:0])
	if start.Filter != nil {
		at.Label = f.labelAt(f.index.at(at.Place))
	}
	if at.Behind {
		f.stats.Behind++
	}
	if at.Resync != "" {
		f.stats.resynced(at.Resync, 1)
	}
	return at, f.firstBlock(dst, retryMillis, f.idBuf, notice{at.Resync, at.lost})
}

// firstBlock appends what a stream is told first. With a resync it is one
// block: a client that got the id of one and then lost its connection would
// come back with that, and never hear of it. mu must be held.
func (f *Feed) firstBlock(dst []byte, retryMillis int, id []byte, resync notice) []byte {
	switch {
	case resync.reason != "":
		if retryMillis > 0 {
			dst = frame.AppendRetryLine(dst, retryMillis)
		}
		return frame.AppendResync(dst, id, resync.reason, resync.lost)
	case len(id) == 0 && retryMillis > 0:
		return frame.AppendPreamble(dst, retryMillis, nil)
	case len(id) == 0:
		return dst
	case retryMillis > 0:
		return frame.AppendPreamble(dst, retryMillis, id)
	}
	return frame.AppendIDBlock(dst, id)
}

// settle says where a stream goes on, and appends its id there to dst; nothing
// when that has to be found out first. mu must be held.
func (f *Feed) settle(r *Reader, start Start, dst []byte) (Placement, []byte) {
	if start.Position == nil {
		var why notice
		if start.Foreign {
			why.reason = frame.UnknownID
		}
		return f.start(r, start, why, dst)
	}
	want, former, ok := f.match(start.Position, start.Policy)
	switch {
	case !ok:
		return f.start(r, start, notice{reason: frame.UnknownID}, dst)
	case former != 0 && (start.Restart || f.hub.opts.History == nil):
		return f.start(r, start, notice{frame.Recreated, f.anew(former)}, dst)
	case former != 0:
		return Placement{Own: f.own(r, start, want, former)}, dst
	}
	place, fit := f.place(want, start.Policy)
	switch {
	case start.Policy.From == FromSnapshot && f.lacksKeys(f.nexts): // which place has set
	case fit == fitsHere:
		return Placement{Place: place, Behind: place < f.log.end}, frame.AppendID(dst, want)
	case fit == fitsNot && f.hub.opts.History == nil:
		return f.start(r, start, notice{reason: frame.UnknownID}, dst)
	case fit == fitsNot:
		f.stats.Older++
	}
	o := f.own(r, start, want, 0)
	if _, ask := f.toAsk(want); ask && start.Asked {
		// With an id that says * the client would come back as one that never
		// asked: until its place is known the one it has is the better one.
		o.untold, o.came = true, true
		return Placement{Own: o}, dst
	}
	return Placement{Own: o}, frame.AppendID(dst, want)
}

// start places a stream by its start policy; why is the reason if that is not
// what its client asked for. mu must be held.
func (f *Feed) start(r *Reader, start Start, why notice, dst []byte) (Placement, []byte) {
	want := f.begin(start.Policy)
	_, ask := f.toAsk(want)
	if start.Policy.From == FromLatest || ask && f.hub.opts.History == nil {
		return Placement{Place: f.log.end, Resync: why.reason, lost: why.lost}, f.ids.Append(dst)
	}
	place, fit := f.place(want, start.Policy)
	snapshot := start.Policy.From == FromSnapshot && f.lacksKeys(f.nexts)
	if !ask && fit == fitsHere && !snapshot {
		return Placement{Place: place, Behind: place < f.log.end, Resync: why.reason, lost: why.lost}, frame.AppendID(dst, want)
	}
	start.Position = nil
	if snapshot {
		return Placement{Own: f.own(r, start, want, 0), Resync: why.reason, lost: why.lost}, frame.AppendID(dst, want)
	}
	o := f.own(r, start, want, 0)
	if o.untold = true; why.reason != "" {
		o.notices = append(o.notices, why)
	}
	return Placement{Own: o}, dst
}

// own makes a personal stream at want. mu must be held.
func (f *Feed) own(r *Reader, start Start, want frame.Position, former groups) *Own {
	o := &Own{
		r: r, addr: start.Addr, policy: start.Policy, chosen: start.Asked, restart: start.Restart,
		filter: start.Filter, lossN: f.lossN,
	}
	// Who may have everything for the asking is not bounded on the way.
	o.limited = start.Asked || start.Position != nil && start.Policy.From != FromEarliest
	o.recreated = former
	o.ids.Set(want)
	if former != 0 {
		o.sent = start.Position.Clone()
	}
	f.timed.Add(1)
	f.owns.Add(1)
	return o
}

// match arranges a client's position by the feed's topics, with the feed's
// tags. What the position does not know (a topic that is not in it, a
// partition that was unknown) follows the start policy, so that the stream's
// first id holds it; former are the groups whose id is of a former topic of
// the name. It is false when the position is none of this feed's. mu must be
// held.
func (f *Feed) match(pos frame.Position, policy Policy) (want frame.Position, former groups, ok bool) {
	f.begin(policy)
	var seen [topicsMax]bool
	for _, g := range pos {
		t := f.named(g.Tag, len(pos))
		if t < 0 || seen[t] {
			return nil, 0, false
		}
		seen[t] = true
		switch tag := f.topics[t].tag; {
		case g.Tag.ID == [3]byte{} || g.Tag.ID == tag.ID:
		case tag.ID == [3]byte{}: // the topic is not here, or not yet: Own.appear compares
			f.want[t].Tag = g.Tag
		default:
			former = former.with(t)
			f.want[t] = f.ids.Position()[t] // the brokers say where it begins
			continue
		}
		f.want[t].Parts = f.known(t, f.rest(t, g), policy)
	}
	return f.want, former, true
}

// rest returns a group's partitions with those that it means by Rest. mu must
// be held.
func (f *Feed) rest(t int, g frame.Group) []frame.Partition {
	if !g.Rest {
		return g.Parts
	}
	parts := slices.Clone(g.Parts)
	for i := range f.parts {
		p := &f.parts[i]
		if p.group == t && !slices.ContainsFunc(g.Parts, func(q frame.Partition) bool { return q.ID == p.id }) {
			parts = append(parts, frame.Partition{ID: p.id, Next: frame.Unknown})
		}
	}
	slices.SortFunc(parts, func(a, b frame.Partition) int { return int(a.ID - b.ID) })
	return parts
}

// known returns parts, by policy where the client had no place, and without
// what is unknown on both sides; it does not change parts. mu must be held.
func (f *Feed) known(t int, parts []frame.Partition, policy Policy) []frame.Partition {
	if !slices.ContainsFunc(parts, func(p frame.Partition) bool { return p.Next == frame.Unknown }) {
		return parts
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(p frame.Partition) bool {
		return p.Next == frame.Unknown && f.part(t, p.ID) < 0
	})
	for k := range parts {
		if parts[k].Next == frame.Unknown {
			parts[k].Next = f.first(policy, f.part(t, parts[k].ID))
		}
	}
	return parts
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
	return slices.IndexFunc(f.topics, func(t topic) bool { return t.tag.Name == tag.Name })
}

// fit is how a position fits this node's log.
type fit uint8

const (
	fitsHere fit = iota // it selects one place
	fitsOwn             // the log holds what it lacks, or will, but at no one place
	fitsNot             // it lacks records that the log does not hold
)

// place finds where in the log a position goes on, of a stream that begins by
// policy where want does not say. want has the feed's groups. mu must be held.
func (f *Feed) place(want frame.Position, policy Policy) (int64, fit) {
	next := slices.Grow(f.nexts[:0], len(f.parts))[:len(f.parts)]
	f.nexts = next
	clear(next) // a partition that is not in an id is at 0
	how := fitsHere
	for g := range want {
		for _, p := range want[g].Parts {
			i := f.part(g, p.ID)
			if i < 0 {
				how = fitsOwn // a partition this node has not seen yet
				continue
			}
			next[i] = p.Next
		}
	}
	for i := range f.parts {
		p := &f.parts[i]
		switch {
		case next[i] == frame.Unknown && p.next == frame.Unknown && policy.From == FromLatest:
		case next[i] == frame.Unknown, p.next == frame.Unknown, next[i] > p.next:
			how = max(how, fitsOwn)
		case next[i] < f.index.parts[i].base:
			return 0, fitsNot
		}
	}
	if how != fitsHere {
		return 0, how
	}
	place, ok := f.index.find(next, f.log.end)
	if !ok {
		return 0, fitsOwn
	}
	return place, fitsHere
}
