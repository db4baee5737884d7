package loop

import "tailcast/frame"

// pumpResult is how far a stream got.
type pumpResult uint8

const (
	pumpCaughtUp    pumpResult = iota // at the head of the log
	pumpFull                          // the socket refused bytes
	pumpMore                          // pumpBytesMax written, and there are more
	pumpOverwritten                   // the log no longer holds the stream's place
	pumpBroken                        // the socket is dead
	pumpEnded                         // its last bytes are written
	pumpIdle                          // personal: nothing to write until the feed has something new
	pumpReading                       // personal: nothing to write until history is read
	pumpRefused                       // personal: what it needs is not to be had
)

// pump writes to a stream what it lacks, first its own bytes, then the log's,
// up to pumpBytesMax; to one that is ended, up to its end. When the socket is
// broken, c.reason says how.
func (l *Loop) pump(c *conn) pumpResult {
	if c.own != nil && c.state == stateStream {
		return l.pumpOwn(c)
	}
	if c.unsent() {
		if got := l.flush(c); got != pumpCaughtUp {
			return got
		}
	}
	if c.state == stateLast {
		return l.notify(c)
	}
	if c.filtered != nil {
		return l.pumpFiltered(c)
	}
	for budget := pumpBytesMax; budget > 0; {
		b, ok := c.stream.reader.Read(c.place)
		if !ok {
			return pumpOverwritten
		}
		if c.state == stateEnding {
			if b = b[:min(int64(len(b)), c.endAt-c.place)]; len(b) == 0 {
				return l.finish(c)
			}
		}
		if s := c.lease(); s != nil && s.ask != nil {
			if c.place == s.askAt {
				if got := l.sayChallenge(c, s); got != pumpCaughtUp {
					return got
				}
				continue
			}
			b = b[:min(int64(len(b)), s.askAt-c.place)]
		}
		if len(b) == 0 {
			return pumpCaughtUp
		}
		if c.plain {
			n := l.holdPlain(c, b)
			if got := l.flush(c); got != pumpCaughtUp {
				return got
			}
			budget -= n
			continue
		}
		n, err := l.send(c, b)
		if err != nil {
			return pumpBroken
		}
		l.advance(c, n)
		if n < len(b) || c.unsent() {
			return pumpFull
		}
		budget -= n
	}
	return pumpMore
}

// holdPlain takes frames from the front of b for a stream that is not chunked
// (HTTP/1.0): their blocks alone, up to pendingBytesMax or one larger frame.
// It returns how many bytes of b it took.
func (l *Loop) holdPlain(c *conn, b []byte) int {
	taken := 0
	for taken < len(b) {
		next := b[taken : taken+frame.Len(b[taken:])]
		block := frame.Unchunk(next)
		if c.pending != nil && len(c.pending.B)+len(block) > pendingBytesMax {
			break
		}
		c.hold(block)
		taken += len(next)
	}
	l.advance(c, taken)
	return taken
}

// flush writes a stream's own bytes, and what of a record the socket refused;
// pumpCaughtUp when none are left.
func (l *Loop) flush(c *conn) pumpResult {
	var own []byte
	if c.pending != nil {
		own = c.pending.B
	}
	n, err := l.send(c, own)
	if err != nil {
		return pumpBroken
	}
	if n < len(own) {
		c.pending.B = own[:copy(own, own[n:])]
	} else {
		c.unhold()
	}
	if c.ownHeld > 0 {
		l.countHeld(c)
	}
	if c.unsent() {
		return pumpFull
	}
	return pumpCaughtUp
}

// send gives b to the socket of c, sealed if it has TLS, and returns how many
// bytes of it need not be given again: fewer than len(b) when the socket is
// full. Of those it took, up to a record may still be c's to send: c.unsent
// says so. Any other error means that the connection is broken, and c.reason
// says how.
func (l *Loop) send(c *conn, b []byte) (int, error) {
	if s := c.session(); s != nil {
		return l.sendSealed(c, s, b)
	}
	n, err := c.write(b)
	l.wrote(c, n)
	return n, err
}

// wrote counts bytes the socket took.
func (l *Loop) wrote(c *conn, n int) {
	if n > 0 {
		c.wroteAt = l.tick()
		l.counts.bytes += uint64(n)
	}
}

// advance moves a stream's place and counts the events whose frames began there.
func (l *Loop) advance(c *conn, n int) {
	if n > 0 {
		l.counts.events += uint64(c.stream.count(c.place, c.place+int64(n)))
		c.place += int64(n)
	}
}

// plainly returns a whole frame as c's stream carries it.
func (l *Loop) plainly(c *conn, chunk []byte) []byte {
	if !c.plain {
		return chunk
	}
	return frame.Unchunk(chunk)
}
