package wait

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	for _, tc := range []struct {
		name          string
		d, ends, took time.Duration
	}{
		{"no time", 0, time.Second, 0},
		{"less", -time.Second, time.Second, 0},
		{"in time", time.Second, time.Minute, time.Second},
		{"ends meanwhile", time.Hour, time.Minute, time.Minute},
		{"has ended", time.Hour, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.ends)
				defer cancel()
				began := time.Now()
				For(ctx, tc.d)
				if took := time.Since(began); took != tc.took {
					t.Errorf("it waits for %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// What takes longer than the time between two calls is not called twice for it.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		began := time.Now()
		var at []time.Duration
		Every(ctx, time.Second, func(time.Time) {
			if at = append(at, time.Since(began)); len(at) == 3 {
				For(t.Context(), 5*time.Second)
			}
		})
		s := time.Second
		if want := []time.Duration{s, 2 * s, 3 * s, 8 * s, 9 * s, 10 * s}; !slices.Equal(at, want) {
			t.Errorf("it is called after %v, want %v", at, want)
		}
		if took := time.Since(began); took != 10*s+time.Millisecond {
			t.Errorf("it ends after %v", took)
		}
	})
}
