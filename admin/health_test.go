package admin

import (
	"errors"
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name string
		ages []time.Duration
		code int
		body string
	}{
		{"no loops", nil, 200, "ok\n"},
		{"not known", []time.Duration{0}, 200, "ok\n"},
		{"just in time", []time.Duration{stuckAfter - time.Nanosecond, time.Second}, 200, "ok\n"},
		{"one stuck", []time.Duration{time.Second, stuckAfter}, 503, "loop 1: no turn for 30s\n"},
		{"two stuck", []time.Duration{90 * time.Second, time.Hour}, 503, "loop 0: no turn for 1m30s\nloop 1: no turn for 1h0m0s\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var snap Snapshot
			for _, age := range c.ages {
				snap.Loops = append(snap.Loops, LoopStats{SinceTurn: age})
			}
			base, _ := open(t, fake{snap: snap}, nil)
			if code, _, body := do(t, "GET", base+"/healthz"); code != c.code || body != c.body {
				t.Errorf("got %d, %q", code, body)
			}
		})
	}
}

func TestReady(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		body string
	}{
		{"ready", nil, 200, "ok\n"},
		{"one reason", errors.New("draining"), 503, "draining\n"},
		{"two reasons", errors.Join(errors.New("draining"), errors.New("kafka: dial 127.0.0.1:9092: connection refused")), 503, "draining\nkafka: dial 127.0.0.1:9092: connection refused\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, _ := open(t, fake{ready: c.err}, nil)
			if code, _, body := do(t, "GET", base+"/readyz"); code != c.code || body != c.body {
				t.Errorf("got %d, %q", code, body)
			}
		})
	}
}
