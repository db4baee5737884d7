package loop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// waker makes a loop take a turn: a byte through a socket pair whose other
// end the loop reads like any connection. It allocates nothing and, unlike a
// task posted to gnet, leaves the loop's other sockets their turn.
type waker struct {
	end   *os.File    // ours
	awake atomic.Bool // a byte is under way whose turn the loop has not begun
}

var wakeByte = []byte{0}

// newWaker returns a waker and the loop's end of it.
func newWaker() (*waker, net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open the loop's wake socket: %w", err)
	}
	var ends [2]*os.File
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		err = errors.Join(err, unix.SetNonblock(fd, true))
		ends[i] = os.NewFile(uintptr(fd), "wake")
	}
	var c net.Conn
	if err == nil {
		c, err = net.FileConn(ends[1]) // dups
	}
	_ = ends[1].Close()
	if err != nil {
		_ = ends[0].Close()
		return nil, nil, fmt.Errorf("open the loop's wake socket: %w", err)
	}
	return &waker{end: ends[0]}, c, nil
}

// wake makes the loop take a turn soon. Safe from any goroutine, also after close.
func (w *waker) wake() {
	if w.awake.Swap(true) {
		return
	}
	// A few bytes at most are under way (Loop.keepPace takes turns without
	// reading them), so the socket can't be full; if the loop is gone there is
	// nobody to wake.
	_, _ = w.end.Write(wakeByte)
}

// woken is called by the loop before it looks at what it was woken for.
func (w *waker) woken() { w.awake.Store(false) }

func (w *waker) close() { _ = w.end.Close() }
