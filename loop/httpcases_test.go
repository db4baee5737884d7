//go:build !race

package loop

import (
	"testing"
	"time"

	"tailcast/internal/httpcases"
)

// TestHTTPCases plays the hard inputs of internal/httpcases: each in one
// write, byte by byte, and split at every place. Not with the race detector: the
// players then leave the loops so little of two cores that heads come too late.
func TestHTTPCases(t *testing.T) {
	t.Parallel()
	s := start(t, func(as *setup) { as.Loops, as.HeaderTimeout = 2, 5*time.Second })
	for _, f := range httpcases.Run(t.Context(), s.addr, httpcases.Options{}) {
		t.Error(f)
	}
}
