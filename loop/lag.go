package loop

import "golang.org/x/sys/unix"

// lag puts a stream whose socket refused bytes, or that has more to write
// than a turn allows, among those the loop polls.
func (l *Loop) lag(c *conn) {
	c.list, c.pos = listLagging, int32(len(l.lagging))
	c.wroteAt = l.wheel.now // --stall counts from here
	l.lagging = append(l.lagging, c)
	if len(l.lagging) == 1 {
		l.pollDue = l.now + pollEvery
	}
}

func (l *Loop) unlag(c *conn) {
	last := len(l.lagging) - 1
	l.lagging[c.pos] = l.lagging[last]
	l.lagging[c.pos].pos = c.pos
	l.lagging[last] = nil
	l.lagging = l.lagging[:last]
	c.list = listNone
}

// pollLagging serves the lagging streams whose sockets take bytes again and
// drops those that are too slow. The looks together take a twentieth of the
// loop's time at most.
func (l *Loop) pollLagging() {
	if len(l.lagging) == 0 || l.now < l.pollDue {
		return
	}
	begin := l.now
	l.polled = l.polled[:0]
	for _, c := range l.lagging {
		l.polled = append(l.polled, unix.PollFd{Fd: c.fd, Events: unix.POLLOUT})
	}
	if _, err := unix.Poll(l.polled, 0); err != nil {
		l.pollDue = l.now + pollEvery // EINTR, ENOMEM: look again
		return
	}
	l.tell()
	cost := l.now - begin
	// Backwards: a stream that leaves the list is replaced by one already seen.
	for i := len(l.polled) - 1; i >= 0; i-- {
		c := l.lagging[i]
		if l.polled[i].Revents != 0 {
			l.resume(c)
		}
		if c.list == listLagging {
			l.judge(c)
		}
	}
	l.tell()
	l.pollDue = l.now + max(pollEvery, pollCostFactor*cost)
}

// resume writes to a lagging stream whose socket is writable.
func (l *Loop) resume(c *conn) {
	switch l.pump(c) {
	case pumpCaughtUp:
		l.unlag(c)
		c.behind = false
		c.stream.add(c)
	case pumpEnded:
		l.unlag(c)
		l.finish(c)
	case pumpOverwritten:
		l.drop(c, closeOverwritten)
	case pumpBroken:
		l.close(c, closeError)
	}
}

// judge drops a lagging stream that is too slow: DESIGN's two rules. One that
// began behind is spared the first until it has caught up once.
func (l *Loop) judge(c *conn) {
	if l.since(c.wroteAt) > l.srv.cfg.Stall {
		l.drop(c, closeStall)
		return
	}
	if !c.behind && c.place+l.srv.cfg.MaxLag < c.stream.reader.LagMark() {
		l.drop(c, closeLag)
	}
}

// drop ends a stream at once with RST, so that the kernel keeps nothing for it.
func (l *Loop) drop(c *conn, why closeReason) {
	c.reset()
	l.close(c, why)
}
