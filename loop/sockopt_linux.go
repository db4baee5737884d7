package loop

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setOptions sets what every accepted connection inherits from the listener.
func setOptions(fd int, cfg *Config) error {
	for _, o := range []struct {
		flag              string
		level, opt, value int
	}{
		// A write takes no more than this beyond what is on its way: the rest
		// of a slow client's events stays in the log, not in the kernel.
		{"--notsent-lowat", unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, cfg.NotSentLowat},
		{"--sndbuf", unix.SOL_SOCKET, unix.SO_SNDBUF, cfg.SndBuf},
		// Keepalive does not run while data is unacknowledged; this does.
		{"--stall", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(cfg.Stall.Milliseconds())},
	} {
		if o.value == 0 {
			continue
		}
		if err := unix.SetsockoptInt(fd, o.level, o.opt, o.value); err != nil {
			return fmt.Errorf("%s: %w", o.flag, err)
		}
	}
	return nil
}
