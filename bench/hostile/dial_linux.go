package hostile

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// portLater has the kernel choose the port when it knows the destination.
// Otherwise a port of a source address would be taken for every destination.
func portLater(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // then there are fewer ports
	})
}
