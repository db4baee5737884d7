package apptest

import (
	"maps"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestReportGroup: a node that is stopped has told its group where it was.
func TestReportGroup(t *testing.T) {
	t.Parallel()
	b := started(t, 2, "told")
	s := ready(t, b, "--route", "/events=told", "--node", "n1", "--kafka-report-group", "gateway-{node}", "--drain-delay", "0s")
	c := open(t, s, "/events")
	b.produce("told", 0, 3)
	for range 3 {
		c.Next(t, patience)
	}
	s.Signal(t, syscall.SIGTERM)
	if code := s.Wait(t, patience); code != 0 {
		t.Errorf("exit code %d: %s", code, s.Stderr.String())
	}
	all, err := kadm.NewClient(b.client()).FetchOffsets(t.Context(), "gateway-n1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[int32]int64{}
	for p, o := range all["told"] {
		got[p] = o.At
	}
	if want := map[int32]int64{0: 3, 1: 0}; !maps.Equal(got, want) {
		t.Errorf("the group has %v, want %v", got, want)
	}
}
