package harness

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// onCPUs runs start on a thread that may use the given processors alone, so
// that a process it starts inherits them; "" for any.
func onCPUs(cpus string, start func() error) error {
	if cpus == "" {
		return start()
	}
	set, err := cpuSet(cpus)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("processors %s: %w", cpus, err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	return start()
}

// Pin confines every thread of this process, and those to come, to the given
// processors; "" changes nothing.
func Pin(cpus string) error {
	if cpus == "" {
		return nil
	}
	set, err := cpuSet(cpus)
	if err != nil {
		return err
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("processors %s: %w", cpus, err)
		}
	}
	return nil
}

func cpuSet(list string) (set unix.CPUSet, err error) {
	numbers, err := listCPUs(list)
	for _, n := range numbers {
		set.Set(n)
	}
	return set, err
}
