package loop

import (
	"time"

	"golang.org/x/sys/unix"
)

// lag moves a stream whose socket refused bytes, or that has more to write
// than a turn allows, to those the loop looks at.
func (l *Loop) lag(c *conn) {
	if c.list == &l.lagging {
		return
	}
	l.unlist(c)
	c.wroteAt = l.tick() // --stall counts from here
	if l.lagging.len() == 0 && !l.looking {
		l.lookDue = l.now + lookSoon
	}
	l.lagging.add(c)
}

// look serves the lagging streams whose sockets take bytes again and drops
// those that are too slow, until all have been looked at, turnMax is over, or
// lookLeast while others wait; it reports whether there are more. Asking the kernel takes a twentieth of
// the loop's time at most.
func (l *Loop) look() (more bool) {
	if !l.looking {
		if l.lagging.len() == 0 || l.now < l.lookDue {
			return false
		}
		l.looking, l.lookCost, l.lookRest = true, 0, lookEvery
		l.lagging.rewind()
	}
	least, until := l.now+l.lookLeast(), l.now+turnMax
	over := func() bool { return l.now >= least && (l.now >= until || len(l.passes) > 0 || l.waker.awake.Load()) }
	for ; !over(); l.tell() {
		n := l.ask()
		if n == 0 {
			l.looking = false
			l.lookDue = l.now + min(max(l.lookRest, lookCostFactor*l.lookCost), lookRestMax)
			return false
		}
		for range n {
			if c := l.lagging.next(); c != nil {
				l.lookAt(c)
			}
			if l.tell(); over() { // those not served are asked for again
				break
			}
		}
	}
	return true
}

// lookLeast is what a look has of a turn when streams that are up to date wait for
// what is new: half of the share that lagging streams are of all, since they are
// late anyway, and lookShareMin at least.
func (l *Loop) lookLeast() time.Duration {
	half := time.Duration(l.lagging.len()) * turnMax / time.Duration(2*max(1, l.counts.streams))
	return min(turnMax, max(lookShareMin, half))
}

// ask notes which of the next clockEvery lagging streams have a writable
// socket, or a broken one, and returns how many it asked for.
func (l *Loop) ask() int {
	conns := l.lagging.ahead(clockEvery)
	l.polled = l.polled[:0]
	for _, c := range conns {
		l.polled = append(l.polled, unix.PollFd{Fd: c.fd, Events: unix.POLLOUT})
	}
	if len(conns) == 0 {
		return 0
	}
	begin := l.now
	if _, err := unix.Poll(l.polled, 0); err == nil { // else the next look asks again
		for i, c := range conns {
			if c.writable = l.polled[i].Revents != 0; c.writable {
				l.lookRest = lookSoon
			}
		}
	}
	l.tell()
	l.lookCost += l.now - begin
	return len(conns)
}

// lookAt does what is due for a lagging stream: one that came into another's
// place since ask is not known to be writable, and waits for the next look.
func (l *Loop) lookAt(c *conn) {
	if c.writable {
		c.writable = false
		l.after(c, l.pump(c))
	}
	if c.list == &l.lagging {
		l.judge(c)
	}
	if c.list == &l.lagging {
		l.lagging.pass()
	}
}

// judge drops a lagging stream that is too slow, by one of two rules. One that
// began behind is spared the second until it has caught up once, and one that
// is ended anyway has a deadline for both.
func (l *Loop) judge(c *conn) {
	switch {
	case c.state != stateStream:
	case l.since(c.wroteAt) > l.srv.cfg.Stall:
		l.drop(c, closeStall)
	case c.own == nil && !c.behind && l.tooFar(c):
		l.drop(c, closeLag)
	}
}

// tooFar reports whether a stream is further behind than --max-lag allows: in
// the log where its head was a while ago, or in what was for it then.
func (l *Loop) tooFar(c *conn) bool {
	if c.filtered != nil {
		return l.owesTooMuch(c)
	}
	return c.place+l.srv.cfg.MaxLag < c.stream.reader.LagMark()
}

// drop ends a stream at once with RST, so that the kernel keeps nothing for it.
func (l *Loop) drop(c *conn, why closeReason) {
	c.reset()
	l.close(c, why)
}
