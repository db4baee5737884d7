package loop

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/valyala/bytebufferpool"
)

const (
	// recordMax is the most plaintext of one TLS record (RFC 8446 5.1). It is
	// what is sealed at a time, and so what a socket may refuse of what was
	// taken from the log: a record can't be taken back.
	recordMax = 16 << 10
	// repliesMax bounds what TLS itself has to say (answers to KeyUpdate, an
	// alert) to a client that doesn't read, beside the record before it.
	repliesMax = 4 << 10
)

// session is the TLS of one connection. The handshake is over; the tls.Conn
// talks to a conn in memory, so that it neither blocks nor needs a goroutine.
// It belongs to the connection's loop.
type session struct {
	tls  *tls.Conn
	wire wire
	rest *bytebufferpool.ByteBuffer // records that the socket refused; nil without
}

// newSession returns the server's side of a session over raw, whose handshake
// is still to come.
func newSession(raw net.Conn, config *tls.Config) *session {
	s := &session{wire: wire{Conn: raw}}
	s.tls = tls.Server(&s.wire, config)
	return s
}

// restPool is apart from the common pool, which learns what sizes are asked
// for: nearly a record each here, and some hundred bytes there.
var restPool bytebufferpool.Pool

// keep holds records for later.
func (s *session) keep(b []byte) {
	if s.rest == nil {
		s.rest = restPool.Get()
	}
	_, _ = s.rest.Write(b) // a ByteBuffer's Write can't fail
}

func (s *session) release() {
	if s.rest != nil {
		restPool.Put(s.rest)
		s.rest = nil
	}
}

// wire is the transport of a tls.Conn: the socket while the handshake runs,
// memory afterwards.
type wire struct {
	net.Conn         // nil after the handshake
	early    early   // what came before the transport changed
	in       []byte  // what came, while the loop reads it; the loop's
	out      *[]byte // what is to be sent: Loop.sealed
}

// Read implements net.Conn. In memory it never blocks: errDry says that
// everything there is was read, which a tls.Conn takes for no harm.
func (w *wire) Read(b []byte) (int, error) {
	if n := w.early.read(b); n > 0 {
		return n, nil
	}
	if w.Conn != nil {
		return w.Conn.Read(b)
	}
	if len(w.in) == 0 {
		return 0, errDry
	}
	n := copy(b, w.in)
	w.in = w.in[n:]
	return n, nil
}

// Write implements net.Conn. In memory it can't fail.
func (w *wire) Write(b []byte) (int, error) {
	if w.Conn != nil {
		return w.Conn.Write(b)
	}
	*w.out = append(*w.out, b...)
	return len(b), nil
}

// SetWriteDeadline implements net.Conn; the loop has deadlines of its own.
func (w *wire) SetWriteDeadline(t time.Time) error {
	if w.Conn != nil {
		return w.Conn.SetWriteDeadline(t)
	}
	return nil
}

// errDry is a temporary net.Error, the kind that crypto/tls does not keep.
var errDry net.Error = dry{}

type dry struct{}

func (dry) Error() string   { return "everything that came was read" }
func (dry) Timeout() bool   { return true }
func (dry) Temporary() bool { return true }

// resume makes a session the loop's: what comes behind its handshake is for
// the loop to read.
func (l *Loop) resume(s *session) {
	s.wire.Conn, s.wire.out = nil, &l.sealed
	if l.opened == nil {
		l.opened = make([]byte, recordMax)
	}
}

// unseal takes records that came, in any pieces. It is false when the
// connection is to be closed, for the reason in c.reason. b is borrowed. Of
// records that hold nothing for us (KeyUpdate, warnings, empty ones) crypto/tls
// takes 16 between two that do.
func (l *Loop) unseal(c *conn, s *session, b []byte) bool {
	s.wire.in = b
	ok := l.readAll(c, s)
	switch c.state { //nolint:exhaustive // the others read on
	case stateStream: // which reads next to nothing from here on
		shrink(s.tls)
	case stateAway:
		s.wire.early = bytes.Clone(s.wire.in)
	}
	s.wire.in = nil
	return ok
}

func (l *Loop) readAll(c *conn, s *session) bool {
	for {
		n, err := s.tls.Read(l.opened)
		if !l.reply(c, s) || n > 0 && !l.receive(c, l.opened[:n]) {
			return false
		}
		switch err {
		case nil:
		case errDry:
			return true
		case io.EOF: // close_notify
			return false
		default:
			if c.state != stateLinger {
				c.reason = closeTLS
			}
			return false
		}
	}
}

// reply sends what TLS itself has to say. Behind a record that the socket
// refused it waits for it, up to repliesMax.
func (l *Loop) reply(c *conn, s *session) bool {
	if err := l.ship(c, s); err != nil {
		return false
	}
	if s.rest == nil || len(s.rest.B) <= recordMax+repliesMax {
		return true
	}
	c.reason = closeTLS
	c.reset()
	return false
}

// sendSealed is send on a connection with TLS: a record at a time, so that
// what the socket refuses is one at most.
func (l *Loop) sendSealed(c *conn, s *session, b []byte) (taken int, err error) {
	if s.rest != nil {
		if err := l.shipRest(c, s); err != nil {
			return 0, err
		}
	}
	for taken < len(b) && s.rest == nil {
		n, err := s.tls.Write(b[taken:min(taken+recordMax, len(b))])
		if err != nil { // the session is at its end, the transport can't fail
			c.reason = closeTLS
			return taken, err
		}
		taken += n
		if err := l.ship(c, s); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// ship gives the records just sealed to the socket and keeps what it refuses.
func (l *Loop) ship(c *conn, s *session) error {
	b := l.sealed
	l.sealed = l.sealed[:0]
	if len(b) == 0 {
		return nil
	}
	n := 0
	if s.rest == nil {
		var err error
		if n, err = c.write(b); err != nil {
			return err
		}
		l.wrote(c, n)
	}
	if n < len(b) {
		s.keep(b[n:])
	}
	return nil
}

// shipRest gives the socket what it refused.
func (l *Loop) shipRest(c *conn, s *session) error {
	n, err := c.write(s.rest.B)
	if err != nil {
		return err
	}
	l.wrote(c, n)
	if n < len(s.rest.B) {
		s.rest.B = s.rest.B[:copy(s.rest.B, s.rest.B[n:])]
		return nil
	}
	s.release()
	return nil
}

// notify ends our side of the session behind everything sent (close_notify,
// RFC 8446 6.1); it may be called again until that is out. Without TLS there
// is nothing to say.
func (l *Loop) notify(c *conn) pumpResult {
	s := c.session()
	if s == nil {
		return pumpEnded
	}
	_ = s.tls.CloseWrite() // the transport can't fail
	switch {
	case l.ship(c, s) != nil:
		return pumpBroken
	case s.rest != nil:
		return pumpFull
	}
	return pumpEnded
}
