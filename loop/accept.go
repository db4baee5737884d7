package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tailcast/internal/share"
)

// fdReserve is how many file descriptors connections leave to everything else:
// Kafka, the admin listener, the loops, and the second one that gnet holds for
// a moment while it takes a connection over.
const fdReserve = 256

// keepAlive finds peers that vanished from silent connections; on those with
// data under way --stall does (TCP_USER_TIMEOUT).
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// accepter takes connections from the listener, within limits, and hands them
// to the loops in turn. gnet's own acceptor would end the process for want of
// a file descriptor.
type accepter struct {
	srv        *Server
	max        int
	queue      []chan *arrival // one a loop
	next       atomic.Uint64   // whose turn it is
	doors      []net.Listener
	accepting  sync.WaitGroup
	handshakes *handshakes // nil without --listen-tls
	enrolling  sync.WaitGroup
	done       chan struct{} // closed by stop

	backing sync.RWMutex
	stopped bool // no connection comes back any more

	conns    atomic.Int64
	accepted atomic.Uint64
	full     atomic.Uint64 // refused: --max-conns
	perIP    atomic.Uint64 // refused: --max-conns-per-ip
	noProxy  atomic.Uint64 // refused: no PROXY header, or not from where one is taken
	noTLS    atomic.Uint64 // refused: the handshake failed
	lateTLS  atomic.Uint64 // refused: it did not end in time, or its place was needed
	failed   atomic.Uint64 // refused by the system, at accept or after
	loggedAt atomic.Int64  // when that was logged, unix nanoseconds

	perAddr quotas[netip.Addr] // --max-conns-per-ip
	pace    *pace              // --accept-rate
}

// arrival is an accepted connection on its way to a loop.
type arrival struct {
	tcp  *net.TCPConn
	edge *edge
}

// addr is the client's address, as far as it is known.
func (a *arrival) addr() netip.Addr {
	if a.edge != nil && a.edge.addr.IsValid() {
		return a.edge.addr
	}
	return addrOf(a.tcp)
}

// reset closes the connection with RST: EventSource comes back after one, and
// not after an answer.
func (a *arrival) reset() {
	_ = a.tcp.SetLinger(0)
	_ = a.tcp.Close()
}

func (a *accepter) init(s *Server) {
	a.srv, a.done, a.pace = s, make(chan struct{}), newPace(s.cfg.AcceptRate)
	a.perAddr.most = s.cfg.MaxConnsPerIP
	if a.max = s.cfg.MaxConns; a.max == 0 {
		a.max = fdLimit() - fdReserve - 2*enrolParallel*s.cfg.Loops
	}
	a.max = max(a.max, 1)
}

func fdLimit() int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 1024
	}
	return int(min(r.Cur, 1<<30))
}

// listen opens a listener for a flag; its options are inherited by every
// connection.
func (s *Server) listen(flag, addr string) (net.Listener, error) {
	lc := net.ListenConfig{
		KeepAliveConfig: keepAlive,
		Control: func(_, _ string, rc syscall.RawConn) error {
			var err error
			cerr := rc.Control(func(fd uintptr) { err = setOptions(int(fd), &s.cfg) })
			return errors.Join(cerr, err)
		},
	}
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return ln, nil
}

// start accepts from both listeners; either may be nil.
func (a *accepter) start(plain, secure net.Listener) {
	for _, l := range a.srv.loops {
		q := make(chan *arrival, enrolParallel)
		a.queue = append(a.queue, q)
		for range enrolParallel {
			a.enrolling.Go(func() { a.enrol(l, q) })
		}
	}
	if plain != nil {
		a.open(plain, a.pass)
	}
	if secure != nil {
		a.handshakes = newHandshakes(a)
		a.open(secure, a.handshakes.begin)
	}
}

func (a *accepter) open(ln net.Listener, take func(*arrival)) {
	a.doors = append(a.doors, ln)
	a.accepting.Go(func() { a.accept(ln, take) })
}

// stop ends accepting, and handshakes; what came through is still enrolled.
func (a *accepter) stop() {
	close(a.done)
	for _, ln := range a.doors {
		_ = ln.Close()
	}
	a.accepting.Wait()
	if a.handshakes != nil {
		a.handshakes.stop()
	}
	a.backing.Lock()
	a.stopped = true
	a.backing.Unlock()
	for _, q := range a.queue {
		close(q)
	}
	a.enrolling.Wait()
}

// accept takes connections until the listener is closed.
func (a *accepter) accept(ln net.Listener, take func(*arrival)) {
	pause := acceptBackoffMin
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			a.refused(err)
			select {
			case <-time.After(pause):
			case <-a.done:
			}
			pause = min(2*pause, acceptBackoffMax)
			continue
		}
		pause = acceptBackoffMin
		if wait := a.pace.next(time.Now()); wait > 0 { // the others wait in the kernel's queue
			select {
			case <-time.After(wait):
			case <-a.done:
			}
		}
		in := &arrival{tcp: c.(*net.TCPConn)}
		if a.admit(in) {
			take(in)
		} else {
			in.reset()
		}
		share.GiveWay()
	}
}

// pass gives a connection to the next loop.
func (a *accepter) pass(in *arrival) {
	n := a.next.Add(1)
	a.queue[n%uint64(len(a.queue))] <- in
}

// back is pass for a connection that was counted before; false when nothing is
// accepted any more.
func (a *accepter) back(in *arrival) bool {
	a.backing.RLock()
	defer a.backing.RUnlock()
	if a.stopped {
		return false
	}
	a.pass(in)
	return true
}

// shaken takes a connection behind its handshake.
func (a *accepter) shaken(in *arrival, err error) {
	switch {
	case err == nil:
		a.pass(in)
		return
	case errors.Is(err, errHandshakeBusy), errors.Is(err, errHandshakeLate):
		a.lateTLS.Add(1)
		a.srv.journal.refused("tls-timeout", in.addr())
		in.reset()
	case errors.Is(err, errProxyLimit):
		a.perIP.Add(1)
		a.srv.journal.refused("max-conns-per-ip", in.addr())
		in.reset()
	case errors.Is(err, errNoProxy):
		a.noProxy.Add(1)
		a.srv.journal.refused("proxy", in.addr())
		in.reset()
	default:
		a.noTLS.Add(1)
		if !errors.Is(err, io.EOF) { // a balancer's health check says nothing and goes
			a.srv.journal.refused("tls", in.addr())
		}
		_ = in.tcp.Close() // behind the alert
	}
	a.gone(in.edge)
}

// admit counts a connection, or refuses it.
func (a *accepter) admit(in *arrival) bool {
	if a.conns.Load() >= int64(a.max) {
		a.full.Add(1)
		a.srv.journal.refused("max-conns", addrOf(in.tcp))
		return false
	}
	addr := addrOf(in.tcp)
	switch trusted := a.srv.cfg.Proxy != ProxyOff && a.trusts(addr); {
	case trusted: // its header says who counts
		in.edge = &edge{proxy: true}
		a.conns.Add(1)
		return true
	case a.srv.cfg.Proxy == ProxyRequired:
		a.noProxy.Add(1)
		a.srv.journal.refused("proxy", addr)
		return false
	}
	q, ok := a.perAddr.take(addr)
	if !ok {
		a.perIP.Add(1)
		a.srv.journal.refused("max-conns-per-ip", addr)
		return false
	}
	if q != nil {
		in.edge = &edge{quota: q}
	}
	a.conns.Add(1)
	return true
}

func addrOf(c *net.TCPConn) netip.Addr {
	return c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
}

// gone undoes admit for a connection with edge e. Who sees that there is a place
// finds one of its address, too.
func (a *accepter) gone(e *edge) {
	if e != nil {
		e.quota.leave()
	}
	a.conns.Add(-1)
}

// errNotPolled is what gnet keeps to itself: the kernel refused to watch the
// socket, which gnet then closed.
var errNotPolled = errors.New("the event loop can't watch another socket")

// enrol hands connections to a loop; it waits for the loop to take each. gnet
// dups the file descriptor and closes the one accepted.
func (a *accepter) enrol(l *Loop, q chan *arrival) {
	for in := range q {
		c := &conn{edge: in.edge}
		_, err := l.client.EnrollContext(in.tcp, c)
		if err == nil && c.gc == nil {
			err = errNotPolled
		}
		if err != nil {
			a.gone(in.edge)
			a.refused(err)
			continue
		}
		a.accepted.Add(1)
	}
}

// refused counts a connection that the system did not let us have, and says
// so once in refusedLogEvery: it happens to all of them or to none.
func (a *accepter) refused(err error) {
	a.failed.Add(1)
	now, last := time.Now().UnixNano(), a.loggedAt.Load()
	if since := now - last; (since < 0 || since >= int64(refusedLogEvery)) && a.loggedAt.CompareAndSwap(last, now) {
		a.srv.cfg.Log.Error("connections are refused by the system", slog.Any("error", err))
	}
}

func (a *accepter) count() int64 { return a.conns.Load() }

func (a *accepter) counts() (uint64, map[string]uint64) {
	return a.accepted.Load(), map[string]uint64{
		"max-conns": a.full.Load(), "max-conns-per-ip": a.perIP.Load(), "system": a.failed.Load(),
		"proxy": a.noProxy.Load(), "tls": a.noTLS.Load(), "tls-timeout": a.lateTLS.Load(),
	}
}
