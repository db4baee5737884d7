package apptest

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailcast/internal/testkit"
)

// farewell is the end of a stream that is ended on purpose.
var farewell = regexp.MustCompile(`\r\n[0-9a-f]+\r\nretry: \d+\n\n\r\n0\r\n\r\n$`)

// draining waits until /readyz says so.
func draining(t testing.TB, s *testkit.Server) {
	t.Helper()
	testkit.Eventually(t, patience, "draining", func() bool {
		code, text := readiness(t, s)
		return code == 503 && strings.HasPrefix(text, "draining\n")
	})
}

// TestDrain: after SIGTERM balancers have --drain-delay to notice, while the
// node goes on; then each stream ends with a whole event, a time to come back
// and its last chunk.
func TestDrain(t *testing.T) {
	t.Parallel()
	const delay = 5 * time.Second // time to see that it goes on, on a busy machine too
	b := started(t, 1, "drain")
	s := ready(t, b, "--route", "/events=drain", "--drain-delay", delay.String())
	var conns []*testkit.Conn
	for range 12 {
		conns = append(conns, open(t, s, "/events"))
	}
	l := b.load("drain", 1, 200)
	for _, c := range conns {
		c.Next(t, patience)
	}
	idle := testkit.Dial(t, s.Addr)
	idle.Send(t, "HEAD /none HTTP/1.1\r\nHost: a\r\n\r\n")
	idle.Head(t, patience)

	asked := time.Now()
	s.Signal(t, syscall.SIGTERM)
	draining(t, s)
	late := open(t, s, "/events")
	late.Next(t, patience)
	conns = append(conns, late)
	for i, c := range conns {
		if err := c.End(t, patience); err != io.EOF {
			t.Errorf("stream %d ended with %v, want FIN", i, err)
		}
		if took := time.Since(asked); took < delay {
			t.Errorf("stream %d ended %v after the signal, before --drain-delay", i, took)
		}
		if !c.Stream.Chunks.Done || !farewell.Match(c.Raw) {
			t.Errorf("stream %d ends with %q", i, c.Raw[max(0, len(c.Raw)-100):])
		}
		c.Close()
	}
	if err := idle.End(t, patience); err != io.EOF {
		t.Errorf("the idle connection ended with %v", err)
	}
	if code := s.Wait(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	l.end(t)
	log := s.Stderr.String()
	if strings.Contains(log, "level=ERROR") || !strings.Contains(log, "msg=draining") || !strings.HasSuffix(log, "msg=stopped\n") {
		t.Errorf("log:\n%s", log)
	}
}

// TestResumeOnAnotherNode: a client of a node that is stopped goes on at
// another, with no record missing or twice. With one partition any position of
// one node selects a place in the other's log.
func TestResumeOnAnotherNode(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "resume")
	s := ready(t, b, "--route", "/events=resume")
	other := ready(t, b, "--route", "/events=resume")
	c := open(t, s, "/events")
	b.produce("resume", 0, 20)
	wantRecords(t, c, 0, 0, 10)
	s.Signal(t, syscall.SIGTERM)
	wantRecords(t, c, 0, 10, 20)
	if err := c.End(t, patience); err != io.EOF || !farewell.Match(c.Raw) {
		t.Errorf("end %v of %q", err, c.Raw)
	}
	c.Close()
	if code := s.Wait(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.produce("resume", 0, 20)
	back := open(t, other, "/events", "Last-Event-ID: "+c.Stream.Parser.LastEventID())
	wantRecords(t, back, 0, 20, 40)
}

// TestSecondSignal ends a drain that would take an hour.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "hurry")
	for _, flags := range [][]string{{"--drain-delay", "1h"}, {"--drain-delay", "0s", "--drain", "1h"}} {
		s := ready(t, b, append([]string{"--route", "/events=hurry"}, flags...)...)
		c := open(t, s, "/events") // it does not close its side
		s.Signal(t, syscall.SIGINT)
		draining(t, s)
		if s.Exited() {
			t.Error("the first signal has ended the process")
		}
		began := time.Now()
		s.Signal(t, syscall.SIGTERM)
		if code := s.Wait(t, 4*time.Second); code != 0 {
			t.Errorf("%s: exit code %d, want 0", flags, code)
		}
		t.Logf("%s: ended %v after the second signal", flags, time.Since(began).Round(time.Millisecond))
		if c.End(t, patience); bytes.Contains(c.Raw, []byte("data:")) {
			t.Errorf("%s: the stream had %q", flags, c.Raw)
		}
	}
}

// TestStopWithoutBroker: nothing waits for brokers that are not there.
func TestStopWithoutBroker(t *testing.T) {
	t.Parallel()
	s := serve(t, fake(t), "--route", "/events=a")
	c := testkit.Open(t, s.Addr, "/events")
	c.Head(t, patience)
	s.Signal(t, syscall.SIGTERM)
	if err := c.End(t, patience); err != io.EOF || !c.Stream.Chunks.Done {
		t.Errorf("end %v of %q", err, c.Raw)
	}
	c.Close()
	if code := s.Wait(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
