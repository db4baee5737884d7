package loop

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"tailcast/internal/testkit"
)

// logs runs a server whose log is kept.
func logs(t *testing.T, change func(*setup)) (*site, *testkit.Output) {
	t.Helper()
	var out testkit.Output
	s := start(t, func(as *setup) {
		change(as)
		as.Log = slog.New(slog.NewTextHandler(&out, nil))
	})
	s.open(1)
	return s, &out
}

// logged waits for a line that has every one of texts, and returns it.
func logged(t *testing.T, out *testkit.Output, texts ...string) (found string) {
	t.Helper()
	eventually(t, "a line with "+strings.Join(texts, " "), func() bool {
		for line := range strings.Lines(out.String()) {
			found = line
			for _, text := range texts {
				if !strings.Contains(line, text) {
					found = ""
				}
			}
			if found != "" {
				return true
			}
		}
		return false
	})
	return found
}

// TestAccessLog: a line an answer and one for the end of a stream; nothing of
// a query or a header.
func TestAccessLog(t *testing.T) {
	s, out := logs(t, func(as *setup) { as.AccessLog = 1; withFiles(t, as) })
	p := s.page("HTTP/1.1", "/events?access_token=secret", "Authorization: Bearer secret", "Cookie: token=secret")
	logged(t, out, "msg=request", "address=127.0.0.1 ", "method=GET", "path=/events ", "status=200")
	p.Close()
	logged(t, out, `msg="stream ended"`, "address=127.0.0.1 ", "reason=peer", "after=")
	c := s.dial()
	c.send(req("GET /a.txt?access_token=secret HTTP/1.1"))
	c.answers("a file")
	logged(t, out, "msg=request", "path=/a.txt ", "status=200")
	s.dial().send("nonsense secret\r\n\r\n")
	logged(t, out, "msg=request", `path="" `, "status=400")
	logged(t, out, "level=WARN", "msg=refused", `reason="status 400"`, "address=127.0.0.1 ", "count=1")
	if strings.Contains(out.String(), "secret") {
		t.Errorf("a secret is logged: %s", out.String())
	}
}

// TestAccessLogIsOff unless asked for.
func TestAccessLogIsOff(t *testing.T) {
	s, out := logs(t, func(*setup) {})
	c := s.dial()
	for range 100 {
		c.send(req("GET /nope HTTP/1.1"))
		c.answers("no stream")
	}
	s.dial().send("nonsense\r\n\r\n")
	logged(t, out, "msg=refused")
	if strings.Contains(out.String(), "msg=request") {
		t.Errorf("logged: %s", out.String())
	}
}

// TestAccessLogSample logs some.
func TestAccessLogSample(t *testing.T) {
	s, out := logs(t, func(as *setup) { as.AccessLog = 10 })
	c := s.dial()
	for range 1000 {
		c.send(req("GET /nope HTTP/1.1"))
		c.answers("no stream")
	}
	if n := strings.Count(out.String(), "msg=request"); n < 40 || n > 200 {
		t.Errorf("%d of 1000 are logged", n)
	}
}

// TestRefusalsAreCounted: a flood of refusals is a line, with the next line
// saying how many came in between.
func TestRefusalsAreCounted(t *testing.T) {
	var out testkit.Output
	j := newJournal(slog.New(slog.NewTextHandler(&out, nil)), 0)
	j.start()
	addr := netip.MustParseAddr("192.0.2.7")
	for range 1000 {
		j.refused("tls", addr)
		j.refused("proxy", addr)
	}
	j.refusals["tls"].logged = j.refusals["tls"].logged.Add(-auditEvery)
	j.refused("tls", addr)
	j.stop()
	got := out.String()
	if strings.Count(got, "\n") != 3 || !strings.Contains(got, "reason=tls address=192.0.2.7 count=1000\n") {
		t.Errorf("logged:\n%s", got)
	}
	j.refused("tls", addr) // what comes later does no harm
}

// TestJournalIsBounded: a log that blocks costs lines, and says how many.
func TestJournalIsBounded(t *testing.T) {
	var out testkit.Output
	j := newJournal(slog.New(slog.NewTextHandler(&out, nil)), 1)
	for range journalMax + 7 {
		j.request(netip.Addr{}, "GET", strings.Repeat("/", 1000), 200)
	}
	j.start()
	j.stop()
	got := out.String()
	if n := strings.Count(got, "msg=request"); n != journalMax || !strings.Contains(got, "count=7") {
		t.Errorf("%d lines of requests; %.300s", n, got[max(0, len(got)-300):])
	}
	if strings.Contains(got, strings.Repeat("/", loggedPathMax+1)) {
		t.Error("a path is longer than it may be")
	}
}
