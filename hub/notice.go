package hub

import (
	"slices"
	"time"

	"tailcast/frame"
)

// notice is a resync event that a stream has still to be told.
type notice struct {
	reason frame.Reason // empty: there is none
	lost   []frame.Range
}

// gravity are the reasons by how much of a stream they are about: of those that
// meet in one event the last here names it.
var gravity = []frame.Reason{frame.Expired, frame.Truncated, frame.Recreated, frame.UnknownID, frame.TooFar}

// join has n tell of more, too, that befell the stream before n was told.
func (n *notice) join(more notice) {
	switch {
	case n.reason == "", more.reason == frame.UnknownID, more.reason == frame.Recreated && len(more.lost) == 0,
		n.reason == frame.UnknownID && more.reason == frame.TooFar: // what was lost before is part of that
		*n = notice{more.reason, slices.Clone(more.lost)} // a feed keeps the ranges of its own
		return
	case n.reason == frame.UnknownID: // it had no place to lose anything behind
		return
	}
	if slices.Index(gravity, more.reason) > slices.Index(gravity, n.reason) {
		n.reason = more.reason
	}
	for _, r := range more.lost {
		n.lose(r)
	}
}

// lose adds a range to those of n, of which there are a few for each partition.
func (n *notice) lose(r frame.Range) {
	if r.Partition == frame.Whole { // offsets of the former topic mean nothing
		n.lost = slices.DeleteFunc(n.lost, func(q frame.Range) bool { return q.Topic == r.Topic })
	}
	i := slices.IndexFunc(n.lost, func(q frame.Range) bool {
		return q.Topic == r.Topic && q.Partition == r.Partition && q.To != frame.Unknown && q.To+1 == r.From
	})
	if i >= 0 {
		n.lost[i].To = r.To
		return
	}
	n.lost = append(n.lost, r)
}

// begins reports whether the stream had no position, and was not told yet where
// it begins: it has nothing that could be lost.
func (o *Own) begins() bool { return o.untold && !o.came && o.notice.reason == "" }

// notify keeps n until the brokers have said where the stream goes on, and
// something is to be sent behind it: what befalls the stream before is part of
// the same event. The feed's mutex must be held.
func (o *Own) notify(n notice) {
	if o.begins() {
		return
	}
	o.notice.join(n)
	if _, ask := o.r.feed.toAsk(o.ids.Position()); ask {
		o.untold = true
	}
}

// tellLosses appends the event that is kept, if one is: before anything else
// with an id. The feed's mutex must be held.
func (o *Own) tellLosses(dst []byte) []byte {
	n := o.notice
	if n.reason == "" || o.untold {
		return dst
	}
	o.notice = notice{}
	o.r.feed.stats.resynced(n.reason, 1)
	o.moved = false
	o.id = o.ids.Append(o.id[:0])
	return frame.AppendResync(dst, o.id, n.reason, n.lost)
}

// tellBefore is tellLosses, without the feed's mutex.
func (o *Own) tellBefore(dst []byte) []byte {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return o.tellLosses(dst)
}

// holds reports whether a stream of which bounds said a loss waits, because it
// is ahead of this node elsewhere: that may turn out to be another loss. It does
// so until the brokers were asked once, so that a tail that lags can't hold it
// up for long.
func (o *Own) holds(now time.Time) bool {
	if o.checked || o.restart || o.begun == 0 && len(o.expired) == 0 {
		return false
	}
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.ahead() == 0 {
		o.aheadSince = time.Time{}
		return false
	}
	o.wait(now)
	return true
}
