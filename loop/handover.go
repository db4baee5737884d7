package loop

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"tailcast/http1"
	"tailcast/route"
)

// Files answers requests for paths that no route has. It takes the whole
// connection, and gives it back for a request that is a route's
// (Server.Back). Take is called by loops and doesn't wait; it is false when
// there is no room.
type Files interface {
	Take(c net.Conn) bool
}

// away is a connection that was handed over: what the loop had read of it
// comes first, decrypted if it has TLS. It still counts as the Server's.
type away struct {
	net.Conn // the socket, or the session over it
	tcp      *net.TCPConn
	edge     *edge
	accepter *accepter
	early    early
	once     sync.Once
}

// Read implements net.Conn.
func (a *away) Read(b []byte) (int, error) {
	if n := a.early.read(b); n > 0 {
		return n, nil
	}
	return a.Conn.Read(b)
}

// Close implements net.Conn.
func (a *away) Close() error {
	err := a.Conn.Close()
	a.once.Do(func() { a.accepter.gone(a.edge) })
	return err
}

// RemoteAddr implements net.Conn.
func (a *away) RemoteAddr() net.Addr {
	if a.edge != nil && a.edge.addr.IsValid() {
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.edge.addr, 0))
	}
	return a.tcp.RemoteAddr()
}

// handOver gives a connection to Site.Files. Afterwards it is nobody's here:
// gnet closes a descriptor that is no longer the only one. When that can't be,
// the client is told so.
func (l *Loop) handOver(c *conn) {
	if c.unsent() { // it doesn't read answers
		c.reset()
		return
	}
	a, err := l.part(c)
	if err == nil {
		if l.srv.site.Files.Take(a) {
			c.reason, c.edge = closeAway, nil
			return
		}
		a.takeBack(c, l)
	}
	c.state = stateHead
	l.out = http1.AppendAnswer(l.out[:0], &http1.Answer{
		Status: 503, Date: l.date.now(), Body: "too many files are asked for", Close: true, Head: l.req.Method == http1.MethodHead,
	})
	l.note(c, &l.req, 503)
	if l.write(c, l.out) {
		c.reason = closeDone
	}
}

// part makes what is to be handed over.
func (l *Loop) part(c *conn) (*away, error) {
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "client")
	near, err := net.FileConn(f) // dups once more
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	tcp, ok := near.(*net.TCPConn)
	if !ok {
		_ = near.Close()
		return nil, unix.EPROTOTYPE
	}
	a := &away{Conn: tcp, tcp: tcp, edge: c.edge, accepter: &l.srv.accepter, early: bytes.Clone(c.in.head)}
	if s := c.session(); s != nil {
		s.wire.Conn, s.wire.out = tcp, nil
		a.Conn = s.tls
	}
	return a, nil
}

// takeBack undoes part.
func (a *away) takeBack(c *conn, l *Loop) {
	if s := c.session(); s != nil {
		s.wire.Conn, s.wire.out = nil, &l.sealed
	}
	_ = a.tcp.Close() // one descriptor of two
}

// Routed reports whether a path, as a request line has it, is a route's of
// that host. The error says why no request may have it. Safe from any goroutine.
func (s *Server) Routed(host, path string) (bool, error) {
	decoded, err := http1.AppendPath(nil, []byte(path))
	if err != nil {
		return false, err
	}
	name, _ := http1.SplitHost([]byte(host))
	var params route.Params
	_, found := s.site.Routes.Lookup(name, decoded, &params)
	return found, nil
}

// Back takes a connection back that Files was given, with a request and
// whatever was read behind it. Safe from any goroutine.
func (s *Server) Back(c net.Conn, first []byte) {
	a := c.(*away)
	if a.edge == nil {
		a.edge = &edge{}
	}
	a.edge.first = append(first, a.early...)
	a.edge.proxy = false // its header was read
	if !s.accepter.back(&arrival{tcp: a.tcp, edge: a.edge}) {
		_ = a.Close()
	}
}
