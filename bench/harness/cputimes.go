package harness

import (
	"fmt"
	"os"
	"strings"
)

// cpuTimes is how long processors have been busy and idle since the machine
// started, in clock ticks, from /proc/stat.
type cpuTimes struct{ busy, idle int64 }

// readCPUTimes sums up the given processors; nothing where they are not known.
func readCPUTimes(cpus string) (t cpuTimes) {
	numbers, err := listCPUs(cpus)
	if err != nil {
		return t
	}
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	for line := range strings.Lines(string(b)) {
		for _, n := range numbers {
			if rest, ok := strings.CutPrefix(line, fmt.Sprintf("cpu%d ", n)); ok {
				of := parseCPUTimes(rest)
				t.busy, t.idle = t.busy+of.busy, t.idle+of.idle
			}
		}
	}
	return t
}

// parseCPUTimes reads a line of /proc/stat: user nice system idle iowait irq
// softirq steal. Stolen time counts as busy: it can't be used.
func parseCPUTimes(fields string) cpuTimes {
	var v [8]int64
	for i, f := range strings.Fields(fields) {
		if i < len(v) {
			_, _ = fmt.Sscan(f, &v[i])
		}
	}
	return cpuTimes{busy: v[0] + v[1] + v[2] + v[5] + v[6] + v[7], idle: v[3] + v[4]}
}

// busySince is the busy share of the time since before.
func (t cpuTimes) busySince(before cpuTimes) float64 {
	busy, idle := t.busy-before.busy, t.idle-before.idle
	if busy+idle <= 0 {
		return 0
	}
	return float64(busy) / float64(busy+idle)
}
