package apptest

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// wantLive waits for the event that says that a stream has caught up.
func wantLive(t testing.TB, c *testkit.Conn) {
	t.Helper()
	if e := c.Next(t, patience); e.Type != "live" || e.Data != "{}" {
		t.Fatalf("got event %+v, want live", e)
	}
}

// TestStartPolicies opens streams behind ten records of a second each, which
// the gateway has not in memory, and one that it has.
func TestStartPolicies(t *testing.T) {
	t.Parallel()
	startPolicies(t, started(t, 1, "starts"), "starts")
}

func startPolicies(t *testing.T, b *broker, topic string) {
	begin := time.Now().Add(-20 * time.Minute).Truncate(time.Second)
	for i := range 10 {
		r := b.numbered(topic, 0, false)
		r.Timestamp = begin.Add(time.Duration(i) * time.Second)
		b.send(r)
	}
	s := ready(t, b, "--replay-max", "5", "--config", writeFile(t, "tailcast.yaml", fmt.Sprintf(`
routes:
  - {path: /latest, topic: %[1]s}
  - {path: /asked, topic: %[1]s, client_start: true}
  - {path: /earliest, topic: %[1]s, start: earliest}
  - {path: /last, topic: %[1]s, start: {last: 3}}
  - {path: /ago, topic: %[1]s, start: 30m}
  - {path: /time, topic: %[1]s, start: %[2]s}
  - {path: /future, topic: %[1]s, start: 2999-01-01T00:00:00Z}
  - {path: /restart, topic: %[1]s, start: {last: 2}, resync: restart}
`, topic, begin.Add(6500*time.Millisecond).Format(time.RFC3339))))
	first := open(t, s, "/latest")
	b.produce(topic, 0, 1)
	wantRecords(t, first, 0, 10, 11) // the node has it
	at := func(d time.Duration) string { return begin.Add(d).Format(time.RFC3339Nano) }
	for _, tc := range []struct {
		target, id string
		resync     string
		from       int64 // of the records up to 11
		live       bool
	}{
		{"/latest", "", "", 11, false},
		{"/latest?since=" + at(0), "", "", 11, false},
		{"/latest?last=2", "", "", 11, false},
		{"/earliest", "", "", 0, true},
		{"/earliest", "v1:0-1", "", 2, true},
		{"/earliest", "v1:0-10", "", 11, true},
		{"/earliest", "nonsense", "unknown", 0, true},
		{"/last", "", "", 8, true},
		{"/ago", "", "", 0, true},
		{"/time", "", "", 6, true},
		{"/future", "", "", 11, true},
		{"/restart", "v1:0-1", "too-far", 9, true}, // after five of them
		{"/asked", "", "", 11, false},
		{"/asked?last=1", "", "", 10, true},
		{"/asked?last=4", "", "", 7, true},
		{"/asked?since=" + at(8500*time.Millisecond), "", "", 9, true},
		{"/asked?since=" + url.QueryEscape(at(8*time.Second)), "", "", 8, true},
		{fmt.Sprint("/asked?since=", begin.Add(9*time.Second).UnixMilli()), "", "", 9, true},
		{"/asked?since=2999-01-01T00:00:00Z", "", "", 11, true},
		{"/asked?since=yesterday", "", "unknown", 11, false},
		{"/asked?last=4", "v1:0-9", "", 10, true},
		{"/asked?last=8", "", "too-far", 11, true},
	} {
		t.Run(tc.target+" "+tc.id, func(t *testing.T) {
			var fields []string
			if tc.id != "" {
				fields = append(fields, "Last-Event-ID: "+tc.id)
			}
			c := testkit.Open(t, s.Addr, tc.target, fields...)
			if tc.resync == "too-far" {
				for range 5 {
					c.Next(t, patience)
				}
			}
			if tc.resync != "" {
				wantResync(t, c.Next(t, patience), tc.resync, topic, nil)
			}
			wantRecords(t, c, 0, tc.from, 11)
			if tc.live {
				wantLive(t, c)
			}
			c.Until(t, patience, "where it begins", func() bool { return c.Stream.Parser.LastEventID() != "" })
			if at, err := offsetsOf(c.Stream.Parser.LastEventID()); err != nil || at[0] != 10 {
				t.Errorf("stands at %s, %v", c.Stream.Parser.LastEventID(), err)
			}
		})
	}
	c := open(t, s, "/earliest")
	wantRecords(t, c, 0, 0, 11)
	wantLive(t, c)
	b.produce(topic, 0, 2)
	wantRecords(t, c, 0, 11, 13) // and live is not said again
}

// TestStartWhileBrokersAreAway: the stream is open and beats, and begins where
// its route says as soon as that can be found out.
func TestStartWhileBrokersAreAway(t *testing.T) {
	t.Parallel()
	b := fake(t)
	b.start()
	b.create("later", 2)
	b.produce("later", 1, 4)
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", "routes:\n  - {path: /all, topic: later, start: earliest}\n"))
	b.stop()
	b.forget()
	c := testkit.Open(t, s.Addr, "/all")
	c.Until(t, patience, "two heartbeats", func() bool { return c.Stream.Parser.Comments >= 3 }) // one is in the first block
	if id := c.Stream.Parser.LastEventID(); id != "" {
		t.Errorf("it stands at %s, which nobody can know", id)
	}
	b.start()
	wantRecords(t, c, 1, 0, 4)
	wantLive(t, c)
	b.send(&kgo.Record{Topic: "later", Value: []byte("more")})
	if e := c.Next(t, patience); e.Data != "more" {
		t.Errorf("got %+v", e)
	}
}

// TestStartOfATopicThatIsMissing: it has everything from the first record on,
// whatever the policy.
func TestStartOfATopicThatIsMissing(t *testing.T) {
	t.Parallel()
	b := fake(t)
	b.start()
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: /latest, topic: none}
  - {path: /earliest, topic: none, start: earliest}
  - {path: /ago, topic: none, start: 1h}
  - {path: /last, topic: none, start: {last: 1}}
`))
	var all []*testkit.Conn
	for _, path := range []string{"/latest", "/earliest", "/ago", "/last"} {
		c := open(t, s, path)
		if path != "/latest" {
			wantLive(t, c)
		}
		all = append(all, c)
	}
	b.create("none", 1)
	b.produce("none", 0, 3)
	for _, c := range all {
		wantRecords(t, c, 0, 0, 3)
	}
}
