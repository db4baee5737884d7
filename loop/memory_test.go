//go:build !race

package loop

import (
	"crypto/tls"
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIdleStreamMemory: tens of thousands of streams are silent most of the
// time. The clients are bare descriptors, so what is measured is the server's.
func TestIdleStreamMemory(t *testing.T) {
	t.Run("plain", func(t *testing.T) { idleStreamMemory(t, func(*setup) {}, 1000) })
	t.Run("TLS", func(t *testing.T) { idleStreamMemory(t, withTLS, 4500) }) // most of it crypto/tls's; see shrink
}

func idleStreamMemory(t *testing.T, with func(*setup), most int64) {
	const streams = 2000
	s := start(t, func(as *setup) { with(as); as.MaxConns = streams + 100 })
	s.open(1)
	fds := make([]int, 0, 100+streams)
	defer func() { closeAll(fds) }()
	open := func(n int) {
		t.Helper()
		for range n {
			fds = append(fds, s.bare())
		}
	}
	settled := func() uint64 {
		t.Helper()
		eventually(t, "all streams are open", func() bool { return s.stats().Streams == len(fds) })
		runtime.GC()
		runtime.GC() // what pools held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	open(100)
	before := settled()
	open(streams)
	each := (int64(settled()) - int64(before)) / streams
	t.Logf("%d bytes of heap and stacks a stream", each)
	if each > most {
		t.Errorf("%d bytes a stream", each)
	}
}

// bare opens a stream on a socket that is nothing but a descriptor. The caller
// closes it.
func (s *site) bare() (fd int) {
	s.t.Helper()
	if s.tls != nil {
		return s.bareTLS()
	}
	addr := s.srv.Addr().(*net.TCPAddr)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	unix.CloseOnExec(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := unix.Write(fd, []byte(req("GET /events HTTP/1.1"))); err != nil {
		s.t.Fatal(err)
	}
	return fd
}

// bareTLS leaves of a client with TLS no more than the descriptor.
func (s *site) bareTLS() (fd int) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if _, err := tls.Client(c, s.tls).Write([]byte(req("GET /events HTTP/1.1"))); err != nil {
		s.t.Fatal(err)
	}
	rc, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	if cerr := rc.Control(func(of uintptr) { fd, err = unix.Dup(int(of)) }); cerr != nil || err != nil {
		s.t.Fatal(cerr, err)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		s.t.Fatal(err)
	}
	return fd
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
