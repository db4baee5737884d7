package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tailcast/bench"
	"tailcast/bench/harness"
	"tailcast/bench/report"
)

// result is one of two targets with two runs each, the second target slower.
func result(t *testing.T) *harness.Result {
	t.Helper()
	spec, err := harness.Default("fanout")
	if err != nil {
		t.Fatal(err)
	}
	run := func(target string, number int, cpu float64) harness.Run {
		return harness.Run{
			Target: target, Number: number,
			Figures: harness.Values{"cpu_us_per_event": cpu, "p99_ms": 10 * cpu, "events_per_s": 80_000},
			Window: bench.Window{
				Curve:  []bench.Point{{Percent: 50, MS: 1}, {Percent: 99, MS: 9}, {Percent: 100, MS: 20}},
				Slices: []bench.Slice{{At: .5, Events: 40_000, P99: 9}, {At: 1, Events: 40_000, P99: 10}},
			},
			Slices: []harness.Slice{{At: .5, Share: .5, RSS: 20e6}, {At: 1, Share: .6, RSS: 21e6}},
		}
	}
	res := &harness.Result{
		Schema: harness.Schema, Spec: spec, Command: []string{"tailcast", "bench", "<fanout>"},
		Machine: harness.Machine{CPU: "A & B", CPUs: 2},
		Runs:    []harness.Run{run("tailcast", 1, 6), run("floor", 1, 5), run("floor", 2, 6), run("tailcast", 2, 9)},
	}
	res.SumUp()
	return res
}

func TestTable(t *testing.T) {
	res := result(t)
	res.Invalid = []string{"the load's processors were busy"}
	res.Summaries[1].Faults = 3
	res.Runs[1].FaultText = []string{"stream 7: gap"}
	var b strings.Builder
	if err := report.Table(&b, res); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fanout: 10,000 streams, 8 records a second, 200 B values, 1 partition, measured 10s",
		"server CPU an event   7.50 µs (6 to 9)", "5.50 µs (5 to 6)", "1.35 x",
		"floor broke its promises 3 times:\n  stream 7: gap", "Do not trust these figures:\n  the load's",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestAttacks shows the table of an attack that was held off and of one that
// was not.
func TestAttacks(t *testing.T) {
	spec, err := harness.Default("hostile")
	if err != nil {
		t.Fatal(err)
	}
	seen := func(p99 float64, rss int64, share float64) harness.Seen {
		return harness.Seen{LatencyMS: bench.Latency{P99: p99}, RSS: rss, ServerShare: share, OpenMS: 1.5}
	}
	res := &harness.Result{Spec: spec, Runs: []harness.Run{{Target: "tailcast", Number: 1, Attacks: []harness.Attack{
		{Name: "hellos", Unit: "hellos", PerSec: 1234, Before: seen(20, 40e6, .25), During: seen(25, 41e6, .75)},
		{Name: "slow heads", Unit: "bytes", PerSec: 9, Failed: 3, Before: seen(20, 40e6, .25), During: seen(35, 41e6, .75), Broke: "p99"},
	}}}}
	res.SumUp()
	var b strings.Builder
	if err := report.Table(&b, res); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| hellos | 1,234 hellos/s | 20, 25 ms (1.25 x) | 1.50, 1.50 ms | 40.0, 41.0 MB | 25, 75 % | held |\n",
		"| slow heads | 9 bytes/s (3 got no connection) | 20, 35 ms (1.75 x) | 1.50, 1.50 ms | 40.0, 41.0 MB | 25, 75 % | **broke: p99** |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := result(t), result(t)
	for i := range b.Runs {
		b.Runs[i].Figures["cpu_us_per_event"] *= 2
	}
	b.Spec.Size = 300
	b.SumUp()
	dir := t.TempDir()
	var loaded []*harness.Result
	for name, res := range map[string]*harness.Result{"a.json": a, "b.json": b} {
		text, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.json", "b.json"} {
		res, err := report.Load(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		loaded = append(loaded, res)
	}
	var out strings.Builder
	if err := report.Compare(&out, loaded[0], loaded[1]); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"They were not measured alike.", "7.50 µs (6 to 9)", "15 µs (12 to 18)", "2.00", "CPU an event to the floor's   1.35 x"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestLoadErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"other", `{"schema":"tailcast-bench/0"}`, `schema "tailcast-bench/0"`},
		{"none", `[`, "none"},
	} {
		path := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := report.Load(path); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	storm := result(t)
	storm.Spec.Scenario = harness.Storm
	if err := report.Compare(&strings.Builder{}, result(t), storm); err == nil {
		t.Error("no error for two scenarios")
	}
}

// TestHTML shows that the page has every plot, escapes what it was given and
// asks for nothing else.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := report.HTML(&b, result(t)); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"Latency by percentile", "Latency p99 over time", "Events a second", "Server CPU", "Server memory",
		"&lt;fanout&gt;", "A &amp; B", "1.35 x", "prefers-color-scheme: dark", "9 ms at 0.50 s",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if n := strings.Count(page, "<svg"); n != 5 {
		t.Errorf("%d plots, want 5", n)
	}
	if m := regexp.MustCompile(`NaN|Inf|https?:|<script|<link|url\(`).FindString(page); m != "" {
		t.Errorf("the page has %q", m)
	}
}

// TestEmpty shows that a result with next to nothing is written, too.
func TestEmpty(t *testing.T) {
	spec, _ := harness.Default("ingest")
	res := &harness.Result{Spec: spec, Runs: []harness.Run{{Target: "tailcast", Number: 1, Figures: harness.Values{"records_per_s": 0}}}}
	res.SumUp()
	if err := report.HTML(&bytes.Buffer{}, res); err != nil {
		t.Error(err)
	}
	if err := report.Table(&bytes.Buffer{}, res); err != nil {
		t.Error(err)
	}
}
