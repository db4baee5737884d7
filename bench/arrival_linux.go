package bench

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// stampBytes is room for the control message of an arrival: its header and a
// timespec.
const stampBytes = 64

// stampArrivals has the kernel note when the bytes of a connection come
// (SO_TIMESTAMPNS, socket(7)): over loopback that is inside the sender's write(2).
func stampArrivals(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("SO_TIMESTAMPNS: %w", err)
	}
	return nil
}

// readStamped is read(2), and when the last of the bytes came, in nanoseconds
// since 1970; it is now where the kernel does not say. control is scratch.
func readStamped(fd int, b, control []byte) (n int, at int64, err error) {
	n, used, _, _, err := unix.Recvmsg(fd, b, control, 0)
	if err != nil || used == 0 {
		return n, time.Now().UnixNano(), err
	}
	if h, data, _, err := unix.ParseOneSocketControlMessage(control[:used]); err == nil &&
		h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(data) >= 16 {
		sec, nsec := binary.NativeEndian.Uint64(data), binary.NativeEndian.Uint64(data[8:])
		return n, int64(sec)*int64(time.Second) + int64(nsec), nil
	}
	return n, time.Now().UnixNano(), nil
}
