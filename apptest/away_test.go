package apptest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"tailcast/internal/testkit"
)

// readiness is the answer of /readyz.
func readiness(t testing.TB, s *testkit.Server) (int, string) {
	t.Helper()
	res, err := http.Get("http://" + s.Admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// TestBrokerAwayAtStart: streams are open and beat, /readyz has the reason,
// and when the broker comes each gets its place and the records.
func TestBrokerAwayAtStart(t *testing.T) {
	t.Parallel()
	b := fake(t)
	b.start()
	b.create("away", 2)
	b.produce("away", 0, 5)
	b.stop()
	b.forget()
	s := serve(t, b, "--route", "/events=away")
	testkit.Eventually(t, patience, "a reason", func() bool {
		code, text := readiness(t, s)
		return code == 503 && strings.HasPrefix(text, "Kafka does not answer: ") && strings.Contains(text, b.addr)
	})
	if n := s.Metric(t, "tailcast_kafka_connected"); n != 0 {
		t.Errorf("tailcast_kafka_connected is %v", n)
	}
	known := testkit.Open(t, s.Addr, "/events", "Last-Event-ID: v1:0-4~xx")
	c := testkit.Open(t, s.Addr, "/events")
	for _, c := range []*testkit.Conn{c, known} {
		c.Until(t, patience, "two heartbeats", func() bool { return c.Stream.Parser.Comments >= 3 }) // one is in the first block
		if _, ok := c.Stream.Parser.Retry(); !ok || c.Stream.Head.StatusCode != http.StatusOK || c.Stream.Parser.LastEventID() != "" {
			t.Errorf("while Kafka is away a stream begins with %q", c.Raw)
		}
	}
	if s.Exited() || !strings.Contains(s.Stderr.String(), "Kafka does not answer") || !strings.Contains(s.Stderr.String(), "--kafka-brokers") {
		t.Errorf("exited %t, log:\n%s", s.Exited(), s.Stderr.String())
	}
	b.start()
	c.Until(t, patience, "id block", func() bool { return c.Stream.Parser.LastEventID() != "" })
	if id := c.Stream.Parser.LastEventID(); !strings.HasPrefix(id, "v1:0-4~") {
		t.Errorf("the stream begins at %s, want behind the records that were there", id)
	}
	s.Ready(t, patience)
	b.produce("away", 0, 3)
	wantRecords(t, c, 0, 5, 8)
	wantResync(t, known.Next(t, patience), "unknown", "away", map[int32]int64{0: 4}) // the id of another topic
	wantRecords(t, known, 0, 5, 8)
}

// TestBrokerAwayLater: streams stay open, and go on when the broker is back.
func TestBrokerAwayLater(t *testing.T) {
	t.Parallel()
	b := started(t, 2, "later")
	s := ready(t, b, "--route", "/events=later")
	c := open(t, s, "/events")
	b.produce("later", 0, 3)
	wantRecords(t, c, 0, 0, 3)
	b.stop()
	b.forget()
	testkit.Eventually(t, patience, "loss of contact", func() bool { return s.Metric(t, "tailcast_kafka_connected") == 0 })
	if code, text := readiness(t, s); code != 200 {
		t.Errorf("a moment without Kafka: /readyz is %d, %s", code, text)
	}
	beats := c.Stream.Parser.Comments
	c.Until(t, patience, "two heartbeats", func() bool { return c.Stream.Parser.Comments >= beats+2 })
	back := open(t, s, "/events", "Last-Event-ID: v1:0-1"+c.Stream.Parser.LastEventID()[len("v1:0-2"):])
	wantRecords(t, back, 0, 2, 3)                             // from memory
	testkit.Eventually(t, patience, "a reason", func() bool { // after 15 s
		code, text := readiness(t, s)
		return code == 503 && strings.HasPrefix(text, "Kafka does not answer: ")
	})
	b.start()
	s.Ready(t, patience)
	b.produce("later", 0, 2)
	b.produce("later", 1, 1)
	for _, c := range []*testkit.Conn{c, back} {
		wantAll(t, c, map[int32]int64{0: 3}, map[int32]int64{0: 5, 1: 1})
	}
	if n := s.Metric(t, `tailcast_resyncs_total{reason="unknown"}`); n != 0 {
		t.Errorf("%v resyncs", n)
	}
}
