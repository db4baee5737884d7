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
	if err := eachThread(func(tid int) error { return unix.SchedSetaffinity(tid, &set) }); err != nil {
		return fmt.Errorf("processors %s: %w", cpus, err)
	}
	return nil
}

// GiveWay has every thread of this process, and those to come, run only when
// nobody else wants the processor (SCHED_IDLE, sched(7)): unlike the threads of
// the highest nice value, they are interrupted at once.
func GiveWay() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: 19}
	if err := eachThread(func(tid int) error { return unix.SchedSetAttr(tid, &attr, 0) }); err != nil {
		return fmt.Errorf("sched_setattr: %w", err)
	}
	return nil
}

// eachThread changes something of every thread, which those inherit that it
// starts.
func eachThread(change func(tid int) error) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := change(tid); err != nil && err != unix.ESRCH {
			return err
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
