package loop

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setOptions sets what every accepted connection inherits from the listener.
// macOS has no TCP_USER_TIMEOUT: there --stall is the loop's alone.
func setOptions(fd int, cfg *Config) error {
	const tcpNotSentLowat = 0x201 // <netinet/tcp.h>
	if cfg.NotSentLowat > 0 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, tcpNotSentLowat, cfg.NotSentLowat); err != nil {
			return fmt.Errorf("--notsent-lowat: %w", err)
		}
	}
	if cfg.SndBuf > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, cfg.SndBuf); err != nil {
			return fmt.Errorf("--sndbuf: %w", err)
		}
	}
	return nil
}
