package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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
	srv   *Server
	max   int
	queue []chan *net.TCPConn // one a loop
	ln    net.Listener
	wg    sync.WaitGroup
	done  chan struct{} // closed by stop

	conns    atomic.Int64
	accepted atomic.Uint64
	full     atomic.Uint64 // refused: --max-conns
	perIP    atomic.Uint64 // refused: --max-conns-per-ip
	failed   atomic.Uint64 // refused by the system, at accept or after
	loggedAt atomic.Int64  // when that was logged, unix nanoseconds

	mu     sync.Mutex
	quotas map[netip.Addr]*quota // of the addresses with connections, while --max-conns-per-ip is on
}

// quota is how many connections an address has.
type quota struct {
	addr netip.Addr
	n    int
}

func (a *accepter) init(s *Server) {
	a.srv, a.quotas, a.done = s, map[netip.Addr]*quota{}, make(chan struct{})
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

// listen opens the listener; its options are inherited by every connection.
func (s *Server) listen(addr string) (net.Listener, error) {
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
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return ln, nil
}

func (a *accepter) start(ln net.Listener) {
	a.ln = ln
	for _, l := range a.srv.loops {
		q := make(chan *net.TCPConn, enrolParallel)
		a.queue = append(a.queue, q)
		for range enrolParallel {
			a.wg.Go(func() { a.enrol(l, q) })
		}
	}
	a.wg.Go(a.accept)
}

// stop ends accepting; what was accepted is still enrolled.
func (a *accepter) stop() {
	if a.ln == nil {
		return
	}
	close(a.done)
	_ = a.ln.Close()
	a.wg.Wait()
}

// accept takes connections until the listener is closed.
func (a *accepter) accept() {
	defer func() {
		for _, q := range a.queue {
			close(q)
		}
	}()
	pause := acceptBackoffMin
	for next := 0; ; next++ {
		c, err := a.ln.Accept()
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
		tc := c.(*net.TCPConn)
		if !a.admit(tc) {
			_ = tc.SetLinger(0) // RST: EventSource comes back after one, and not after an answer
			_ = tc.Close()
			continue
		}
		a.queue[next%len(a.queue)] <- tc
	}
}

// admit counts a connection, or refuses it.
func (a *accepter) admit(c *net.TCPConn) bool {
	if a.conns.Load() >= int64(a.max) {
		a.full.Add(1)
		return false
	}
	if limit := a.srv.cfg.MaxConnsPerIP; limit > 0 && !a.take(addrOf(c), limit) {
		a.perIP.Add(1)
		return false
	}
	a.conns.Add(1)
	return true
}

func addrOf(c *net.TCPConn) netip.Addr {
	return c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
}

func (a *accepter) take(addr netip.Addr, limit int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.quotas[addr]
	if q == nil {
		q = &quota{addr: addr}
		a.quotas[addr] = q
	}
	if q.n >= limit {
		return false
	}
	q.n++
	return true
}

// gone undoes admit.
func (a *accepter) gone(q *quota) {
	a.conns.Add(-1)
	if q == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.n--; q.n == 0 {
		delete(a.quotas, q.addr)
	}
}

// errNotPolled is what gnet keeps to itself: the kernel refused to watch the
// socket, which gnet then closed.
var errNotPolled = errors.New("the event loop can't watch another socket")

// enrol hands accepted connections to a loop; it waits for the loop to take
// each. gnet dups the file descriptor and closes the one accepted.
func (a *accepter) enrol(l *Loop, q chan *net.TCPConn) {
	for tc := range q {
		c := &conn{}
		if a.srv.cfg.MaxConnsPerIP > 0 {
			a.mu.Lock()
			c.quota = a.quotas[addrOf(tc)]
			a.mu.Unlock()
		}
		_, err := l.client.EnrollContext(tc, c)
		if err == nil && c.gc == nil {
			err = errNotPolled
		}
		if err != nil {
			a.gone(c.quota)
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
	if now-last >= int64(refusedLogEvery) && a.loggedAt.CompareAndSwap(last, now) {
		a.srv.cfg.Log.Error("connections are refused by the system", slog.Any("error", err))
	}
}

func (a *accepter) open() int64 { return a.conns.Load() }

func (a *accepter) counts() (uint64, map[string]uint64) {
	return a.accepted.Load(), map[string]uint64{
		"max-conns": a.full.Load(), "max-conns-per-ip": a.perIP.Load(), "system": a.failed.Load(),
	}
}
