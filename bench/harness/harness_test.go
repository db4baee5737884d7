package harness_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tailcast/bench/harness"
	"tailcast/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// measure runs a scenario once, with so little that it is over at once, and
// returns the runs: of tailcast, and with floor of the floor. Nobody may break
// a promise.
func measure(t *testing.T, scenario string, floor bool, change func(*harness.Spec)) *harness.Result {
	t.Helper()
	targets := []harness.Target{harness.Gateway{}.Target()}
	if floor {
		targets = append(targets, harness.FloorTarget())
	}
	return measureAll(t, scenario, change, targets...)
}

// measureAll is measure of any targets.
func measureAll(t *testing.T, scenario string, change func(*harness.Spec), targets ...harness.Target) *harness.Result {
	t.Helper()
	spec, err := harness.Default(scenario)
	if err != nil {
		t.Fatal(err)
	}
	spec.Streams, spec.Sample, spec.Settle, spec.Warm, spec.For = 20, 1, 0, 0, duration(300*time.Millisecond)
	change(&spec)
	p := harness.Plan{Spec: spec, Runs: 1, Tailcast: testkit.Build(t, "tailcast/cmd/tailcast"), Targets: targets}
	defer goleak.VerifyNone(t)
	res, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Runs {
		if r.Faults != 0 {
			t.Errorf("%s: %d faults: %q; %+v", r.Target, r.Faults, r.FaultText, r.Counts)
		}
	}
	return res
}

func duration(d time.Duration) harness.Duration { return harness.Duration(d) }

// positive fails unless each figure is more than nothing.
func positive(t *testing.T, r *harness.Run, names string) {
	t.Helper()
	for name := range strings.FieldsSeq(names) {
		if r.Figures[name] <= 0 {
			t.Errorf("%s: %s is %v, want more than 0", r.Target, name, r.Figures[name])
		}
	}
}

func TestFanout(t *testing.T) {
	for _, partitions := range []int{1, 12} {
		res := measure(t, "fanout", true, func(s *harness.Spec) { s.Partitions, s.Rate = partitions, 100 })
		if len(res.Summaries) != 2 || len(res.Ratios) == 0 {
			t.Fatalf("%d summaries, ratios %+v", len(res.Summaries), res.Ratios)
		}
		for i := range res.Runs {
			r := &res.Runs[i]
			if r.Counts.Opened != 20 || r.Published.Sent != 50 || r.Counts.Events != 20*50 {
				t.Errorf("%s, %d partitions: %+v, %+v", r.Target, partitions, r.Counts, r.Published)
			}
			positive(t, r, "events_per_s p50_ms p99_ms opens_per_s bytes_per_event")
		}
	}
}

func TestScenarios(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*harness.Spec)
		figures string
		events  int64 // that must have come
	}{
		{"connect", func(*harness.Spec) {}, "opens_per_s open_p99_ms", 20},
		{"idle", func(*harness.Spec) {}, "opens_per_s", 20},
		{"keyed", func(s *harness.Spec) { s.Rate, s.Partitions = 400, 3 }, "p50_ms", 200},
		{"feeds", func(s *harness.Spec) { s.Rate, s.Partitions = 400, 2 }, "p50_ms records_per_fetch", 200},
		{"latency", func(s *harness.Spec) { s.Rate = 100 }, "p50_ms", 20 * 50},
		{"storm", func(s *harness.Spec) { s.Behind = 50 }, "storm_s storm_open_s", 20 * 53},
		{"slow", func(s *harness.Spec) { s.Rate, s.Stalled = 100, 5 }, "calm_p99_ms p99_ms slow_p99_ratio", 15 * 80},
		{"soak", func(s *harness.Spec) { s.Rate, s.Churn = 100, duration(50*time.Millisecond) }, "reconnects rss_mb", 20 * 50},
		{"ingest", func(s *harness.Spec) { s.Records = 5000 }, "records_per_s records_per_cpu_s", 0},
		{
			"snapshot", func(s *harness.Spec) { s.Keys, s.Rate, s.Partitions = 3000, 300, 3 },
			"load_s byte_p50_ms first_p99_ms live_p50_s live_max_s mb_per_s table_mb rss_before_mb rss_mb reconnects", 20 * 2500,
		},
		{"hostile", func(s *harness.Spec) { s.Rate, s.Attackers, s.Attack = 100, 3, []string{"hellos", "forged ES"} }, "attacks attack_p99_ratio", 20 * 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &measure(t, tt.name, tt.name == "keyed" || tt.name == "feeds", tt.change).Runs[0]
			if r.Counts.Events < tt.events {
				t.Errorf("%d events, want %d: %+v", r.Counts.Events, tt.events, r.Counts)
			}
			positive(t, r, tt.figures)
		})
	}
}

// TestTLS: streams by TLS beside streams without, in one plan, and the rules
// of both versions.
func TestTLS(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*harness.Spec)
		figure string
	}{
		{"connect", func(s *harness.Spec) { s.Resume, s.Opening = true, 1 }, "resumed"},
		{"fanout", func(s *harness.Spec) { s.TLS, s.Rate = harness.TLS12, 100 }, "p50_ms p99_ms"},
		{"storm", func(s *harness.Spec) { s.Behind = 50 }, "storm_s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := measureAll(t, tt.name, func(s *harness.Spec) { s.TLS = harness.TLS13; tt.change(s) },
				harness.Gateway{}.Target(), harness.Gateway{Plain: true}.Target())
			sealed, plain := &res.Runs[0], &res.Runs[1]
			positive(t, sealed, tt.figure+" opens_per_s")
			if n := sealed.Counts; n.Handshakes != n.Opened || n.Handshakes < 20 || tt.name == "connect" && n.Resumed != 19 {
				t.Errorf("%+v", n)
			}
			if n := plain.Counts; plain.Target != harness.PlainName || n.Handshakes != 0 || n.Opened != sealed.Counts.Opened {
				t.Errorf("%s: %+v", plain.Target, n)
			}
			if sealed.Counts.Bytes <= plain.Counts.Bytes {
				t.Errorf("%d bytes with TLS, %d without", sealed.Counts.Bytes, plain.Counts.Bytes)
			}
			if !slices.ContainsFunc(res.Ratios, func(r harness.Ratio) bool { return r.To == harness.PlainName && r.Figure == "opens_per_s" }) {
				t.Errorf("ratios %+v", res.Ratios)
			}
		})
	}
}

func TestSaturate(t *testing.T) {
	r := measure(t, "saturate", false, func(s *harness.Spec) {
		s.Rate, s.P99, s.Steps = 100, duration(time.Second), 2
	}).Runs[0]
	if len(r.Steps) == 0 || r.Steps[0].Rate != 100 || r.Steps[0].Broke == "" && r.Figures["rate_max"] < 100 {
		t.Errorf("steps %+v, figures %v", r.Steps, r.Figures)
	}
}

// TestSnapshotOfTheWrongServer: one that gives no state is not waited for.
func TestSnapshotOfTheWrongServer(t *testing.T) {
	spec, _ := harness.Default("snapshot")
	p := harness.Plan{Spec: spec, Runs: 1, Tailcast: testkit.Build(t, "tailcast/cmd/tailcast"), Targets: []harness.Target{harness.FloorTarget()}}
	if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "latest record of each key") {
		t.Errorf("error %v", err)
	}
}

// TestExternal measures a server that runs already.
func TestExternal(t *testing.T) {
	broker := testkit.FreeAddr(t)
	server := testkit.Tailcast(t, "demo", "--quiet", "--broker-listen", broker, "--topic", "orders")
	server.Ready(t, 20*time.Second)
	spec, err := harness.Default("fanout")
	if err != nil {
		t.Fatal(err)
	}
	spec.Streams, spec.Partitions, spec.Sample, spec.Settle, spec.Warm, spec.For = 20, 3, 1, 0, 0, duration(300*time.Millisecond)
	p := harness.Plan{Spec: spec, Runs: 2, Topic: "orders", Tailcast: testkit.Build(t, "tailcast/cmd/tailcast"), Targets: []harness.Target{harness.External{
		Name: "server", URL: "http://" + server.Addr + "/events", PIDs: []int{server.PID()},
		Metrics: "http://" + server.Admin + "/metrics", Brokers: []string{broker},
		Checks: harness.Checks{IDs: true, Exact: true, Resume: true, Users: true, Records: true},
	}.Target()}}
	res, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range res.Runs {
		r := &res.Runs[i]
		if r.Faults != 0 || r.Counts.Events == 0 || r.Counts.Events != 20*r.Published.Sent {
			t.Errorf("run %d: %d faults: %q; %+v", r.Number, r.Faults, r.FaultText, r.Counts)
		}
		positive(t, r, "p50_ms events_per_s rss_mb")
	}
	spec.Scenario, spec.Records = harness.Ingest, 10
	p.Spec = spec
	if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("ingest of a running server: error %v", err)
	}
	spec.Scenario, spec.Attackers = harness.Hostile, 1
	p.Spec = spec
	if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "alone") {
		t.Errorf("attacks on a running server: error %v", err)
	}
}

// TestSpecErrors shows that what makes no sense is refused by the name of its
// flag.
func TestSpecErrors(t *testing.T) {
	for _, tt := range []struct {
		scenario string
		change   func(*harness.Spec)
		want     string
	}{
		{"fanout", func(s *harness.Spec) { s.Streams = 0 }, "--streams: 0"},
		{"fanout", func(s *harness.Spec) { s.Partitions = 5000 }, "--partitions: 5000"},
		{"fanout", func(s *harness.Spec) { s.Rate = -1 }, "--rate: -1"},
		{"fanout", func(s *harness.Spec) { s.Size = 10 }, "--size: 10"},
		{"slow", func(s *harness.Spec) { s.Stalled = s.Streams }, "--stalled: 10000"},
		{"storm", func(s *harness.Spec) { s.Behind = 0 }, "--behind: 0"},
		{"ingest", func(s *harness.Spec) { s.Records = 0 }, "--records: 0"},
		{"snapshot", func(s *harness.Spec) { s.Keys = 0 }, "--keys: 0"},
		{"snapshot", func(s *harness.Spec) { s.Keys = 300_000 }, "--keys: 300000 of 1000 streams"},
		{"hostile", func(s *harness.Spec) { s.Attackers = 0 }, "--attackers: 0"},
		{"idle", func(s *harness.Spec) { s.TLS = "1.1" }, `--tls: "1.1"`},
		{"connect", func(s *harness.Spec) { s.Resume = true }, "--tls-resume: needs --tls"},
	} {
		spec, err := harness.Default(tt.scenario)
		if err != nil {
			t.Fatal(err)
		}
		tt.change(&spec)
		if err := spec.Check(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("error %v, want one that begins with %q", err, tt.want)
		}
	}
	if _, err := harness.Default("nothing"); err == nil {
		t.Error("no error for a scenario that does not exist")
	}
}

// TestServerDoesNotStart shows what the error of a server that fails says.
func TestServerDoesNotStart(t *testing.T) {
	spec, _ := harness.Default("fanout")
	p := harness.Plan{
		Spec: spec, Runs: 1, Tailcast: testkit.Build(t, "tailcast/cmd/tailcast"),
		Targets: []harness.Target{harness.Gateway{Args: []string{"--max-lag", "none"}}.Target()},
	}
	if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--max-lag") {
		t.Errorf("error %v, want what the server said", err)
	}
}
