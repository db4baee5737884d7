package share

import (
	"runtime"
	"testing"
)

// Each loop has a processor, records, accepting and strangers have one each; who
// set GOMAXPROCS, or has more processors, keeps them. What strangers ask for gets
// half of what there was, and one at least.
func TestShares(t *testing.T) {
	for _, tc := range []struct {
		env               string
		processors, loops int // before
		want, aside       int // after
	}{
		{"", 1, 1, 4, 1},
		{"", 2, 1, 4, 1},
		{"", 2, 2, 5, 1},
		{"", 4, 4, 7, 2},
		{"", 8, 8, 11, 4},
		{"", 8, 1, 8, 4},
		{"", 3, 1, 4, 1},
		{"1", 1, 1, 1, 1},
		{"2", 2, 8, 2, 1},
		{"8", 8, 8, 8, 4},
	} {
		t.Setenv("GOMAXPROCS", tc.env)
		was := runtime.GOMAXPROCS(tc.processors)
		Reserve(tc.loops)
		Reserve(tc.loops) // once more changes nothing
		got := runtime.GOMAXPROCS(was)
		if aside := aside(tc.processors); got != tc.want || aside != tc.aside {
			t.Errorf("GOMAXPROCS=%s, %d processors, %d loops: %d processors and %d aside, want %d and %d",
				tc.env, tc.processors, tc.loops, got, aside, tc.want, tc.aside)
		}
	}
}
