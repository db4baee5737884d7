package loop

import (
	"runtime"
	"time"
)

// A handshake leaves some 40 KB of garbage, and what it is followed by lives on:
// Go lets the heap grow to twice that. When thousands of clients came at once and
// are silent now, nothing collects, and the process keeps all of it until the
// runtime has done so twice by itself, every two minutes. It is done at once
// then: docs/adr/0011.
const (
	// burstLook is how often handshakes are counted.
	burstLook = time.Second
	// calmMax is how many begin in that time when nobody calls it a burst: 1 MB of
	// garbage.
	calmMax = 32
	// burstMin is how many make a burst that is worth it: 10 MB of garbage.
	burstMin = 256
	// collectEvery is the least time between two bursts that are collected behind.
	// That of 40,000 streams takes some 0.6 s of CPU, so 1 % of one, whatever
	// strangers do.
	collectEvery = time.Minute
)

// burst finds the end of bursts of handshakes.
type burst struct {
	seen  uint64    // handshakes until the last look
	since uint64    // of bursts, since the last end that was told
	told  time.Time // when
}

// over is asked once in burstLook, with how many handshakes there were until
// now, and is true at the end of a burst.
func (b *burst) over(n uint64, now time.Time) bool {
	fresh := n - b.seen
	b.seen = n
	if fresh > calmMax {
		b.since += fresh
		return false
	}
	if b.since < burstMin || now.Sub(b.told) < collectEvery {
		return false
	}
	b.since, b.told = 0, now
	return true
}

// settle calls collect behind bursts, until done is closed.
func (h *handshakes) settle(done <-chan struct{}, collect func()) {
	tick := time.NewTicker(burstLook)
	defer tick.Stop()
	var b burst
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			if b.over(h.begun.Load(), now) {
				collect()
			}
		}
	}
}

// collect has the runtime collect, and then return what is free, at its own pace.
// What it keeps is as much as was in use when the last collection began, garbage
// included: hence the second one.
func collect() {
	runtime.GC()
	runtime.GC()
}
