package share

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this thread has computed.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Error(err)
	}
	return time.Duration(ts.Nano())
}

// onCPU runs f on a thread of its own, which has one processor.
func onCPU(t *testing.T, cpu int, f func()) {
	t.Helper()
	runtime.LockOSThread() // and never unlocks it: the thread ends with the goroutine
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		t.Error(err)
	}
	f()
}

// TestGiveWay: of two threads on a processor, the one that gives way gets less
// than the other, which never does.
func TestGiveWay(t *testing.T) {
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !mine.IsSet(cpu) {
		cpu++
	}
	const piece, enough = 100 * time.Microsecond, 200 * time.Millisecond
	stop, aside := make(chan struct{}), make(chan time.Duration)
	go onCPU(t, cpu, func() {
		began := cpuTime(t)
		for {
			select {
			case <-stop:
				aside <- cpuTime(t) - began
				return
			default:
			}
			for end := cpuTime(t) + piece; cpuTime(t) < end; {
			}
			GiveWay()
		}
	})
	loop := make(chan time.Duration)
	go onCPU(t, cpu, func() {
		began := cpuTime(t)
		for cpuTime(t)-began < enough {
		}
		loop <- cpuTime(t) - began
	})
	got := <-loop
	close(stop)
	if rest := <-aside; rest > got*3/4 {
		t.Errorf("who gives way computed %v, the other %v", rest, got)
	}
}
