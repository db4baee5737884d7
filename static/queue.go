package static

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"tailcast/internal/share"
)

// queue is a listener whose connections are put into it.
type queue struct {
	in     chan net.Conn
	places chan struct{} // one is taken for each connection until it is closed
	cpus   chan struct{} // one is taken for each connection that computes

	once sync.Once
	done chan struct{}
}

func newQueue() *queue {
	return &queue{in: make(chan net.Conn, connsMax), places: make(chan struct{}, connsMax), cpus: make(chan struct{}, share.Aside()), done: make(chan struct{})}
}

// put offers a connection; false when there is no place for it.
func (q *queue) put(c net.Conn) bool {
	select {
	case <-q.done:
		return false
	case q.places <- struct{}{}:
		q.in <- &placed{Conn: c, queue: q} // there are as many places there
		return true
	default:
		return false
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.in:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. What was put and not accepted is closed.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	for {
		select {
		case c := <-q.in:
			_ = c.Close()
		default:
			return nil
		}
	}
}

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "static", Net: "unix"} }

// writeMax is how long a write keeps a CPU: many times what a socket takes that
// has room.
const writeMax = time.Millisecond

// placed is a connection that has a place. Its goroutine of net/http gives its
// CPU away while it waits for the client, so that a crowd that asks for files
// does not keep loops from computing.
type placed struct {
	net.Conn
	queue     *queue
	once      sync.Once
	computing atomic.Bool
}

// Read implements net.Conn. A read of one byte is how net/http looks out for the
// client's end, on a goroutine beside a handler; it computes nothing.
func (p *placed) Read(b []byte) (int, error) {
	if len(b) == 1 {
		return p.Conn.Read(b)
	}
	share.GiveWay()
	p.rest()
	defer p.compute()
	return p.Conn.Read(b)
}

// Write implements net.Conn. Sockets mostly take what they are given at once, and
// that is computing too; a write that waits for the client gives the CPU away.
func (p *placed) Write(b []byte) (int, error) {
	late := time.AfterFunc(writeMax, p.rest)
	n, err := p.Conn.Write(b)
	late.Stop()
	share.GiveWay()
	if !p.computing.Load() {
		p.compute()
	}
	return n, err
}

// compute waits for a CPU: those who have one wait for nobody.
func (p *placed) compute() {
	p.queue.cpus <- struct{}{}
	p.computing.Store(true)
}

func (p *placed) rest() {
	if p.computing.CompareAndSwap(true, false) {
		<-p.queue.cpus
	}
}

// Close implements net.Conn.
func (p *placed) Close() error {
	p.rest()
	p.leave()
	return p.Conn.Close()
}

// leave gives the place back.
func (p *placed) leave() { p.once.Do(func() { <-p.queue.places }) }
