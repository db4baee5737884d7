//go:build !race

package loop

import (
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIdleStreamMemory: tens of thousands of streams are silent most of the
// time. The clients are bare descriptors, so what is measured is the server's.
func TestIdleStreamMemory(t *testing.T) {
	const streams = 2000
	s := start(t, func(as *setup) { as.MaxConns = streams + 100 })
	s.open(1)
	addr := s.srv.Addr().(*net.TCPAddr)
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	open := func() {
		t.Helper()
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.CloseOnExec(fd)
		fds = append(fds, fd)
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(fd, []byte(req("GET /events HTTP/1.1"))); err != nil {
			t.Fatal(err)
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
	for range 100 {
		open()
	}
	before := settled()
	for range streams {
		open()
	}
	each := (int64(settled()) - int64(before)) / streams
	t.Logf("%d bytes of heap and stacks a stream", each)
	if each > 1000 {
		t.Errorf("%d bytes a stream", each)
	}
}
