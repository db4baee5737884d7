package loop

import (
	"time"

	"tailcast/frame"
	"tailcast/hub"
)

const (
	// looksMax bounds the labels that a stream looks at by itself in one turn,
	// when it comes back or was behind: about 30 us.
	looksMax = 4096
	// piecesMax bounds the frames of one write, and pieceBytesMax the bytes that
	// are copied for it; a larger frame, or frames that lie together, are not.
	piecesMax     = 64
	pieceBytesMax = 64 << 10
	// owedFor is how long a stream may owe more than --max-lag, so that a burst
	// drops nobody.
	owedFor = 5 * time.Second
)

// filtered is what a stream with a filter has beside its conn. Once its place
// is right for it, it is filed in the matcher of its streams, and quiet while
// everything that is for it is written. What is for it is found by its labels,
// from the first that it has not looked at.
type filtered struct {
	hub.Watch
	filed bool

	label    int64 // of the first label it has not looked at
	until    int64 // behind the last label that may be for it
	frameEnd int64 // conn.place is in the frame that ends here, or at its end
	told     int64 // place behind the frame whose id it was told last

	round        int64 // of the matcher in which its hits are all it has from label on; 0: none
	hit, lastHit int32 // the first of them that is not gathered, and the last

	owed  int64 // bytes of what is for it and not written, unless conn.behind
	due   int64 // what of them was owed at dueAt, and is still
	dueAt int64 // tick
}

// piece is a frame to be written to a filtered stream.
type piece struct {
	label  int64 // its own
	place  int64
	size   int
	record bool
}

// pumpFiltered writes to a filtered stream what of the log is for it.
func (l *Loop) pumpFiltered(c *conn) pumpResult {
	looks := looksMax
	for budget := pumpBytesMax; budget > 0; {
		l.pieces = l.pieces[:0]
		if x := c.filtered; c.place < x.frameEnd {
			l.pieces = append(l.pieces, piece{label: x.label, place: c.place, size: int(x.frameEnd - c.place)})
		} else if c.state == stateEnding {
			return l.finish(c)
		} else if s := c.lease(); s != nil && s.ask != nil {
			if got := l.sayChallenge(c, s); got != pumpCaughtUp {
				return got
			}
			continue
		} else if !l.gather(c, &looks) {
			return pumpOverwritten
		}
		if len(l.pieces) == 0 {
			if looks > 0 {
				c.filtered.owed, c.filtered.due = 0, 0
				return pumpCaughtUp
			}
			break
		}
		n, got := l.writePieces(c)
		if got != pumpCaughtUp {
			return got
		}
		budget -= n
	}
	c.wroteAt = l.tick() // it is not the socket that refuses
	return pumpMore
}

// gather notes the next frames for a stream that is between two frames. If the
// matcher does not know them, it looks through looks labels at most; it is
// false when the log no longer holds them.
func (l *Loop) gather(c *conn, looks *int) bool {
	x, m := c.filtered, &c.stream.matcher
	size := 0
	if x.round == m.round && x.round != 0 {
		for x.hit >= 0 {
			h := &m.hits[x.hit]
			if x.label = h.label; !l.add(h.piece, &size) {
				return true
			}
			x.hit = h.next
		}
		x.label, x.round = x.until, 0
		return true
	}
	for end := max(x.until, m.all); x.label < end; {
		b, ok := c.stream.reader.Labels(x.label)
		if !ok {
			return false
		}
		for ; len(b) > 0 && x.label < end; *looks-- {
			if *looks == 0 {
				return true
			}
			label, n := hub.NextLabel(b)
			if x.Filter.Match(&label) {
				if !l.add(piece{x.label, label.Place, label.Size, label.Kind == hub.LabelRecord}, &size) {
					return true
				}
			}
			x.label += int64(n)
			b = b[n:]
		}
	}
	return true
}

// add adds a piece to those of one write, of size bytes by then; false if
// there is no room.
func (l *Loop) add(p piece, size *int) bool {
	if *size += p.size; len(l.pieces) == piecesMax || *size > pieceBytesMax && len(l.pieces) > 0 {
		return false
	}
	l.pieces = append(l.pieces, p)
	return true
}

// writePieces writes the frames gathered, and returns how many bytes of the
// log that were.
func (l *Loop) writePieces(c *conn) (int, pumpResult) {
	b, ok := l.join(c)
	switch {
	case !ok:
		return 0, pumpOverwritten
	case c.plain:
		n := len(b)
		l.took(c, n)
		for ; len(b) > 0; b = b[frame.Len(b):] {
			c.hold(frame.Unchunk(b[:frame.Len(b)]))
		}
		return n, l.flush(c)
	}
	n, err := l.send(c, b)
	if err != nil {
		return n, pumpBroken
	}
	l.took(c, n)
	if n < len(b) || c.unsent() {
		return n, pumpFull
	}
	return n, pumpCaughtUp
}

// join returns the bytes of the pieces; false when the log no longer holds them.
func (l *Loop) join(c *conn) ([]byte, bool) {
	first, last := &l.pieces[0], &l.pieces[len(l.pieces)-1]
	size := 0
	for i := range l.pieces {
		size += l.pieces[i].size
	}
	b, ok := c.stream.reader.Read(first.place)
	if !ok {
		return nil, false
	}
	if last.place+int64(last.size)-first.place == int64(size) && len(b) >= size {
		return b[:size], true // they lie together
	}
	l.out = l.out[:0]
	for i := range l.pieces {
		p := &l.pieces[i]
		if b, ok = c.stream.reader.Read(p.place); !ok {
			return nil, false
		}
		l.out = append(l.out, b[:p.size]...)
	}
	return l.out, true
}

// took notes that n bytes of the pieces are written or held.
func (l *Loop) took(c *conn, n int) {
	x := c.filtered
	for i := range l.pieces {
		p := &l.pieces[i]
		if n == 0 {
			x.label, x.round = p.label, 0 // and what follows is looked for again
			return
		}
		k := min(n, p.size)
		n -= k
		c.place, x.frameEnd = p.place+int64(k), p.place+int64(p.size)
		x.told = x.frameEnd
		if p.record {
			l.counts.events++
			x.owed -= int64(p.size)
			x.due -= int64(p.size)
		}
	}
}

// owesTooMuch reports whether a filtered stream lacks more than --max-lag of
// what was there for it at least owedFor ago.
func (l *Loop) owesTooMuch(c *conn) bool {
	x := c.filtered
	if l.since(x.dueAt) < owedFor {
		return false
	}
	late := x.due > l.srv.cfg.MaxLag
	x.due, x.dueAt = x.owed, l.tick()
	return late
}

// beatQuiet sends a heartbeat to a filtered stream that was silent for long
// enough: the position, if it moved.
func (l *Loop) beatQuiet(c *conn) {
	s, x := c.stream, c.filtered
	if l.since(c.wroteAt) < s.reader.Heartbeat() {
		s.quiet.pass()
		return
	}
	l.out = append(l.out[:0], heartbeat...)
	if m := &s.matcher; x.label <= m.at && m.last >= x.told {
		if b, ok := s.reader.Read(m.last); ok { // its id says where it ends
			b = b[:frame.Len(b)]
			l.out = frame.AppendIDBlock(l.out[:0], frame.PositionID(b))
			x.told = m.last + int64(len(b))
		}
	}
	c.hold(l.plainly(c, l.out))
	l.serve(c, &s.quiet)
}
