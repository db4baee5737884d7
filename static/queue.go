package static

import (
	"net"
	"sync"
)

// queue is a listener whose connections are put into it.
type queue struct {
	in     chan net.Conn
	places chan struct{} // one is taken for each connection until it is closed

	once sync.Once
	done chan struct{}
}

func newQueue() *queue {
	return &queue{in: make(chan net.Conn, connsMax), places: make(chan struct{}, connsMax), done: make(chan struct{})}
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

// placed is a connection that has a place.
type placed struct {
	net.Conn
	queue *queue
	once  sync.Once
}

// Close implements net.Conn.
func (p *placed) Close() error {
	p.leave()
	return p.Conn.Close()
}

// leave gives the place back.
func (p *placed) leave() { p.once.Do(func() { <-p.queue.places }) }
