package testkit

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startWithin bounds the start of a server, and an answer of its admin listener:
// well under a second, but several times that with the race detector on a busy
// machine.
const startWithin = 20 * time.Second

// Server is a running tailcast.
type Server struct {
	*Process
	Addr  string // host:port of the streams
	Admin string // host:port of the admin listener

	env, args []string
}

// Tailcast builds tailcast and starts it with a command (serve or demo) and
// flags, to which it adds --listen and --admin with free addresses. It returns
// when /healthz answers 200, which does not mean that Kafka is there: see
// Ready.
func Tailcast(t testing.TB, command string, flags ...string) *Server {
	t.Helper()
	return TailcastIn(t, nil, command, flags...)
}

// TailcastIn is Tailcast with more variables (NAME=VALUE) than this process has.
func TailcastIn(t testing.TB, env []string, command string, flags ...string) *Server {
	t.Helper()
	s := &Server{Addr: FreeAddr(t), Admin: FreeAddr(t), env: env}
	s.args = append([]string{command, "--listen", s.Addr, "--admin", s.Admin}, flags...)
	s.start(t)
	return s
}

// Again starts the server once more, on the same addresses and with the same
// flags, after it has ended.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	if !s.Exited() {
		t.Fatal("the server is still running")
	}
	s.start(t)
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	s.Process = start(t, s.env, nil, Build(t, "tailcast/cmd/tailcast"), s.args)
	Eventually(t, startWithin, "start of tailcast", func() bool {
		if s.Exited() {
			t.Fatalf("tailcast %s ended:\n%s", strings.Join(s.args, " "), s.Stderr.String())
		}
		code, _, err := s.get("/healthz")
		return err == nil && code == http.StatusOK
	})
}

// Ready waits until /readyz answers 200.
func (s *Server) Ready(t testing.TB, within time.Duration) {
	t.Helper()
	answer := ""
	defer func() {
		if t.Failed() {
			t.Logf("last answer of /readyz: %s", answer)
		}
	}()
	Eventually(t, within, "readiness of tailcast", func() bool {
		code, body, err := s.get("/readyz")
		answer = fmt.Sprint(code, " ", body, err)
		return err == nil && code == http.StatusOK
	})
}

// Get returns the body of an admin page, which must answer 200.
func (s *Server) Get(t testing.TB, path string) string {
	t.Helper()
	code, body, err := s.get(path)
	if err != nil || code != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", path, code, err, body)
	}
	return body
}

// Metric returns the value of a series, which is written as in /metrics:
// tailcast_connections_closed_total{reason="peer"}. A series that is not there
// is zero, as counters with labels begin.
func (s *Server) Metric(t testing.TB, series string) float64 {
	t.Helper()
	for line := range strings.Lines(s.Get(t, "/metrics")) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatalf("%s: %v", series, err)
			}
			return v
		}
	}
	return 0
}

func (s *Server) get(path string) (code int, body string, err error) {
	client := http.Client{Timeout: startWithin}
	res, err := client.Get("http://" + s.Admin + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}
