package share

import (
	"runtime"
	"testing"
)

// Each loop has a processor, records and strangers have one each; who set
// GOMAXPROCS, or has more processors, keeps them. What strangers ask for gets half
// of the loops' share, and one at least.
func TestShares(t *testing.T) {
	for _, tc := range []struct {
		env               string
		processors, loops int // before
		want, aside       int // after
	}{
		{"", 1, 1, 3, 1},
		{"", 2, 1, 3, 1},
		{"", 2, 2, 4, 1},
		{"", 4, 4, 6, 2},
		{"", 8, 8, 10, 4},
		{"", 8, 1, 8, 3},
		{"", 3, 1, 3, 1},
		{"1", 1, 1, 1, 1},
		{"2", 2, 8, 2, 1},
		{"8", 8, 8, 8, 3},
	} {
		t.Setenv("GOMAXPROCS", tc.env)
		was := runtime.GOMAXPROCS(tc.processors)
		Reserve(tc.loops)
		Reserve(tc.loops) // once more changes nothing
		got, aside := runtime.GOMAXPROCS(0), Aside()
		runtime.GOMAXPROCS(was)
		if got != tc.want || aside != tc.aside {
			t.Errorf("GOMAXPROCS=%s, %d processors, %d loops: %d processors and %d aside, want %d and %d",
				tc.env, tc.processors, tc.loops, got, aside, tc.want, tc.aside)
		}
	}
}
