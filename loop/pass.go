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
	l.unfile(c)
	l.disown(c)
	c.stand()
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
	switch {
	case !ok || s.n == 0: // its last stream left after the mark
	case s.passing:
		s.again = true
	default:
		s.begin(l.now)
		l.passes = append(l.passes, s)
	}
}

// runPasses serves streams until all passes are done or turnMax is over; it
// reports whether there are more to serve. Feeds take turns by slices of
// clockEvery streams, so a large one does not hold up the others.
func (l *Loop) runPasses() (more bool) {
	for until := l.now + turnMax; len(l.passes) > 0 && l.now < until; l.tell() {
		s := l.passes[0]
		done := l.slice(s)
		last := len(l.passes) - 1
		copy(l.passes, l.passes[1:])
		if l.passes[last] = s; done {
			l.passes[last] = nil
			l.passes = l.passes[:last]
			l.passed(s)
		}
	}
	return len(l.passes) > 0
}

// slice serves the next clockEvery streams of a pass; true when there are no more.
func (l *Loop) slice(s *streams) (done bool) {
	open := s.waiting.len() > 0 && s.reader.Feed().IsOpen()
	for range clockEvery {
		if c := s.waiting.next(); c != nil {
			if open {
				l.admit(c)
			} else {
				l.beat(c)
			}
		} else if c := s.live.next(); c != nil {
			l.serve(c, &s.live)
		} else if c := s.idle.next(); c != nil {
			l.serve(c, &s.idle)
		} else if c := s.reading.next(); c != nil && s.beating {
			l.serve(c, &s.reading)
		} else if c := s.matched.next(); c != nil {
			l.serve(c, &s.matched)
		} else if s.matcher.at < s.matcher.end {
			l.match(s)
			return false
		} else if c := s.quiet.next(); c != nil && s.beating {
			l.beatQuiet(c)
		} else {
			return true
		}
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
	l.times = s.reader.Times(l.times[:0], s.upTo)
	l.counts.observe(l.times, time.Now().UnixMilli()) // producers' clocks are set, and so is ours
	l.tell()
	if s.again {
		l.pass(s.reader)
	}
}

// serve writes to the stream of r whose turn in the pass it is.
func (l *Loop) serve(c *conn, r *roster) {
	got := l.pump(c)
	if got == pumpRefused && c.state == stateStream {
		l.end(c, closeRefused)
		return
	}
	l.after(c, got)
	if c.list == r {
		r.pass()
	}
}

// beat sends a heartbeat to a stream of a feed that is not open: there is no
// log yet that could hold one.
func (l *Loop) beat(c *conn) {
	s := c.stream
	if s.beating && c.pending == nil {
		c.hold(l.plainly(c, heartbeat))
	}
	if c.unsent() && l.flush(c) == pumpBroken {
		l.close(c, c.reason)
		return
	}
	s.waiting.pass()
}

var heartbeat = []byte(frame.Heartbeat)
