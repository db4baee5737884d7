package bench

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// cutBytesMax bounds what a stream still reads before it cuts its
	// connection: some frames, ending at any byte.
	cutBytesMax = 2 << 10
	// cutWithin bounds how long a cut waits for bytes to come.
	cutWithin = 250 * time.Millisecond
)

// stalledBuffer is SO_RCVBUF of a stalled stream, which the kernel doubles. A
// browser's is larger, which only makes it stall later.
const stalledBuffer = 4 << 10

// connState is where a connection is in its life.
type connState uint8

const (
	closed     connState = iota
	connecting           // until the socket takes the first bytes
	shaking              // until the TLS handshake is over
	asked                // until the response head is read
	open
)

// conn is one stream and its present connection.
type conn struct {
	stream
	judge

	fd      int
	session *session // nil without TLS
	turn    int32    // counts the connections, to know an epoll event of an older one
	state   connState
	kind    Kind
	watched bool  // by epoll
	settled bool  // counted in the client's settled
	gone    bool  // for good
	cutting bool  // at the next bytes that come
	cutAt   int64 // events, then it cuts; 0: by no number

	due    time.Duration // closed: when to come back; before open: when that began; open: when to cut, or when the allowance was counted
	allows int           // bytes a slow stream may read now
}

func (c *conn) reads() bool { return c.kind == Normal || c.kind == Reconnecting }

// connect starts a connection for stream i. An error means that the client
// can't go on; a refusal is counted.
func (cl *Client) connect(i int32) error {
	c := &cl.conns[i]
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err == unix.EMFILE {
		return fmt.Errorf("stream %d: too few file descriptors: raise ulimit -n", i)
	}
	if err != nil {
		return fmt.Errorf("stream %d: socket: %w", i, err)
	}
	c.fd, c.state, c.due = fd, connecting, time.Since(cl.start)
	if c.began == 0 {
		c.began = c.due
	}
	c.reset()
	if cl.to.tls != nil {
		c.session = newSession(cl.to.tls)
	}
	cl.opening++
	to := &unix.SockaddrInet4{Port: cl.to.addr.Port, Addr: [4]byte(cl.to.addr.IP.To4())}
	if cl.to.addr.IP.IsLoopback() {
		// Without IP_BIND_ADDRESS_NO_PORT bind would take a port that no other
		// connection from this address may use, whatever its destination.
		_ = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		from := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, byte(2 + int(i)/connsPerSource)}}
		if err := unix.Bind(fd, from); err != nil {
			return fmt.Errorf("stream %d: bind 127.0.0.%d: %w", i, from.Addr[3], err)
		}
	}
	if c.sample && cl.cfg.Arrivals {
		if err := stampArrivals(fd); err != nil {
			return fmt.Errorf("stream %d: %w", i, err)
		}
	}
	if int(i) >= cl.cfg.Conns-cl.cfg.Stalled {
		// So that little is under way when the stream stops to read.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, stalledBuffer)
	}
	if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
		cl.failed(c, err)
		return nil
	}
	// Over loopback the handshake is over by now, so the request can go at
	// once; elsewhere EAGAIN says to wait.
	return cl.ask(c)
}

// ask sends the request, or waits until the socket takes it; with TLS the
// handshake comes first.
func (cl *Client) ask(c *conn) error {
	if c.session != nil {
		return cl.greet(c)
	}
	switch err := writeAll(c.fd, cl.requestOf(c)); err {
	case nil:
		return cl.hasAsked(c)
	case unix.EAGAIN:
		return cl.watch(c, unix.EPOLLOUT)
	default:
		cl.failed(c, err)
		return nil
	}
}

// hasAsked waits for the response to a request that was sent.
func (cl *Client) hasAsked(c *conn) error {
	c.state = asked
	switch c.kind {
	case Stalled:
		cl.isOpen(c)
		return cl.watch(c, unix.EPOLLRDHUP) // besides resets, which are always told
	case Slow:
		cl.isOpen(c)
		return cl.watch(c, 0)
	default:
		return cl.watch(c, unix.EPOLLIN)
	}
}

// requestOf is c's request, valid until the next one.
func (cl *Client) requestOf(c *conn) []byte {
	req := append(cl.request[:0], "GET "...)
	req = append(req, cl.to.path...)
	if c.user != 0 {
		req = strconv.AppendInt(req, c.user, 10)
	}
	req = append(req, cl.fields...)
	if len(c.lastID) > 0 {
		req = append(req, "Last-Event-ID: "...)
		req = append(req, c.lastID...)
		req = append(req, "\r\n"...)
	}
	req = append(req, "\r\n"...)
	cl.request = req
	return req
}

// writeAll writes b, which is smaller than any send buffer, to a socket that
// has taken all before it. EAGAIN: it is not connected yet.
func writeAll(fd int, b []byte) error {
	n, err := unix.Write(fd, b)
	if err == nil && n < len(b) {
		err = errors.New("the socket took a part of what was to be sent")
	}
	return err
}

// watch tells epoll what to report of c.
func (cl *Client) watch(c *conn, events uint32) error {
	op := unix.EPOLL_CTL_ADD
	if c.watched {
		op = unix.EPOLL_CTL_MOD
	}
	c.watched = true
	ev := unix.EpollEvent{Events: events, Fd: int32(c.judge.stream), Pad: c.turn}
	if err := unix.EpollCtl(cl.ep, op, c.fd, &ev); err != nil {
		return fmt.Errorf("stream %d: epoll_ctl: %w", c.judge.stream, err)
	}
	return nil
}

// isOpen ends the opening of c.
func (cl *Client) isOpen(c *conn) {
	c.state = open
	cl.opening--
	cl.tally.opening.record(time.Since(cl.start) - c.due)
	cl.tally.counts.Opened++
	cl.settle(c)
	switch {
	case c.kind == Reconnecting && cl.cfg.ReconnectEvery > 0:
		// Uniform between nothing and twice the average.
		c.due = cl.now + time.Duration(cl.rng.Int64N(2*int64(cl.cfg.ReconnectEvery)))
	case c.kind == Slow:
		c.due, c.allows = cl.now, 0
	}
}

// settle counts c once, when it is known whether it opens.
func (cl *Client) settle(c *conn) {
	if !c.settled {
		c.settled = true
		cl.settled++
	}
}

// read takes at most room bytes from c and returns how many there were.
func (cl *Client) read(c *conn, room int) int {
	n, err := cl.readFrom(c, cl.buf[:min(room, len(cl.buf))])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0
	case err != nil:
		cl.ended(c, &cl.tally.counts.EndedReset)
		return 0
	case n == 0:
		cl.ended(c, &cl.tally.counts.EndedEOF)
		return 0
	}
	cl.tally.counts.Bytes += int64(n)
	if c.session != nil {
		cl.unseal(c, cl.buf[:n])
	} else {
		cl.take(c, cl.buf[:n])
	}
	return n
}

// readFrom is read(2), which tells the tally when what it took came.
func (cl *Client) readFrom(c *conn, b []byte) (n int, err error) {
	switch {
	case !c.sample:
		return unix.Read(c.fd, b)
	case cl.cfg.Arrivals:
		n, cl.tally.now, err = readStamped(c.fd, b, cl.control[:])
	default:
		n, err = unix.Read(c.fd, b)
		cl.tally.now = time.Now().UnixNano()
	}
	return n, err
}

// take reads the next bytes of c's response. It is false when they have ended
// the connection.
func (cl *Client) take(c *conn, b []byte) bool {
	inTheHead := c.phase == inHead
	err := c.feed(b)
	if inTheHead && c.phase != inHead && !cl.answered(c) {
		return false
	}
	switch {
	case err != nil:
		cl.tally.fault("stream %d: %v", c.judge.stream, err)
		cl.drop(c, &cl.tally.counts.Malformed, cl.comesBack(c))
		return false
	case c.phase == ended:
		cl.ended(c, &cl.tally.counts.EndedClean)
		return false
	}
	return true
}

// answered looks at the response head and reports whether it opens a stream.
func (cl *Client) answered(c *conn) bool {
	cl.status[c.status]++
	if c.status != 200 || !c.sse {
		// A browser gives up for good here.
		cl.tally.fault("stream %d: answered with status %d, event stream: %t", c.judge.stream, c.status, c.sse)
		cl.drop(c, &cl.tally.counts.Refused, false)
		return false
	}
	if c.state == asked {
		cl.isOpen(c)
	}
	return true
}

// readSlowly reads what the rate of a slow stream allows by now. What it did
// not use adds up to one second's worth.
func (cl *Client) readSlowly(c *conn) {
	rate := cl.cfg.SlowRate
	earned := int(int64(cl.now-c.due) * int64(rate) / int64(time.Second))
	if earned < 1 {
		return
	}
	c.due += time.Duration(int64(earned) * int64(time.Second) / int64(rate))
	c.allows = min(c.allows+earned, rate)
	c.allows -= cl.read(c, c.allows)
}

func (cl *Client) comesBack(c *conn) bool {
	return c.kind == Reconnecting || c.kind == Normal && cl.cfg.Reopen
}

// failed ends an attempt that never got a response head.
func (cl *Client) failed(c *conn, err error) {
	cl.tally.fault("stream %d: connect: %v", c.judge.stream, err)
	cl.drop(c, &cl.tally.counts.ConnectFails, cl.comesBack(c))
}

// ended notes that the server ended the stream.
func (cl *Client) ended(c *conn, how *int64) {
	if c.state != open {
		how = &cl.tally.counts.ConnectFails
	}
	cl.drop(c, how, cl.comesBack(c))
}

// shut closes c's connection.
func (c *conn) shut() {
	_ = unix.Close(c.fd)
	c.fd, c.state = -1, closed
	if c.session != nil {
		c.session.abandon()
		c.session = nil
	}
}

// drop closes c's connection, counts it in how, and lets the stream come back
// after the retry time, or not at all.
func (cl *Client) drop(c *conn, how *int64, back bool) {
	*how++
	if c.state != open {
		cl.opening--
	}
	if c.cutting {
		cl.cuts--
	}
	c.shut()
	c.watched, c.cutting = false, false
	c.turn++
	if !back {
		c.gone = true
		cl.settle(c)
		cl.gone++
		return
	}
	wait := c.retry
	if wait == 0 {
		wait = retryDefault
	}
	c.due = cl.now + min(wait, cl.cfg.RetryMax)
	cl.waiting = append(cl.waiting, int32(c.judge.stream))
}
