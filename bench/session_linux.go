package bench

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// recordMax is the most plaintext of one TLS record (RFC 8446 5.1).
const recordMax = 16 << 10

// session is the TLS of one connection. Its tls.Conn talks to a transport in
// memory, so that it never blocks a client's thread. The handshake, which
// crypto/tls can't leave halfway, is a coroutine: it waits in wire.Read, and
// goes on inside handshake.
type session struct {
	tls  *tls.Conn
	wire wire

	// Of the handshake; nil when it is over.
	resume func() (struct{}, bool)
	stop   func()
	err    error // what became of it
}

// wire is the transport of a session.
type wire struct {
	net.Conn                     // nil: of the rest crypto/tls calls nothing
	in       []byte              // what came; aliases the client's buffer
	out      []byte              // what is to be sent
	wait     func(struct{}) bool // for more of the handshake; false when it is to end
}

func newSession(config *tls.Config) *session {
	s := &session{}
	s.tls = tls.Client(&s.wire, config)
	s.resume, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		s.wire.wait = yield
		s.err = s.tls.Handshake()
	})
	return s
}

// handshake goes on with the handshake by what came, and reports whether it is
// over. What it has to say is in wire.out, also with an error; what came behind
// it stays in wire.in.
func (s *session) handshake(b []byte) (over bool, err error) {
	s.wire.in = b
	if _, more := s.resume(); more {
		return false, nil
	}
	s.wire.wait, s.resume, s.stop = nil, nil, nil
	return true, s.err
}

// abandon ends a handshake that is under way.
func (s *session) abandon() {
	if s.stop != nil {
		s.stop()
	}
}

// errGone ends a handshake whose connection the client has given up.
var errGone = errors.New("the connection is closed")

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	for len(w.in) == 0 {
		if w.wait == nil {
			return 0, errDry
		}
		if !w.wait(struct{}{}) {
			return 0, errGone
		}
	}
	n := copy(b, w.in)
	w.in = w.in[n:]
	return n, nil
}

// Write implements net.Conn.
func (w *wire) Write(b []byte) (int, error) {
	w.out = append(w.out, b...)
	return len(b), nil
}

// SetWriteDeadline implements net.Conn, for the alert that answers a broken one.
func (*wire) SetWriteDeadline(time.Time) error { return nil }

// errDry says that everything that came was read. It is a temporary net.Error,
// the kind that a tls.Conn does not keep.
var errDry net.Error = dry{}

type dry struct{}

func (dry) Error() string   { return "everything that came was read" }
func (dry) Timeout() bool   { return true }
func (dry) Temporary() bool { return true }

// greet sends the first bytes of a handshake, or waits until the socket takes
// them.
func (cl *Client) greet(c *conn) error {
	s := c.session
	if s.wire.out == nil {
		if over, err := s.handshake(nil); over {
			cl.failed(c, fmt.Errorf("TLS handshake: %w", err))
			return nil
		}
	}
	switch err := cl.flush(c); err {
	case nil:
		c.state = shaking
		return cl.watch(c, unix.EPOLLIN)
	case unix.EAGAIN:
		return cl.watch(c, unix.EPOLLOUT)
	default:
		cl.failed(c, err)
		return nil
	}
}

// shake reads more of a handshake, and sends the request when it is over.
func (cl *Client) shake(c *conn) error {
	n, err := unix.Read(c.fd, cl.buf)
	if err == unix.EAGAIN || err == unix.EINTR {
		return nil
	}
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	over := false
	if err == nil {
		cl.tally.counts.Bytes += int64(n)
		if over, err = c.session.handshake(cl.buf[:n]); over && err == nil {
			cl.shaken(c)
			_, err = c.session.tls.Write(cl.requestOf(c))
		}
		if sent := cl.flush(c); err == nil {
			err = sent
		}
	}
	switch {
	case err != nil:
		cl.failed(c, fmt.Errorf("TLS handshake: %w", err))
		return nil
	case !over:
		return nil
	}
	if err := cl.hasAsked(c); err != nil {
		return err
	}
	cl.unseal(c, c.session.wire.in)
	return nil
}

// shaken counts a handshake.
func (cl *Client) shaken(c *conn) {
	cl.tally.counts.Handshakes++
	if c.session.tls.ConnectionState().DidResume {
		cl.tally.counts.Resumed++
	}
}

// flush sends what c's session has to say.
func (cl *Client) flush(c *conn) error {
	w := &c.session.wire
	if len(w.out) == 0 {
		return nil
	}
	if err := writeAll(c.fd, w.out); err != nil {
		return err
	}
	w.out = nil
	return nil
}

// unseal reads the records of which b is the next part. It borrows b.
func (cl *Client) unseal(c *conn, b []byte) {
	s := c.session
	s.wire.in = b
	for {
		n, err := s.tls.Read(cl.opened)
		if n > 0 && !cl.take(c, cl.opened[:n]) {
			return
		}
		switch err {
		case nil:
			continue
		case errDry:
			if err := cl.flush(c); err != nil && err != unix.EAGAIN { // a new key, say
				cl.ended(c, &cl.tally.counts.EndedReset)
			}
		case io.EOF: // close_notify
			cl.ended(c, &cl.tally.counts.EndedEOF)
		default:
			cl.tally.fault("stream %d: %v", c.judge.stream, err)
			cl.drop(c, &cl.tally.counts.Malformed, cl.comesBack(c))
		}
		return
	}
}
