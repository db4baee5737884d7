package hub

import (
	"time"

	"tailcast/frame"
)

// startRetry is how long a stream waits before it asks again for the
// partitions of which the brokers did not say where it begins: about as long
// as an answer is good for.
const startRetry = time.Second

// unsaid returns the groups of which the brokers have to be asked where the
// stream begins, in some partition that memory does not know enough of. The
// feed's mutex must be held.
func (o *Own) unsaid(now time.Time) (all groups) {
	f := o.r.feed
	for i := range f.parts {
		p := &f.parts[i]
		if p.next == frame.Unknown || o.ids.Next(p.group, p.id) != frame.Unknown {
			continue
		}
		if next := f.first(o.policy, i); next != frame.Unknown {
			o.ids.Advance(p.group, p.id, next)
		} else if !now.Before(o.askAt) {
			all = all.with(p.group)
		}
	}
	return all
}

// started puts the stream where the start policy has it begin in the topic that
// was asked for. What the answer leaves out is asked for again, while the
// others go on. The feed's mutex must be held.
func (o *Own) started(bounds []Bound, now time.Time) {
	f := o.r.feed
	for _, b := range bounds {
		if o.ids.Next(o.asked, b.Partition) != frame.Unknown {
			continue
		}
		next := b.Start        // by time too: what is before was left out
		switch o.policy.From { //nolint:exhaustive // the others begin at the start
		case FromLatest:
			next = o.node(b)
		case FromLast:
			next = max(b.Start, b.End-o.policy.N)
		}
		o.ids.Advance(o.asked, b.Partition, next)
	}
	if _, ask := f.toAsk(o.ids.Position()); ask {
		o.askAt = now.Add(startRetry)
	}
	if _, older := o.lacksLocked(); older {
		f.stats.Older++
	}
}

// tellStart appends what led to where the stream begins, or its id there. The
// feed's mutex must be held.
func (o *Own) tellStart(dst []byte) []byte {
	o.untold, o.came, o.moved = false, false, false
	if len(o.notices) == 0 {
		o.id = o.ids.Append(o.id[:0])
		return frame.AppendIDBlock(dst, o.id)
	}
	for _, n := range o.notices {
		dst = o.appendNotice(dst, n)
	}
	o.notices = nil
	return dst
}

// Current reports whether a stream that has nothing to send lacks nothing that
// this node knows of.
func (o *Own) Current() bool {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ask := f.toAsk(o.ids.Position())
	return !ask && !o.lacksMore() && o.blocked.IsZero() && !o.untold && o.recreated == 0
}

// notice is a resync event that a stream has still to be told.
type notice struct {
	reason frame.Reason
	lost   []frame.Range
}

// startOver has the stream begin by the start policy. The feed's mutex must be
// held.
func (o *Own) startOver(dst []byte, reason frame.Reason, lost []frame.Range) []byte {
	o.ids.Set(o.r.feed.begin(o.policy))
	o.keys.entered, o.keys.vetted = false, true
	o.delivered, o.scanned, o.limited = 0, 0, o.chosen
	return o.notify(dst, notice{reason, lost})
}

// begins reports whether the stream had no position, and was not told yet where
// it begins: it has nothing that could be lost.
func (o *Own) begins() bool { return o.untold && !o.came && len(o.notices) == 0 }

// notify appends the event of n, or keeps it until the brokers have said where
// the stream goes on. The feed's mutex must be held.
func (o *Own) notify(dst []byte, n notice) []byte {
	if o.begins() {
		return dst
	}
	if _, ask := o.r.feed.toAsk(o.ids.Position()); ask || o.untold {
		o.untold, o.notices = true, append(o.notices, n)
		return dst
	}
	return o.appendNotice(dst, n)
}

func (o *Own) appendNotice(dst []byte, n notice) []byte {
	o.r.feed.stats.resynced(n.reason, 1)
	o.moved = false
	o.id = o.ids.Append(o.id[:0])
	return frame.AppendResync(dst, o.id, n.reason, n.lost)
}
