// Package wait is how goroutines let time go by, until their context ends.
package wait

import (
	"context"
	"time"
)

// For waits for d, or less if ctx ends.
func For(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Every calls f with the time, for the first time after d and then every d, until
// ctx ends. While f runs it is not called again; what is missed is left out.
func Every(ctx context.Context, d time.Duration, f func(now time.Time)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			f(now)
		}
	}
}
