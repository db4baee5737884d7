package admin

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	// net/http lingers half a second after a 431, longer than goleak waits.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// fake is a Source that says what it is told.
type fake struct {
	snap  Snapshot
	ready error
}

func (f fake) Snapshot() Snapshot { return f.snap }
func (f fake) Ready() error       { return f.ready }

// busy is a gateway with something in every field.
func busy() fake {
	return fake{
		ready: errors.Join(errors.New("draining"), errors.New("topic audit: not open")),
		snap: Snapshot{
			Guards: GuardStats{Tokens: Counts{"verified": 7, "missing": 2}, Challenges: 5, Renewals: 4},
			Accept: AcceptStats{Accepted: 1300, Rejected: Counts{"max-conns": 7, "per-ip": 0}},
			Loops: []LoopStats{
				{
					Connections: 600, Streams: 590, Lagging: 3, Turns: 9000, SinceTurn: 1500 * time.Microsecond,
					EventsSent: 100_000, BytesSent: 25_000_000,
					Closed:          Counts{"peer": 90, "slow": 2, "drain": 0},
					SlowDropped:     Counts{"lag": 2},
					Shed:            Counts{"drain": 2, "route": 0},
					Responses:       Counts{"200": 650, "404": 3},
					Latency:         Histogram{[]float64{0.001, 0.01, 0.1}, []uint64{5, 3, 1, 1}, 0.75},
					LatencyNegative: 1,
				},
				{
					Connections: 610, Streams: 601, Turns: 8000, SinceTurn: 200 * time.Millisecond,
					EventsSent: 101_000, BytesSent: 25_100_000,
					Closed:      Counts{"peer": 80, "slow": 1, "drain": 0},
					SlowDropped: Counts{"stall": 1},
					Responses:   Counts{"200": 660, "404": 0},
					Latency:     Histogram{[]float64{0.001, 0.01, 0.1}, []uint64{4, 4, 0, 0}, 0.25},
				},
			},
			Hub: HubStats{
				Feeds: []FeedStats{
					{"/events", []string{"events"}, "raw", 1100, 5000, 1 << 20, 4096, 1 << 20, "v1:0-5812.1-5790~ab3f9", 1, &SnapshotStats{Keys: 300, Deletes: 20, Bytes: 1 << 16}},
					{"/audit", []string{"audit", "users"}, "envelope", 91, 0, 0, 0, 0, "", 1, &SnapshotStats{Loading: true, Refused: "too large"}},
					{"/tenants/{tenant}", []string{"tenant-{tenant}"}, "raw", 300, 900, 1 << 16, 0, 0, "", 120, nil},
				},
				Skipped: 4, Dropped: 5, Replaced: 6, NamesRefused: 8, Keyless: 9, Shut: 10,
				Resyncs: Counts{"unknown": 12},
				Replays: Counts{"log": 40},
			},
			Kafka: KafkaStats{
				Error: "dial 127.0.0.1:9092: connection refused", Fetches: 77,
				Others: OtherTopics{120, 900, 7},
				Topics: []TopicStats{
					{Topic: "events", Open: true, Records: 5000, Partitions: []PartitionStats{{0, 5813, 5813}, {1, 5791, 5801}, {2, 10, 9}, {3, 4, -1}}},
					{Topic: "audit", Error: "no such topic yet"},
				},
			},
		},
	}
}

// open starts a server on a free port; it is closed with the test.
func open(t *testing.T, src Source, pages http.Handler) (base string, s *Server) {
	t.Helper()
	s, err := Open(Config{
		Addr: "127.0.0.1:0", Version: "v9.9.9", Source: src, Pages: pages,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.Close(t.Context())
	})
	return "http://" + s.Addr().String(), s
}

func do(t *testing.T, method, url string) (code int, head http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

// golden compares got with testdata/name, or rewrites that under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (go test ./admin -update, then read the diff); got:\n%s", file, got)
	}
}

func TestEndpoints(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page "+r.URL.Path) })
	base, _ := open(t, busy(), pages)
	for _, c := range []struct {
		method, path string
		code         int
		contentType  string
		body         string // a part of it
	}{
		{"GET", "/healthz", 200, "text/plain; charset=utf-8", "ok\n"},
		{"GET", "/readyz", 503, "text/plain; charset=utf-8", "draining\ntopic audit: not open\n"},
		{"GET", "/status", 200, "application/json", `"version": "v9.9.9"`},
		{"GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "tailcast_connections 1210\n"},
		{"GET", "/", 200, "text/plain; charset=utf-8", "page /"},
		{"GET", "/demo", 200, "text/plain; charset=utf-8", "page /demo"},
		{"GET", "/debug/pprof/", 200, "text/html; charset=utf-8", "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", 200, "text/plain; charset=utf-8", "goroutine profile:"},
		{"GET", "/debug/pprof/heap", 200, "application/octet-stream", "\x1f\x8b"},
		{"GET", "/debug/pprof/cmdline", 200, "text/plain; charset=utf-8", os.Args[0]},
		{"GET", "/debug/pprof/symbol", 200, "text/plain; charset=utf-8", "num_symbols"},
		{"GET", "/debug/pprof/profile?seconds=1", 200, "application/octet-stream", "\x1f\x8b"},
		{"GET", "/debug/pprof/trace?seconds=0.05", 200, "application/octet-stream", "go 1."},
		{"GET", "/debug/pprof/nothing", 404, "text/plain; charset=utf-8", ""},
		{"HEAD", "/healthz", 200, "text/plain; charset=utf-8", ""},
		{"HEAD", "/readyz", 503, "text/plain; charset=utf-8", ""},
		{"HEAD", "/status", 200, "application/json", ""},
		{"HEAD", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", ""},
		{"POST", "/status", 405, "text/plain; charset=utf-8", "only GET and HEAD"},
		{"PUT", "/", 405, "text/plain; charset=utf-8", ""},
		{"DELETE", "/metrics", 405, "text/plain; charset=utf-8", ""},
		{"OPTIONS", "/healthz", 405, "text/plain; charset=utf-8", ""},
		{"POST", "/debug/pprof/symbol", 405, "text/plain; charset=utf-8", ""},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			code, head, body := do(t, c.method, base+c.path)
			if code != c.code || head.Get("Content-Type") != c.contentType || !strings.Contains(body, c.body) {
				t.Errorf("got %d, %q, %.200q", code, head.Get("Content-Type"), body)
			}
			if c.method == "HEAD" && body != "" {
				t.Errorf("HEAD with a body: %.200q", body)
			}
			if code == 405 && head.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow is %q", head.Get("Allow"))
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			} {
				if head.Get(name) != want {
					t.Errorf("%s is %q, want %q", name, head.Get(name), want)
				}
			}
		})
	}
}

func TestNoPages(t *testing.T) {
	base, _ := open(t, fake{}, nil)
	if code, _, body := do(t, "GET", base+"/no-such-place?access_token=SECRET123"); code != 404 || strings.Contains(body, "SECRET123") {
		t.Errorf("got %d, %q", code, body)
	}
}

func TestHeadTooLarge(t *testing.T) {
	_, s := open(t, fake{}, nil)
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	go io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 2*headBytesMax))
	got, _ := io.ReadAll(c) // a reset after the answer is fine
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 431 ")) {
		t.Errorf("got %.100q", got)
	}
}

func TestOpenErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ addr, want string }{
		{taken.Addr().String(), "--admin " + taken.Addr().String() + ": bind: address already in use"},
		{"127.0.0.1", "--admin 127.0.0.1: address 127.0.0.1: missing port in address"},
		{"127.0.0.1:99999", "--admin 127.0.0.1:99999: address 99999: invalid port"},
	} {
		_, err := Open(Config{Addr: c.addr, Source: fake{}, Log: slog.New(slog.DiscardHandler)})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.addr, err, c.want)
		}
	}
}

// blocking is a Source whose Snapshot waits to be let go.
type blocking struct {
	fake
	entered, leave chan struct{}
}

func (b blocking) Snapshot() Snapshot {
	b.entered <- struct{}{}
	<-b.leave
	return Snapshot{}
}

func TestCloseLetsAnswersEnd(t *testing.T) {
	src := blocking{entered: make(chan struct{}), leave: make(chan struct{})}
	base, s := open(t, src, nil)
	answer := make(chan int)
	go func() {
		code, _, _ := do(t, "GET", base+"/status")
		answer <- code
	}()
	<-src.entered
	closed := make(chan error)
	go func() { closed <- s.Close(t.Context()) }()
	<-s.done // no longer accepting
	if c, err := net.Dial("tcp", s.Addr().String()); err == nil {
		c.Close()
		t.Error("still accepts")
	}
	close(src.leave)
	if code := <-answer; code != 200 {
		t.Errorf("the answer under way was %d", code)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestCloseCutsWhatIsLate(t *testing.T) {
	src := blocking{entered: make(chan struct{}), leave: make(chan struct{})}
	base, s := open(t, src, nil)
	cut := make(chan error)
	go func() {
		res, err := http.Get(base + "/status")
		if err == nil {
			res.Body.Close()
		}
		cut <- err
	}()
	<-src.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "close the admin listener") {
		t.Errorf("got %v", err)
	}
	if err := <-cut; err == nil {
		t.Error("the answer was not cut")
	}
	close(src.leave)
}
