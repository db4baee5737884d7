package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Proc is what a process has used and holds, from /proc.
type Proc struct {
	CPU     time.Duration `json:"-"` // user and system time since its start
	RSS     int64         `json:"rss_bytes"`
	Threads int           `json:"threads"`
	FDs     int           `json:"fds"`
}

// Use is what a process uses; cheaper to read than a Proc.
type Use struct {
	CPU time.Duration // user and system time since its start
	RSS int64         // off by some pages per thread
}

// ReadUse reads what process pid uses. It needs Linux.
func ReadUse(pid int) (u Use, err error) {
	f, err := readStat(pid)
	if err != nil {
		return u, err
	}
	pages, _ := strconv.ParseInt(f[21], 10, 64)
	return Use{CPU: cpuTime(f), RSS: pages * int64(os.Getpagesize())}, nil
}

// readStat reads the fields of /proc/PID/stat behind the name: field n of
// proc(5) is at n-3.
func readStat(pid int) ([]string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold anything.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 22 {
		return nil, fmt.Errorf("process %d: its stat has %d fields", pid, len(f))
	}
	return f, nil
}

func cpuTime(stat []string) time.Duration {
	user, _ := strconv.ParseInt(stat[11], 10, 64)
	system, _ := strconv.ParseInt(stat[12], 10, 64)
	return time.Duration(user+system) * clockTick
}

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux.
const clockTick = 10 * time.Millisecond

// ReadProc reads the figures of process pid. It needs Linux.
func ReadProc(pid int) (Proc, error) {
	var p Proc
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	f, err := readStat(pid)
	if err != nil {
		return p, err
	}
	p.CPU = cpuTime(f)
	p.Threads, _ = strconv.Atoi(f[17])
	if p.RSS, err = readRSS(dir); err != nil {
		return p, fmt.Errorf("process %d: %w", pid, err)
	}
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		return p, fmt.Errorf("process %d: %w", pid, err)
	}
	p.FDs = len(fds)
	return p, nil
}

// readRSS reads the resident bytes from smaps_rollup, which walks the page
// tables; the figure in stat may be off by pages per thread.
func readRSS(dir string) (int64, error) {
	b, err := os.ReadFile(dir + "smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("Rss:")); ok {
			kb, _, _ := number(bytes.TrimLeft(rest, " "))
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("%ssmaps_rollup has no Rss line", dir)
}

// KernelTCPBytes is what all TCP sockets of the machine hold in the kernel,
// from /proc/net/sockstat; zero where that is not to be had.
func KernelTCPBytes() int64 {
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if _, rest, ok := bytes.Cut(line, []byte(" mem ")); ok && bytes.HasPrefix(line, []byte("TCP:")) {
			pages, _, _ := number(rest)
			return pages * int64(os.Getpagesize())
		}
	}
	return 0
}
