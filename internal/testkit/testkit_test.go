package testkit

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// TestProcess runs a small server through its life.
func TestProcess(t *testing.T) {
	bin := Build(t, "tailcast/bench/cmd/floor")
	if again := Build(t, "tailcast/bench/cmd/floor"); again != bin {
		t.Errorf("built twice: %s and %s", bin, again)
	}
	addr := FreeAddr(t)
	p := Start(t, bin, "-listen", addr, "-rate", "100")
	Eventually(t, 10*time.Second, "listener", func() bool { return accepts(addr) })
	c := Open(t, addr, "/events", "Last-Event-ID: v1:0-7")
	if h := c.Head(t, 10*time.Second); h.StatusCode != http.StatusOK || h.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("head %+v", h)
	}
	first, second := c.Next(t, 10*time.Second), c.Next(t, 10*time.Second)
	if !strings.HasPrefix(first.Data, `{"p":0,"seq":`) || first.LastEventID == "" || first == second {
		t.Errorf("events %+v and %+v", first, second)
	}
	if !strings.HasPrefix(string(c.Raw), "HTTP/1.1 200 OK\r\n") || !strings.Contains(string(c.Raw), second.Data) {
		t.Errorf("raw bytes %q", c.Raw)
	}
	if p.Exited() || p.PID() < 2 {
		t.Errorf("process %d, exited %t", p.PID(), p.Exited())
	}
	if code := p.Stop(t, 10*time.Second); code != 0 || !strings.Contains(p.Stdout.String(), `"accepted":`) {
		t.Errorf("exit code %d, output %q; want 0 and totals", code, p.Stdout.String())
	}
	if err := c.End(t, 10*time.Second); err == nil {
		t.Error("no end of the connection")
	}
}

func TestKill(t *testing.T) {
	addr := FreeAddr(t)
	p := Start(t, Build(t, "tailcast/bench/cmd/floor"), "-listen", addr)
	Eventually(t, 10*time.Second, "listener", func() bool { return accepts(addr) })
	p.Kill(t)
	if !p.Exited() || p.Wait(t, time.Second) != -1 {
		t.Errorf("exited %t, code %d; want killed by a signal", p.Exited(), p.Wait(t, time.Second))
	}
}

func TestExitCode(t *testing.T) {
	p := Start(t, Build(t, "tailcast/bench/cmd/floor"), "-rate", "0")
	if code := p.Wait(t, 10*time.Second); code != 1 || !strings.Contains(p.Stderr.String(), "-rate 0") {
		t.Errorf("exit code %d, standard error %q; want 1 and the reason", code, p.Stderr.String())
	}
}

func TestEnd(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, "data: x\n\n")
	}))
	defer srv.Close()
	c := Open(t, srv.Listener.Addr().String(), "/")
	if err := c.End(t, 10*time.Second); err != io.EOF {
		t.Errorf("error %v, want EOF", err)
	}
	if e := c.Next(t, time.Second); e.Data != "x" {
		t.Errorf("event %+v", e)
	}
}

func TestMetricsAndReadiness(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			fmt.Fprint(w, "# HELP a_total x\na_total{reason=\"lag\"} 3\na_total{reason=\"stall\"} 1.5e+06\na 7\n")
		case "/readyz":
			if asked++; asked < 3 {
				http.Error(w, "not yet", http.StatusServiceUnavailable)
			}
		}
	}))
	defer srv.Close()
	s := &Server{Admin: srv.Listener.Addr().String()}
	for series, want := range map[string]float64{`a_total{reason="lag"}`: 3, `a_total{reason="stall"}`: 1.5e6, "a": 7, "b": 0} {
		if got := s.Metric(t, series); got != want {
			t.Errorf("%s: got %v, want %v", series, got, want)
		}
	}
	if s.Ready(t, 10*time.Second); asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}

// TestFreeAddr: an address is given out once, though nobody listens on it.
func TestFreeAddr(t *testing.T) {
	given := map[string]bool{}
	for range 300 {
		addr := FreeAddr(t)
		if given[addr] {
			t.Fatalf("%s was given out twice", addr)
		}
		given[addr] = true
	}
}

// accepts reports whether somebody listens on addr.
func accepts(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	c.Close()
	return true
}
