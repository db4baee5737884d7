package loop

import (
	"errors"
	"io"
	"net"
	"net/netip"

	"github.com/panjf2000/gnet/v2"
	"github.com/valyala/bytebufferpool"
	"golang.org/x/sys/unix"

	"tailcast/hub"
)

// connState is where a connection is in its life.
type connState uint8

const (
	stateHead   connState = iota // between requests, or in the middle of a request's head
	stateAsking                  // a request waits for an answer from elsewhere
	stateBody                    // reading and discarding the body of an answered request
	stateGuard                   // a request whose token is being checked
	stateStream                  // a stream of events
	stateEnding                  // a stream whose last frame is still going out
	stateLast                    // a stream whose end is held and still going out
	stateLinger                  // our side is shut; what the peer still sends is discarded
	stateProxy                   // the PROXY header is still to come
	stateAway                    // to be handed over, with the bytes in its inbound
	stateGone                    // closed; only a list of the past may still name it
)

// closeReason is why a connection ended: the reason label of
// tailcast_connections_closed_total.
type closeReason uint8

const (
	closePeer        closeReason = iota // FIN or RST from the client, or it vanished
	closeDone                           // answered, and one side asked to close
	closeBadRequest                     // the request was refused
	closeTimeout                        // no complete head in time, or no request on a kept connection
	closeLag                            // dropped: more than --max-lag behind
	closeStall                          // dropped: took nothing for --stall
	closeOverwritten                    // dropped: the log no longer holds its place
	closeSurplus                        // sent too much on a connection that streams
	closeAge                            // ended after --max-age
	closeExpired                        // ended with its token
	closeDrain                          // ended because the node is stopping
	closeAway                           // not ended: handed over to those who serve files
	closeLimit                          // its client has as many connections as it may
	closeRefused                        // its snapshot is over --snapshot-bytes
	closeFeed                           // its feed is refused
	closeProxy                          // no PROXY header, or a wrong one
	closeTLS                            // broke the TLS protocol, or was told of a fault by an alert
	closeError                          // the socket failed
	closeReasons
)

var closeNames = [closeReasons]string{
	"peer", "done", "request", "timeout", "lag", "stall", "overwritten", "surplus", "age", "expired", "drain", "static", "limit", "snapshot", "feed", "proxy", "tls", "error",
}

// conn is one client connection. It belongs to the loop that took it; other
// goroutines never look into one (judged carries one past them).
type conn struct {
	// Fixed after open.
	gc   gnet.Conn
	edge *edge // nil for most
	fd   int32

	// Owned by the loop.
	state    connState
	plain    bool        // HTTP/1.0: events without chunks, the end of the stream is the connection's
	behind   bool        // has not caught up since it attached: exempt from --max-lag
	owesLive bool        // is to be told when it has caught up
	writable bool        // lagging: the kernel said so, and it was not served since
	reason   closeReason // why it ends, once that is decided
	pos      int32       // place in its list
	all      int32       // place in Loop.all
	ownHeld  int32       // bytes of pending that count in Loop.ownHeld
	surplus  int32       // bytes the client sent since its stream began
	list     *roster     // of streams, or Loop.lagging, if one of them holds it
	in       *inbound    // request bytes that are not a whole request yet; nil most of the time

	stream   *streams                   // the feed's streams on this loop; nil before the stream
	place    int64                      // of the next byte of the log; a frame's first byte while pending is not empty
	endAt    int64                      // stateEnding: the frame boundary to stop at
	pending  *bytebufferpool.ByteBuffer // the stream's own bytes, to be written before the log's
	resume   *hub.Start                 // where a waiting stream asked to go on
	own      *hub.Own                   // the stream is personal, and place means nothing
	filtered *filtered                  // nil: the stream gets every record
	wroteAt  int64                      // tick at which the socket last took bytes

	// The loop's wheel.
	due                  int64 // tick of its deadline, 0 without
	wheelPrev, wheelNext *conn
}

// edge is what only some connections have: those that came through something,
// are counted somewhere, or had to show a token.
type edge struct {
	quota  *quota[netip.Addr] // of its address; nil while --max-conns-per-ip is off
	seat   *seat              // of its stream, on a route with limits
	tls    *session           // nil on a plain connection
	proxy  bool               // a PROXY header comes first
	opened int64              // tick at which its stream began, if the end is to be logged
	first  []byte             // what was read of it before it came back to a loop
	addr   netip.Addr         // what that header says; not valid without
	lease  *lease             // the right of the stream to go on; nil if it needs none
}

// sit keeps the place of a stream.
func (c *conn) sit(s *seat) {
	if s == nil {
		return
	}
	if c.edge == nil {
		c.edge = &edge{}
	}
	c.edge.seat = s
}

// stand gives it back.
func (c *conn) stand() {
	if c.edge != nil {
		c.edge.seat.leave()
		c.edge.seat = nil
	}
}

// hold keeps a copy of b to be written before the log's bytes.
func (c *conn) hold(b []byte) {
	if c.pending == nil {
		c.pending = bytebufferpool.Get()
	}
	_, _ = c.pending.Write(b) // a ByteBuffer's Write can't fail
}

// unhold forgets the bytes held.
func (c *conn) unhold() {
	if c.pending != nil {
		bytebufferpool.Put(c.pending)
		c.pending = nil
	}
}

// unsent reports whether c holds bytes to be written before any others.
func (c *conn) unsent() bool {
	return c.pending != nil || c.edge != nil && c.edge.tls != nil && c.edge.tls.rest != nil
}

// release gives back what c borrowed from pools.
func (c *conn) release() {
	c.unhold()
	if s := c.session(); s != nil {
		s.release()
	}
}

// lease is the right of a guarded stream to go on, nil of any other.
func (c *conn) lease() *lease {
	if c.edge == nil {
		return nil
	}
	return c.edge.lease
}

// session is the TLS of c, nil without.
func (c *conn) session() *session {
	if c.edge == nil {
		return nil
	}
	return c.edge.tls
}

// write writes b to the socket and returns how many bytes it took: fewer than
// len(b) when the socket is full. Any other error means that it is broken, and
// c.reason says how.
func (c *conn) write(b []byte) (int, error) {
	for {
		n, err := write(c.fd, b)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			c.failed(err)
			return 0, err
		}
	}
}

// failed notes why the socket of c failed. The kernel gives up a peer that
// took nothing for --stall (TCP_USER_TIMEOUT) by itself, at about the time at
// which the loop does.
func (c *conn) failed(err error) {
	switch {
	case errors.Is(err, unix.ETIMEDOUT) && c.state == stateStream:
		c.reason = closeStall
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ETIMEDOUT):
		c.reason = closePeer
	default:
		c.reason = closeError
	}
}

// reset makes the close that follows send RST and discard what the kernel
// still holds.
func (c *conn) reset() {
	_ = unix.SetsockoptLinger(int(c.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// shut ends our side: FIN behind everything written.
func (c *conn) shut() error { return unix.Shutdown(int(c.fd), unix.SHUT_WR) }

// addr is the client's address.
func (c *conn) addr() netip.Addr {
	if c.edge != nil && c.edge.addr.IsValid() {
		return c.edge.addr
	}
	if a, ok := c.gc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
