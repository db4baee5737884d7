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

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux.
const clockTick = 10 * time.Millisecond

// ReadProc reads the figures of process pid. It needs Linux.
func ReadProc(pid int) (Proc, error) {
	var p Proc
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return p, fmt.Errorf("process %d: %w", pid, err)
	}
	// The second field is the name in parentheses and may hold anything.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 22 {
		return p, fmt.Errorf("process %d: %sstat has %d fields", pid, dir, len(f))
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	p.CPU = time.Duration(user+system) * clockTick
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

// kernelTCPBytes is what all TCP sockets of the machine hold in the kernel,
// from /proc/net/sockstat; zero where that is not to be had.
func kernelTCPBytes() int64 {
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
