package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// measureAll runs the benchmarks of lines and returns what they cost, in the
// same order.
func measureAll(ctx context.Context, lines []line, counting bool) ([]line, error) {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binaries := map[string]string{}
	for _, l := range lines {
		if binaries[l.pkg] == "" {
			binaries[l.pkg] = filepath.Join(dir, fmt.Sprintf("%d.test", len(binaries)))
			if err := build(ctx, l.pkg, binaries[l.pkg]); err != nil {
				return nil, err
			}
		}
	}
	got, errs := make([]line, len(lines)), make([]error, len(lines))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, l := range lines {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if got[i], errs[i] = measure(ctx, l, binaries[l.pkg], counting); errs[i] != nil {
				errs[i] = fmt.Errorf("%s %s: %w", l.pkg, l.bench, errs[i])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return got, nil
}

// build makes the test binary of a package. Without cgo: valgrind would count
// what the C library's loader does, which depends on the machine.
func build(ctx context.Context, pkg, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// measure runs one benchmark.
func measure(ctx context.Context, l line, binary string, counting bool) (line, error) {
	once, err := bench(ctx, l, l.n, binary, counting)
	if err != nil {
		return l, err
	}
	l.instructions, l.allocs = -1, once.allocs
	if !counting {
		return l, nil
	}
	twice, err := bench(ctx, l, 2*l.n, binary, true)
	if err != nil {
		return l, err
	}
	l.instructions = float64(twice.instructions-once.instructions) / float64(l.n)
	l.allocs = min(l.allocs, twice.allocs) // what happens once is no cost of an operation
	return l, nil
}

// bench runs one benchmark once, with n operations. Nothing but it should run:
// no collector, no preemption, one thread for Go code.
func bench(ctx context.Context, l line, n int, binary string, counting bool) (r result, err error) {
	args := []string{
		binary, "-test.run=^$", "-test.short", "-test.benchmem", "-test.cpu=1",
		"-test.bench=" + pattern(l.bench), fmt.Sprintf("-test.benchtime=%dx", n),
	}
	counts := fmt.Sprintf("%s.%s.%d", binary, strings.ReplaceAll(l.bench, "/", "."), n)
	if counting {
		args = append([]string{"valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=" + counts}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = l.pkg
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("%w\n%s", err, out)
	}
	if r.allocs, err = parseAllocs(string(out)); err != nil || !counting {
		return r, err
	}
	f, err := os.Open(counts)
	if err != nil {
		return r, err
	}
	defer f.Close()
	r.instructions, err = sum(f)
	return r, err
}

// pattern matches one benchmark, whose parts go test matches one by one.
func pattern(bench string) string {
	parts := strings.Split(bench, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// result is what one run told.
type result struct {
	instructions int64
	allocs       int64 // an operation
}

var allocsPrinted = regexp.MustCompile(`(?m)^Benchmark.* (\d+) allocs/op`)

// parseAllocs reads what go test printed of one benchmark.
func parseAllocs(out string) (int64, error) {
	m := allocsPrinted.FindAllStringSubmatch(out, -1)
	if len(m) != 1 {
		return 0, fmt.Errorf("%d benchmarks ran, want one\n%s", len(m), out)
	}
	return strconv.ParseInt(m[0][1], 10, 64)
}

// runtimeWork is what code asks of the runtime. The rest of it (the system
// monitor, the scheduler's search for work) runs by the clock, and more of it
// on a busy machine.
var runtimeWork = regexp.MustCompile(`^runtime\.(mem|mallocgc|newobject|growslice|concat|slicebyte|stringto|rawbyte|map|chan|conv|assert|type)`)

// sum adds up the instructions of one run, as cachegrind wrote them: lines
// "fn=NAME", each followed by lines "LINE COUNT".
func sum(counts io.Reader) (total int64, err error) {
	counted := false
	lines := bufio.NewScanner(counts)
	lines.Buffer(nil, 1<<20) // the names of generic functions are long
	for lines.Scan() {
		s := lines.Text()
		if name, ok := strings.CutPrefix(s, "fn="); ok {
			counted = !strings.HasPrefix(name, "runtime.") || runtimeWork.MatchString(name)
			continue
		}
		if !counted || s == "" || s[0] < '0' || s[0] > '9' {
			continue
		}
		_, n, _ := strings.Cut(s, " ")
		count, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cachegrind wrote %q: %w", s, err)
		}
		total += count
	}
	return total, lines.Err()
}
