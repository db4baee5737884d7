package bench

import (
	"context"
	"math"
	"net"
	"strings"
	"testing"
)

// startFloor runs a floor until the test ends. It returns its URL, and where it
// takes orders.
func startFloor(t *testing.T, f *Floor) (url string, publish func(Order) Published, stop func() FloorTotals) {
	t.Helper()
	f.Listen = "127.0.0.1:0"
	addr, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	orders, done, ended := make(chan Order), make(chan Published), make(chan FloorTotals, 1)
	go func() { ended <- f.Run(ctx, orders, done) }()
	t.Cleanup(cancel)
	publish = func(o Order) Published {
		orders <- o
		return <-done
	}
	return "http://" + addr + "/", publish, func() FloorTotals { cancel(); return <-ended }
}

// TestFloor measures the floor, so that each shows the other right.
func TestFloor(t *testing.T) {
	url, publish, stop := startFloor(t, &Floor{FrameBytes: 300})
	cl := newClient(t, Config{URL: url, Conns: 50})
	cl.mustOpen(t)
	cl.Measure()
	for _, o := range []Order{{Rate: 1000, Count: 100}, {Count: 100}} {
		if p := publish(o); p.Sent != 100 || p.Seconds <= 0 {
			t.Errorf("order %+v: %+v", o, p)
		}
	}
	cl.runUntilTrue(t, "all events", func() bool { return cl.Behind(200) == 0 })
	cl.Measured()
	r := cl.Result()
	if n := r.Counts; n.Faults() != 0 || n.Events != 50*200 || n.Opened != 50 {
		t.Errorf("%+v: %q", n, r.Faults)
	}
	w := r.Window
	if math.Abs(w.BytesPerEvent-300) > 1 /* the head */ || w.LatencyMS.Samples != w.Events || w.LatencyMS.Negative != 0 || w.Seconds <= 0 {
		t.Errorf("%+v; want 300 bytes an event and every latency", w)
	}
	if n := stop(); n.Accepted != 50 || n.Events != 200 || n.Dropped != 0 || n.Bytes != 300*50*200 || n.Writes >= 50*200 {
		t.Errorf("floor: %+v; want each event written, those that are due together in one write", n)
	}
}

// TestFloorEach shows that with Each an event goes to one connection, in turn.
func TestFloorEach(t *testing.T) {
	url, publish, stop := startFloor(t, &Floor{Size: 100, Each: true})
	cl := newClient(t, Config{URL: url, Conns: 10})
	cl.mustOpen(t)
	if p := publish(Order{Rate: 5000, Count: 50}); p.Sent != 50 {
		t.Errorf("%+v", p)
	}
	cl.runUntilTrue(t, "all events", func() bool { return cl.Behind(5) == 0 })
	if n := cl.Result().Counts; n.Events != 50 || n.Faults() != 0 {
		t.Errorf("%+v: %q", n, cl.tally.faults)
	}
	if n := stop(); n.Writes != 50 {
		t.Errorf("floor: %+v, want one write an event", n)
	}
}

func TestFloorErrors(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, addr := range []string{"nowhere", l.Addr().String()} {
		f := Floor{Listen: addr}
		if _, err := f.Open(); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: error %v, want one that names it", addr, err)
		}
	}
}
