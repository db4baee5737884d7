package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tailcast/bench"
	"tailcast/bench/harness"
	"tailcast/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// measure measures a peer with so little that it is over at once.
func measure(t *testing.T, tools *tools, target func(*tools) (harness.Target, error)) *harness.Run {
	t.Helper()
	tools.tailcast = testkit.Build(t, "tailcast/cmd/tailcast")
	peer, err := target(tools)
	if err != nil {
		t.Fatal(err)
	}
	m := measurements(1)[0]
	m.spec.Streams, m.spec.Rate, m.spec.Sample = 20, 40, 1
	m.spec.Warm, m.spec.For = 0, harness.Duration(500e6)
	plan := harness.Plan{Spec: m.spec, Targets: []harness.Target{peer}, Runs: 1, Tailcast: tools.tailcast}
	res, err := plan.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &res.Runs[0]
}

func TestNethttp(t *testing.T) {
	r := measure(t, &tools{nethttp: testkit.Build(t, "tailcast/bench/peers/nethttp")}, nethttpTarget)
	if r.Faults != 0 || r.Counts.Opened != 20 || r.Counts.Events == 0 || r.Counts.Gaps != 0 || r.Figures["p50_ms"] <= 0 {
		t.Errorf("%d faults: %q; %+v", r.Faults, r.FaultText, r.Counts)
	}
}

func TestPost(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, string(b)) // one connection, so one goroutine
		switch len(got) {
		case 6:
			_, _ = w.Write([]byte(`{"error":{"code":100,"message":"internal"}}`))
		default:
			_, _ = w.Write([]byte(`{"result":{}}`))
		}
	}))
	defer srv.Close()
	in, orders := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- post(t.Context(), []string{"-to", srv.URL + "/publish", "-before", `{"data":`, "-after", "}", "-partitions", "2", "-size", "80"}, in, out)
	}()
	dec, enc := json.NewDecoder(answers), json.NewEncoder(orders)
	for _, tt := range []struct {
		count, sent, failed int64
		partitions          []int64
		err                 string
	}{
		{0, 0, 0, []int64{0, 0}, ""},
		{3, 3, 0, []int64{2, 1}, ""},
		{2, 2, 0, []int64{3, 2}, ""},
		{1, 0, 1, []int64{3, 2}, "internal"},
	} {
		if err := enc.Encode(bench.Order{Rate: 1000, Count: tt.count}); err != nil {
			t.Fatal(err)
		}
		var p bench.Published
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Sent != tt.sent || p.Failed != tt.failed || !slices.Equal(p.Partitions, tt.partitions) || !strings.Contains(p.Error, tt.err) {
			t.Errorf("%+v; want %+v", p, tt)
		}
	}
	_ = orders.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(got) != 6 || len(got[0]) != 80+len(`{"data":}`) || !strings.HasPrefix(got[3], `{"data":{"p":1,"seq":1,"ts":`) {
		t.Errorf("posted %q", got)
	}
}

func TestHighest(t *testing.T) {
	for _, tt := range []struct {
		limit, want float64 // 0: none
		tries       int
	}{
		{11, 10, 3}, {8, 8, 2}, {4.5, 4, 5}, {1e9, rates[len(rates)-1], len(rates) - firstTry}, {0.1, 0, firstTry + 1},
	} {
		tries := 0
		got, ok, err := highest(func(rate float64) (bool, error) { tries++; return rate <= tt.limit, nil })
		if err != nil || got != tt.want || ok != (tt.want > 0) || tries != tt.tries {
			t.Errorf("limit %v: got %v, %t after %d tries, %v; want %v after %d", tt.limit, got, ok, tries, err, tt.want, tt.tries)
		}
	}
}

func TestChoose(t *testing.T) {
	chosen, err := choose("nethttp,nchan")
	if err != nil || len(chosen) != 2 || chosen[0].name != "nchan" {
		t.Errorf("%v, %v", chosen, err)
	}
	for _, names := range []string{"", "nchan,nchan", "nchan,mercure"} {
		if _, err := choose(names); err == nil {
			t.Errorf("peers %q are taken", names)
		}
	}
}

// TestTables looks at the tables of figures that are made up.
func TestTables(t *testing.T) {
	spread := func(v float64) harness.Spread { return harness.Spread{Median: v, Min: v / 2, Max: v * 2} }
	res := &harness.Result{
		Summaries: []harness.Summary{
			{Target: "tailcast", Version: "tailcast v1", Figures: map[string]harness.Spread{"p99_ms": spread(20), "server_cpu": spread(0.5)}},
			{Target: "nchan", Version: "1.3", Figures: map[string]harness.Spread{"p99_ms": spread(10)}},
		},
		Ratios:  []harness.Ratio{{To: "nchan", Figure: "p99_ms", Spread: spread(2)}, {To: "nchan", Figure: "cpu_us_per_event", Spread: spread(0.5)}},
		Invalid: []string{"nchan, run 1: late", "nchan, run 2: later"},
		Runs:    []harness.Run{{Target: "nchan", Counts: bench.Counts{Missing: 1234, EndedEOF: 2, EndedReset: 1}}},
	}
	all, err := choose("nchan")
	if err != nil {
		t.Fatal(err)
	}
	b := battery{
		o: &options{serverCPU: "0", clientCPU: "1"}, peers: all,
		done: []outcomeOf{{measurement{title: "Many", columns: []string{"p99_ms", "server_cpu", "cpu_us_per_event"}}, res}},
	}
	text := b.tables()
	for _, want := range []string{
		"* tailcast: tailcast v1.\n* nchan: 1.3. nginx with",
		"| tailcast | 20 (10 to 40) | 50 (25 to 100) |  | 0 | 0 |\n| nchan | 10 (5 to 20) |  |  | 1234 | 3 |\n",
		"tailcast ÷ nchan, round by round: latency p99 2 (1 to 4); server CPU an event 0.5 (0.25 to 1).\n",
		"\nNot to be trusted: nchan, run 1: late; and 1 more.\n",
		"better\n\n* Many, latency p99: tailcast ÷ nchan is 2 (1 to 4).\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWriteBetween(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	for _, tt := range []struct{ before, after string }{
		{"a\n" + string(tablesBegin) + "old\n" + string(tablesEnd) + "b\n", "a\n" + string(tablesBegin) + "new\n" + string(tablesEnd) + "b\n"},
		{"a\n" + string(tablesEnd), ""},
		{"a\n", ""},
	} {
		if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := writeBetween(file, "new\n")
		got, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if tt.after == "" && (err == nil || string(got) != tt.before) || tt.after != "" && (err != nil || string(got) != tt.after) {
			t.Errorf("%q: %v, %q", tt.before, err, got)
		}
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.4567: "0.457", 12.34: "12.3", 123.4: "123", 1006999.6: "1,007,000", -12.5: "-12.5"} {
		if got := short(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
