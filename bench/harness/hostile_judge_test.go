package harness

import "testing"

// TestJudgeAttack: what counts is what was right before.
func TestJudgeAttack(t *testing.T) {
	for _, tc := range []struct {
		name           string
		before, during float64 // p99, ms
		grew           int64
		want           string
	}{
		{"as before", 10, 10, 0, ""},
		{"at the bound", 10, 15, growthMax, ""},
		{"slower", 10, 15.1, 0, "p99"},
		{"slower by nothing to speak of", 0.5, 1.4, 0, ""},
		{"larger", 10, 10, growthMax + 1, "memory"},
	} {
		var a Attack
		a.Before.LatencyMS.P99, a.During.LatencyMS.P99 = tc.before, tc.during
		a.During.LatencyMS.Samples, a.During.RSS = 1, tc.grew
		if a.judge(); a.Broke != tc.want {
			t.Errorf("%s: broke %q, want %q", tc.name, a.Broke, tc.want)
		}
	}
	var silent Attack
	if silent.judge(); silent.Broke == "" {
		t.Error("an attack under which nothing came has held")
	}
}
