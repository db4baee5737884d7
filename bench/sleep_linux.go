package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil sleeps in the kernel, because the Go scheduler's timers may be a
// millisecond late, which is as much as some latencies measured here.
func sleepUntil(t time.Time) {
	for d := time.Until(t); d > 0; d = time.Until(t) {
		ts := unix.NsecToTimespec(int64(d))
		// EINTR is a reason to look at the clock again, as is being woken.
		_ = unix.Nanosleep(&ts, nil)
	}
}
