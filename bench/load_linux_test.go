package bench

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestLoadAgainstFloor measures the floor, so that each shows the other right.
func TestLoadAgainstFloor(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	f := Floor{Listen: "127.0.0.1:0", FrameBytes: 300}
	addr, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	orders := make(chan Order, 1)
	ended := make(chan FloorTotals, 1)
	go func() { ended <- f.Run(ctx, orders, make(chan Published, 1)) }()
	ready := false
	l := Load{
		Config:     Config{URL: "http://" + addr + "/", Conns: 50, Verify: true, Sample: 1, Reopen: true, Seed: 1},
		OpenWithin: 20 * time.Second, For: 20 * time.Second, Total: 200, Linger: 10 * time.Millisecond,
		Servers: []int{os.Getpid()},
		Ready:   func() error { ready = true; orders <- Order{Rate: 500, Count: 1e6}; return nil },
	}
	r, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Counts; n.Faults() != 0 || n.Events < 50*200 || n.Opened != 50 || !ready {
		t.Errorf("%+v, ready %t: %q", n, ready, r.Faults)
	}
	if r.Groups[Normal].EventsMin < 200 || r.Statuses[200] != 50 || len(r.Partitions) != 1 {
		t.Errorf("%+v", r)
	}
	if w := r.Window; math.Abs(w.BytesPerEvent-300) > 1 /* a read may end inside an event */ || w.LatencyMS.Samples != w.Events || w.LatencyMS.Negative != 0 || w.Seconds <= 0 {
		t.Errorf("%+v; want 300 bytes an event and every latency", w)
	}
	if s := r.Servers[0]; s.Before.RSS == 0 || s.Idle.FDs < 100 || s.End.Threads == 0 || s.CPUSeconds < 0 {
		t.Errorf("%+v", s)
	}
	stop()
	if n := <-ended; n.Accepted != 50 || n.Events < 200 || n.Bytes%300 != 0 || n.Bytes > 300*50*n.Events {
		t.Errorf("floor: %+v", n)
	}
}

func TestLoadErrors(t *testing.T) {
	url := serve(t, func(c net.Conn, _ string) {
		send(c, chunk(record(0, 0)))
		idle(c)
	})
	silent := serveRaw(t, func(c net.Conn, _ string) { idle(c) })
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		l    Load
		want string
	}{
		{"no url", Load{Config: Config{Conns: 1}}, "url"},
		{"no such process", Load{Config: Config{URL: url, Conns: 1}, Servers: []int{1 << 30}}, "process 1073741824"},
		{"no answer", Load{Config: Config{URL: silent, Conns: 2}, OpenWithin: 20 * time.Millisecond}, "2 of 2 streams did not open: no response head in time"},
		{"ready fails", Load{Config: Config{URL: url, Conns: 1}, Ready: func() error { return broken }}, "ready: broken"},
		{"too few events", Load{Config: Config{URL: url, Conns: 3}, Total: 2, For: 20 * time.Millisecond}, "3 streams have not got 2 events"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
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
