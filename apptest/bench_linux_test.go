package apptest

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"tailcast/internal/testkit"
)

// TestBenchIsKilled: kill -9 of a benchmark ends what it has started.
func TestBenchIsKilled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // nobody removes its directory
	p := testkit.Start(t, testkit.Build(t, "tailcast/cmd/tailcast"), "bench", "fanout",
		"--streams", "10", "--for", "10m", "--floor=false", "--server-cpu", "", "--client-cpu", "")
	var all []int
	testkit.Eventually(t, patience, "broker, publisher and server", func() bool {
		all = children(t, p.PID())
		return len(all) == 3
	})
	p.Kill(t)
	for _, pid := range all {
		testkit.Eventually(t, patience, fmt.Sprint("end of process ", pid), func() bool { return !runs(pid) })
	}
}

// TestBenchOnStdout: --json - is JSON and nothing else, the table is beside it.
func TestBenchOnStdout(t *testing.T) {
	t.Parallel()
	p := testkit.Start(t, testkit.Build(t, "tailcast/cmd/tailcast"), "bench", "fanout", "--json", "-",
		"--streams", "10", "--rate", "100", "--sample", "1", "--settle", "0s", "--warm", "0s", "--for", "300ms", "--floor=false", "--server-cpu", "", "--client-cpu", "")
	if code := p.Wait(t, patience); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var result struct{ Schema string }
	if err := json.Unmarshal([]byte(p.Stdout.String()), &result); err != nil || result.Schema != "tailcast-bench/1" {
		t.Errorf("standard output %.300q: %v", p.Stdout.String(), err)
	}
	if table := p.Stderr.String(); !strings.Contains(table, "tailcast") {
		t.Errorf("standard error %.300q", table)
	}
}

// children are the processes that a process has started and that run.
func children(t *testing.T, parent int) (pids []int) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if state, ppid := stat(pid); ppid == parent && state != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// runs reports whether a process has not ended; one that nobody has waited for has.
func runs(pid int) bool {
	state, _ := stat(pid)
	return state != "" && state != "Z"
}

// stat is the state of a process and its parent (proc_pid_stat(5)); empty for one
// that there is not.
func stat(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	_, fields, _ := strings.Cut(string(text), ") ") // behind the name; ours have no parentheses
	if _, err := fmt.Sscan(fields, &state, &parent); err != nil {
		return "", 0
	}
	return state, parent
}
