package loop

import (
	"time"

	"tailcast/frame"
	"tailcast/hub"
)

// streamsOf returns the streams of a feed on this loop, made on first use.
func (l *Loop) streamsOf(f *hub.Feed) *streams {
	s := l.feeds[f]
	if s == nil {
		s = &streams{reader: f.Reader(l.box)}
		s.reader.Streams = s
		l.feeds[f] = s
	}
	return s
}

// detach takes c from the streams of its feed, and forgets them with the last.
func (l *Loop) detach(c *conn) {
	s := c.stream
	if s == nil {
		return
	}
	c.stream = nil
	l.counts.streams--
	s.reader.Detached()
	if s.n--; s.n == 0 && !s.passing {
		l.leave(s)
	}
}

// leave forgets the streams of a feed that has none here any more.
func (l *Loop) leave(s *streams) {
	s.reader.Close()
	delete(l.feeds, s.reader.Feed())
}

// pass begins a pass over the streams of a feed that has something new, or
// another one behind the pass that runs.
func (l *Loop) pass(r *hub.Reader) {
	s, ok := r.Streams.(*streams)
	if !ok || s.n == 0 {
		return // its last stream left after the mark
	}
	if s.passing {
		s.again = true
		return
	}
	s.passing, s.next = true, 0
	l.passes = append(l.passes, s)
	if len(s.waiting) > 0 && !s.reader.Feed().IsOpen() {
		l.beatWaiting(s)
	}
}

// runPasses serves streams until all passes are done or turnMax is over; it
// reports whether there are more to serve. Feeds take turns by slices of
// clockEvery streams, so a large one does not hold up the others.
func (l *Loop) runPasses() (more bool) {
	until := l.now + turnMax
	for len(l.passes) > 0 {
		s := l.passes[0]
		done := l.slice(s)
		copy(l.passes, l.passes[1:])
		l.passes = l.passes[:len(l.passes)-1]
		if !done {
			l.passes = append(l.passes, s)
		} else {
			l.passed(s)
		}
		if l.tell(); l.now >= until {
			break
		}
	}
	return len(l.passes) > 0
}

// slice serves the next clockEvery streams of a pass; true when there are no more.
func (l *Loop) slice(s *streams) (done bool) {
	for range clockEvery {
		if len(s.waiting) > 0 && s.reader.Feed().IsOpen() {
			l.admit(s.waiting[0])
			continue
		}
		if s.next == len(s.live) {
			return true
		}
		l.serve(s.live[s.next])
	}
	return false
}

// passed ends a pass: what was published before it is written, or its stream
// is lagging.
func (l *Loop) passed(s *streams) {
	s.passing = false
	if s.n == 0 {
		l.leave(s)
		return
	}
	l.times = s.reader.Times(l.times[:0])
	l.tell()
	l.counts.observe(l.times, l.began.Add(l.now).UnixMilli())
	if s.again {
		s.again = false
		l.pass(s.reader)
	}
}

// serve writes to the stream whose turn in the pass it is.
func (l *Loop) serve(c *conn) {
	switch l.pump(c) {
	case pumpCaughtUp:
		c.behind = false
		c.stream.next++
	case pumpFull, pumpMore:
		l.unlist(c)
		l.lag(c)
	case pumpOverwritten:
		l.drop(c, closeOverwritten)
	case pumpBroken:
		l.close(c, closeError)
	}
}

// beatWaiting sends a heartbeat to the streams of a feed that is not open.
func (l *Loop) beatWaiting(s *streams) {
	for i := len(s.waiting) - 1; i >= 0; i-- {
		c := s.waiting[i]
		if c.pending == nil {
			c.hold(l.plainly(c, []byte(frame.Heartbeat)))
		}
		if l.flush(c) == pumpBroken {
			l.close(c, closeError)
		}
	}
}

// since is the time from then on, for lists that keep wheel ticks.
func (l *Loop) since(tick int64) time.Duration {
	return time.Duration(l.wheel.now-tick) * wheelTick
}
