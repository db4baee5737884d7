package apptest

import (
	"slices"
	"testing"
	"time"

	"tailcast/internal/httpcases"
)

// TestHTTPCases plays the hard requests to the binary's own listener, in one
// write, byte by byte and cut at every place. They are made for a root path
// without a stream, which would never answer what is pipelined behind it; but
// those that must be refused must be so where there is a stream to get, too,
// and so must methods that the path does not have.
func TestHTTPCases(t *testing.T) {
	t.Parallel()
	methods := []string{"B27", "B28"}
	var refused, others []string
	for _, c := range httpcases.Cases() {
		if c.Expect.Accept && !slices.Contains(methods, c.ID) {
			others = append(others, c.ID)
		} else {
			refused = append(refused, c.ID)
		}
	}
	b := started(t, 1, "http")
	for _, mode := range []struct {
		name, route string
		cases       []string
	}{
		{"stream at the root", "/=http", refused},
		{"no stream at the root", "/events=http", others},
	} {
		t.Run(mode.name, func(t *testing.T) {
			const late = 5 * time.Second // the busiest machine sends a head byte by byte within it
			s := ready(t, b, "--route", mode.route, "--header-timeout", late.String(), "--heartbeat", "1h")
			opts := httpcases.Options{HeaderTimeout: late, EndWithin: 10 * time.Second, Only: mode.cases}
			for _, f := range httpcases.Run(t.Context(), s.Addr, opts) {
				t.Error(f)
			}
			if s.Exited() {
				t.Error("the server has ended")
			}
		})
	}
}
