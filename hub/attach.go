package hub

import (
	"slices"

	"tailcast/frame"
)

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
		if retryMillis > 0 {
			dst = frame.AppendPreamble(dst, retryMillis, nil)
		}
		return Placement{Waiting: true}, dst
	}
	var at Placement
	at, f.idBuf = f.settle(start, f.idBuf[:0])
	if retryMillis > 0 {
		dst = frame.AppendPreamble(dst, retryMillis, f.idBuf)
	} else {
		dst = frame.AppendIDBlock(dst, f.idBuf)
	}
	if at.Behind {
		f.stats.Behind++
	}
	if at.Resync != "" {
		f.stats.resynced(at.Resync, 1)
		dst = frame.AppendResync(dst, f.idBuf, at.Resync, nil)
	}
	return at, dst
}

// settle says where a stream goes on, and appends its id there to dst. mu must
// be held.
func (f *Feed) settle(start Start, dst []byte) (Placement, []byte) {
	var reason frame.Reason
	switch {
	case start.Foreign:
		reason = frame.UnknownID
	case start.Position != nil:
		var want frame.Position
		var place int64
		if want, reason = f.match(start.Position); reason == "" {
			place, reason = f.place(want)
		}
		if reason == "" {
			return Placement{Place: place, Behind: place < f.log.end}, frame.AppendID(dst, want)
		}
	}
	return Placement{Place: f.log.end, Resync: reason}, f.ids.Append(dst)
}

// match arranges a client's position by the feed's topics, with the feed's
// tags. What the position does not know (a topic that is not in it, a
// partition that was unknown) follows the start policy, so that the stream's
// first id holds it. mu must be held.
func (f *Feed) match(pos frame.Position) (frame.Position, frame.Reason) {
	f.want = append(f.want[:0], f.ids.Position()...)
	var seen [topicsMax]bool
	for _, g := range pos {
		t := f.named(g.Tag, len(pos))
		if t < 0 || seen[t] {
			return nil, frame.UnknownID
		}
		seen[t] = true
		if tag := f.topics[t].tag; g.Tag.ID != [3]byte{} && g.Tag.ID != tag.ID {
			return nil, frame.Recreated
		}
		f.want[t].Parts = f.known(t, g.Parts)
	}
	return f.want, ""
}

// known returns parts with the feed's own place where the client had none; it
// does not change parts. mu must be held.
func (f *Feed) known(t int, parts []frame.Partition) []frame.Partition {
	own := false
	for k := range parts {
		if parts[k].Next != frame.Unknown {
			continue
		}
		if i := f.part(t, parts[k].ID); i >= 0 {
			if !own {
				own, parts = true, slices.Clone(parts)
			}
			parts[k].Next = f.parts[i].next
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

// place finds where in the log a position goes on. want has the feed's
// groups. mu must be held.
func (f *Feed) place(want frame.Position) (int64, frame.Reason) {
	next := slices.Grow(f.nexts[:0], len(f.parts))[:len(f.parts)]
	f.nexts = next
	clear(next) // a partition that is not in an id is at 0
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
		p := &f.parts[i]
		switch {
		case next[i] == frame.Unknown && p.next == frame.Unknown:
		case p.next == frame.Unknown, next[i] < f.index.parts[i].base, next[i] > p.next:
			return 0, frame.UnknownID
		}
	}
	place, ok := f.index.find(next, f.log.end)
	if !ok {
		return 0, frame.UnknownID
	}
	return place, ""
}
