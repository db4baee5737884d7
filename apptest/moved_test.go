package apptest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"tailcast/internal/testkit"
)

// TestResumeFromOtherGateways: a page that comes with an id of Zilla or of
// Wikimedia's EventStreams goes on where it was, and its first id is ours.
func TestResumeFromOtherGateways(t *testing.T) {
	t.Parallel()
	b := started(t, 2, "moved")
	s := ready(t, b, "--route", "/events=moved")
	probe := open(t, s, "/events")
	begun := time.Now()
	b.produce("moved", 0, 10)
	b.produce("moved", 1, 10)
	for range 20 {
		probe.Next(t, patience)
	}
	_, tag, _ := strings.Cut(probe.Stream.Parser.LastEventID(), "~")
	progress := []byte{1}
	for _, n := range []int64{2, 0, 7, 1, 10} { // of 2 partitions 0 is at 7 and 1 at 10
		progress = binary.AppendVarint(progress, n)
	}
	zilla := base64.URLEncoding.EncodeToString(progress)
	for _, c := range []struct{ id, first string }{
		{zilla, "v1:0-6.1-9~" + tag},
		{zilla + "/etag", "v1:0-6.1-9~" + tag},
		{`["a2V5","` + zilla + `"]`, "v1:0-6.1-9~" + tag},
		{`[null,"` + zilla + `"]`, "v1:0-6.1-9~" + tag},
		{`[{"topic":"moved","partition":0,"offset":7},{"topic":"moved","partition":1,"offset":10}]`, "v1:0-6.1-9~" + tag},
		{`[{"topic":"moved","partition":0,"offset":7}]`, "v1:0-6.1-9~" + tag}, // partition 1 begins at latest
		{"a2V5/v1:0-6.1-9~" + tag, "v1:0-6.1-9~" + tag},
	} {
		conn := open(t, s, "/events", "Last-Event-ID: "+c.id)
		if got := firstID(conn); got != c.first {
			t.Errorf("%s: the first id is %s, want %s", c.id, got, c.first)
			continue
		}
		wantRecords(t, conn, 0, 7, 10)
		conn.Close()
	}
	since := open(t, s, "/events", fmt.Sprintf(`Last-Event-ID: [{"topic":"moved","partition":0,"timestamp":%d}]`, begun.UnixMilli()))
	wantRecords(t, since, 0, 0, 10)
	if strings.Contains(string(since.Raw), "-*") {
		t.Errorf("a client that is cut off would forget the time it asked for: %.200q", since.Raw)
	}
	for _, id := range []string{"17", "AQ==", "[]", `[{"topic":"other","partition":0,"offset":7}]`} {
		conn := open(t, s, "/events", "Last-Event-ID: "+id)
		if e := conn.Next(t, patience); e.Type != "resync" || !strings.Contains(e.Data, `"unknown"`) {
			t.Errorf("%s: got %+v, want a resync", id, e)
		}
		conn.Close()
	}
}

// firstID is the id of a stream's first block.
func firstID(c *testkit.Conn) string {
	_, rest, _ := strings.Cut(string(c.Raw), "\nid: ")
	id, _, _ := strings.Cut(rest, "\n")
	return id
}

// TestKeyInIDs: with id: key+position an event's id begins with its key, live
// and after a resume from memory or from Kafka.
func TestKeyInIDs(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "keyed")
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", "routes:\n  - {path: /events, topic: keyed, id: key+position}\n"))
	live := open(t, s, "/events")
	rec := b.numbered("keyed", 0, false)
	rec.Key = []byte("user 1?")
	b.send(rec)
	live.Next(t, patience)
	id := live.Stream.Parser.LastEventID()
	key := base64.RawURLEncoding.EncodeToString(rec.Key)
	if !strings.HasPrefix(id, key+"/v1:0-0~") {
		t.Fatalf("the id is %s, want it to begin with %s/", id, key)
	}
	s.Kill(t)
	s.Again(t)
	s.Ready(t, patience)
	b.send(rec)
	back := open(t, s, "/events", "Last-Event-ID: "+strings.Replace(id, "/v1:0-0", "/v1:", 1)) // before the first
	for want := range 2 {
		if got := back.Next(t, patience).LastEventID; got != strings.Replace(id, "v1:0-0", "v1:0-"+string(rune('0'+want)), 1) {
			t.Errorf("event %d has the id %s", want, got)
		}
	}
}
