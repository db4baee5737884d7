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

// tellStart appends the stream's id where it begins, unless the event that it
// is still to be told has it. The feed's mutex must be held.
func (o *Own) tellStart(dst []byte) []byte {
	o.untold, o.came = false, false
	if o.notice.reason != "" {
		return dst
	}
	o.moved = false
	o.id = o.ids.Append(o.id[:0])
	return frame.AppendIDBlock(dst, o.id)
}

// Current reports whether a stream that has nothing to send lacks nothing that
// this node knows of.
func (o *Own) Current() bool {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ask := f.toAsk(o.ids.Position())
	return !ask && !o.lacksMore() && o.blocked.IsZero() && !o.untold && o.recreated == 0 && o.notice.reason == ""
}

// startOver has the stream begin by the start policy. The feed's mutex must be
// held.
func (o *Own) startOver(reason frame.Reason, lost []frame.Range) {
	o.ids.Set(o.r.feed.begin(o.policy))
	o.keys.entered, o.keys.vetted = false, true
	o.delivered, o.scanned, o.limited = 0, 0, o.chosen
	o.notify(notice{reason, lost})
}
