package main

import (
	"strings"
	"testing"
)

const counts = `version: 1
desc: I1 cache: 32768 B, 64 B, 8-way associative
cmd: x.test
events: Ir
fl=/go/src/runtime/proc.go
fn=runtime.findRunnable
10 5000
11 1
fl=/go/src/runtime/memmove_amd64.s
fn=runtime.memmove
7 20
fl=/tailcast/hub/log.go
fn=tailcast/hub.(*log).append
60 300
fi=/go/src/sync/mutex.go
61 4
fl=/go/src/runtime/proc.go
fn=runtime.sysmon
1 900
summary: 6225
`

func TestSumLeavesOutTheScheduler(t *testing.T) {
	if n, err := sum(strings.NewReader(counts)); n != 324 || err != nil {
		t.Errorf("%d, %v; want 324", n, err)
	}
	if _, err := sum(strings.NewReader("fn=main.main\n1 x\n")); err == nil {
		t.Error("no error for a count that is none")
	}
}

func TestParseAllocs(t *testing.T) {
	const one = "goos: linux\nBenchmarkX/a=1 \t  10\t 5.1 ns/op\t 2.0 ns/event\t 160 B/op\t       3 allocs/op\nPASS\n"
	if n, err := parseAllocs(one); n != 3 || err != nil {
		t.Errorf("%d, %v; want 3", n, err)
	}
	for _, out := range []string{"PASS\n", one + one} {
		if _, err := parseAllocs(out); err == nil {
			t.Errorf("no error for %q", out)
		}
	}
}

func TestBaselineIsReadAsWritten(t *testing.T) {
	want := baseline{"go1.26 linux/amd64", []line{
		{"./hub", "BenchmarkAppend/parts=1", 100, 1234.5, 0},
		{"./loop", "BenchmarkOpen", 1, 10, 3},
	}}
	got, err := parseBaseline(want.String())
	if err != nil || got.made != want.made || len(got.lines) != 2 || got.lines[0] != want.lines[0] || got.lines[1] != want.lines[1] {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	got, err = parseBaseline("./hub BenchmarkNew 10\n")
	if err != nil || len(got.lines) != 1 || got.lines[0] != (line{"./hub", "BenchmarkNew", 10, -1, -1}) {
		t.Errorf("without figures: %+v, %v", got, err)
	}
	for _, bad := range []string{"./hub", "./hub B 0", "./hub B x 1 1", "./hub B 1 1", "./hub B 1 x 1", "./hub B 1 1 x"} {
		if _, err := parseBaseline(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestReport(t *testing.T) {
	base := line{"./hub", "BenchmarkAppend", 100, 1000, 2}
	for _, c := range []struct {
		name         string
		instructions float64
		allocs       int64
		counting     bool
		worse        bool
		says         string
	}{
		{"the same", 1000, 2, true, false, "1.000"},
		{"within the margin", 1029, 2, true, false, "1.029"},
		{"above it", 1031, 2, true, true, "more instructions"},
		{"better", 900, 2, true, false, "make guard-update"},
		{"an allocation more", 1000, 3, true, true, "3, was 2  more allocations"},
		{"an allocation less", 1000, 1, true, false, "1, was 2"},
		{"not counted", -1, 2, false, false, " - "},
		{"not counted, an allocation more", -1, 3, false, true, "more allocations"},
	} {
		var out strings.Builder
		got := base
		got.instructions, got.allocs = c.instructions, c.allocs
		if worse := report(&out, []line{base}, []line{got}, c.counting); worse != c.worse || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: worse is %v, want %v and %q in\n%s", c.name, worse, c.worse, c.says, out.String())
		}
	}
	var out strings.Builder
	if report(&out, []line{{"./hub", "BenchmarkNew", 1, -1, -1}}, []line{{"./hub", "BenchmarkNew", 1, 10, 5}}, true) {
		t.Error("a benchmark without figures is worse than none")
	}
}

func TestPattern(t *testing.T) {
	if got := pattern("BenchmarkX/a=1/b+c"); got != `^BenchmarkX$/^a=1$/^b\+c$` {
		t.Error(got)
	}
}
