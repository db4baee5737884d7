package harness_test

import (
	"testing"

	"tailcast/bench/harness"
	"tailcast/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// plan measures tailcast and the floor with so little that it is over at once.
func plan(t *testing.T, scenario string, change func(*harness.Spec)) *harness.Result {
	t.Helper()
	spec, err := harness.Default(scenario)
	if err != nil {
		t.Fatal(err)
	}
	spec.Streams, spec.Sample = 20, 1
	spec.Warm, spec.For = 0, harness.Duration(300e6)
	change(&spec)
	p := harness.Plan{
		Spec: spec, Runs: 1, Tailcast: testkit.Build(t, "tailcast/cmd/tailcast"),
		Targets: []harness.Target{harness.Gateway{}.Target(), harness.FloorTarget()},
	}
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

func TestFanout(t *testing.T) {
	for _, partitions := range []int{1, 12} {
		res := plan(t, "fanout", func(s *harness.Spec) { s.Partitions, s.Rate = partitions, 100 })
		if len(res.Summaries) != 2 || res.FloorRatio == nil {
			t.Fatalf("%+v", res)
		}
		for _, r := range res.Runs {
			if n := int64(20 * 50); r.Counts.Opened != 20 || r.Published.Sent != 50 || r.Target == "tailcast" && r.Counts.Events != n {
				t.Errorf("%s, %d partitions: %+v, %+v", r.Target, partitions, r.Counts, r.Published)
			}
			for _, name := range []string{"events_per_s", "p50_ms", "p99_ms", "opens_per_s", "bytes_per_event"} {
				if r.Figures[name] <= 0 {
					t.Errorf("%s: %s is %v", r.Target, name, r.Figures[name])
				}
			}
		}
	}
}
