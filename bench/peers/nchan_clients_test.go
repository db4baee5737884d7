//go:build clients

package main

import (
	"testing"

	"tailcast/internal/testkit"
)

// TestClientsNchan needs nginx and its nchan module.
func TestClientsNchan(t *testing.T) {
	r := measure(t, &tools{nginx: "nginx", nchanModule: nchanModule, self: testkit.Build(t, "tailcast/bench/peers")}, nchanTarget)
	if n := &r.Counts; r.Faults != 0 || n.Opened != 20 || n.Events != 20*r.Published.Sent || n.Gaps+n.Duplicates != 0 {
		t.Errorf("%d faults: %q; %+v, %+v", r.Faults, r.FaultText, r.Counts, r.Published)
	}
}
