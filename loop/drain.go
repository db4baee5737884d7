package loop

import (
	"math/rand/v2"
	"slices"
	"time"
)

// What a loop may be ordered to do, from any goroutine; orders only rise.
const (
	orderDrain = 1 // end every connection, spread over time
	orderKill  = 2 // drop what is left
)

// drainEvery is the longest pause between two streams that are ended; with
// many streams it is shorter, so that half of --drain is enough for all. The
// other half is for those that are slow to take their last frame.
const drainEvery = 10 * time.Millisecond

// drain is the state of an ordered drain.
type drain struct {
	begun bool
	queue []*conn       // still to be ended
	each  time.Duration // pause between two
	due   time.Duration // when the next one is ended; 0: none is left
}

// order tells the loop to drain or kill. Safe from any goroutine.
func (l *Loop) order(o int32) {
	l.orders.Store(o)
	l.waker.wake()
}

// obey carries out the orders given.
func (l *Loop) obey() {
	switch l.orders.Load() {
	case orderDrain:
		l.drain()
	case orderKill:
		for len(l.all) > 0 {
			l.drop(l.all[len(l.all)-1], closeDrain)
		}
	}
}

// drain ends the connections that are due.
func (l *Loop) drain() {
	d := &l.draining
	if !d.begun {
		d.begun, d.queue, d.due = true, slices.Clone(l.all), l.now
		d.each = min(drainEvery, l.srv.cfg.Drain/2/time.Duration(max(1, len(d.queue))))
	}
	for len(d.queue) > 0 && d.due <= l.now {
		last := len(d.queue) - 1
		c := d.queue[last]
		d.queue = d.queue[:last]
		d.due += max(d.each, time.Microsecond)
		switch {
		case c.state == stateStream:
			l.end(c, closeDrain)
		case c.state == stateAsking:
			l.again(c)
		case c.state == stateHead && c.in == nil:
			l.hangUp(c, closeDrain)
		}
	}
	if len(d.queue) == 0 {
		d.queue, d.due = nil, 0
	}
}

// jitter spreads d by a tenth either way.
func jitter(r *rand.Rand, d time.Duration) time.Duration {
	return d - d/10 + time.Duration(r.Int64N(int64(d/5)+1))
}
