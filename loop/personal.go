package loop

import (
	"tailcast/frame"
	"tailcast/hub"
)

const (
	// ownStepBytes is about what a personal stream copies at a time: a little
	// more than a socket takes with --notsent-lowat, so that little is left to
	// hold when it is full.
	ownStepBytes = 32 << 10
	// ownStepLess is the same while personal streams hold much, as those of
	// clients do that ask for all there is and read nothing: what is left then
	// is for more of the others.
	ownStepLess = 8 << 10
	// ownHeldMuch is what that is: as much as 128 streams hold that take long
	// steps. Heap and what waits for the collector are several times that.
	ownHeldMuch = 4 << 20
	// ownHeldMax bounds what the personal streams of a loop hold together;
	// over it they wait for those before them.
	ownHeldMax = 64 << 20
)

// pumpOwn writes to a personal stream what it lacks, in whole frames with ids
// of its own, up to pumpBytesMax.
func (l *Loop) pumpOwn(c *conn) pumpResult {
	got := l.stepOwn(c)
	l.countHeld(c)
	return got
}

// countHeld counts what c holds of its personal part, also when that is over.
func (l *Loop) countHeld(c *conn) {
	l.ownHeld -= int(c.ownHeld)
	c.ownHeld = 0
	if c.pending != nil {
		c.ownHeld = int32(len(c.pending.B))
	}
	l.ownHeld += int(c.ownHeld)
}

func (l *Loop) stepOwn(c *conn) pumpResult {
	if c.unsent() {
		if got := l.flush(c); got != pumpCaughtUp {
			return got
		}
	}
	for budget := pumpBytesMax; budget > 0; {
		if l.ownHeld > ownHeldMax {
			c.wroteAt = l.tick() // it is not the socket that refuses
			return pumpMore
		}
		var state hub.OwnState
		step := ownStepBytes
		if l.ownHeld > ownHeldMuch {
			step = ownStepLess
		}
		l.out, state = c.own.Step(l.out[:0], step, l.began.Add(l.now))
		l.counts.events += uint64(c.own.Events())
		budget -= max(len(l.out), step) // a filtered one may look at many and take none
		if len(l.out) > 0 {
			l.holdFrames(c, l.out)
			if got := l.flush(c); got == pumpBroken || got == pumpFull && state != hub.OwnShared {
				return got // a stream that holds bytes lags, whatever it waits for
			}
		}
		switch state {
		case hub.OwnShared:
			c.place, c.behind = c.own.Place(), true
			if c.filtered != nil {
				l.file(c, c.own.Label())
			}
			l.disown(c)
			return l.pump(c)
		case hub.OwnIdle:
			return pumpIdle
		case hub.OwnRefused:
			return pumpRefused
		case hub.OwnReading:
			return pumpReading
		case hub.OwnMore:
		}
	}
	c.wroteAt = l.tick() // it is not the socket that refuses
	return pumpMore
}

// holdFrames holds whole frames, as c's stream carries them.
func (l *Loop) holdFrames(c *conn, b []byte) {
	if !c.plain {
		c.hold(b)
		return
	}
	for ; len(b) > 0; b = b[frame.Len(b):] {
		c.hold(frame.Unchunk(b[:frame.Len(b)]))
	}
}

// disown ends the personal part of a stream, or forgets it with the stream.
func (l *Loop) disown(c *conn) {
	if c.own == nil {
		return
	}
	c.own.Close()
	c.own = nil
}

// takeOwn lets the personal streams go on whose history is there: they join
// the lagging ones, which are served in bounded steps.
func (l *Loop) takeOwn() {
	l.owns = l.box.TakeOwn(l.owns[:0])
	for _, o := range l.owns {
		if c := o.Conn.(*conn); c.own == o && c.stream != nil && c.list == &c.stream.reading {
			l.lag(c)
		}
	}
	clear(l.owns)
}

// after puts a stream where the result of its pump belongs.
func (l *Loop) after(c *conn, got pumpResult) {
	if c.owesLive {
		got = l.sayLive(c, got)
	}
	switch got {
	case pumpCaughtUp:
		c.behind = false
		if c.filtered != nil {
			l.enlist(c, &c.stream.quiet)
		} else {
			l.enlist(c, &c.stream.live)
		}
	case pumpIdle, pumpRefused: // the pass that serves it next ends it
		l.enlist(c, &c.stream.idle)
	case pumpReading:
		l.enlist(c, &c.stream.reading)
	case pumpFull, pumpMore:
		l.lag(c)
	case pumpEnded:
		l.ended(c)
	case pumpOverwritten:
		l.drop(c, closeOverwritten)
	case pumpBroken:
		l.close(c, c.reason)
	}
}

// sayLive tells a stream that it has caught up, if that is what got means. It
// returns how far the stream got then.
func (l *Loop) sayLive(c *conn, got pumpResult) pumpResult {
	if c.state != stateStream || got != pumpCaughtUp && (got != pumpIdle || !c.own.Current()) {
		return got
	}
	c.owesLive = false
	c.hold(l.plainly(c, live))
	if told := l.flush(c); told != pumpCaughtUp {
		return told
	}
	return got
}

var live = []byte(frame.Live)

// enlist puts c into a roster, unless it is there.
func (l *Loop) enlist(c *conn, r *roster) {
	if c.list != r {
		l.unlist(c)
		r.add(c)
	}
}
