package apptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// TestSeveralTopics has one stream of three topics break off again and again,
// and go on at another node: of each partition nothing is missing or comes
// twice, also after a topic gets a partition and a node forgets what it had.
func TestSeveralTopics(t *testing.T) {
	t.Parallel()
	b := started(t, 2, "a", "b", "c")
	config := writeFile(t, "tailcast.yaml", "routes: [{path: /all, topics: [c, a, b], format: envelope}]\n")
	nodes := []*testkit.Server{ready(t, b, "--config", config), ready(t, b, "--config", config)}
	next := map[string]int64{}
	take := func(e ssetest.Event) {
		t.Helper()
		var r struct {
			Topic             string
			Partition, Offset int64
		}
		if err := json.Unmarshal([]byte(e.Data), &r); err != nil || e.Type != "message" {
			t.Fatalf("event %+v: %v", e, err)
		}
		at := fmt.Sprintf("%s/%d", r.Topic, r.Partition)
		if r.Offset != next[at] {
			t.Fatalf("got offset %d of %s, want %d", r.Offset, at, next[at])
		}
		next[at]++
	}
	id := ""
	written := map[string]int64{}
	for round := range 12 {
		node := nodes[round%2]
		if round == 8 {
			node.Stop(t, patience)
			node.Again(t)
			node.Ready(t, patience)
		}
		var c *testkit.Conn
		if id == "" {
			c = open(t, node, "/all")
		} else {
			c = testkit.Open(t, node.Addr, "/all", "Last-Event-ID: "+id)
			c.Until(t, patience, "first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
		}
		if round == 5 {
			b.grow("b", 3)
		}
		for i, topic := range []string{"a", "b", "c"} {
			p := int32((round + i) % 2)
			if round > 5 && topic == "b" {
				p = int32(round % 3)
			}
			b.produce(topic, p, round%4)
			written[fmt.Sprintf("%s/%d", topic, p)] += int64(round % 4)
		}
		for k := 0; missing(written, next); k++ {
			e := c.Next(t, patience)
			take(e)
			if id = e.LastEventID; k == 5 {
				break // the rest is for another node
			}
		}
		c.Close()
	}
	last := testkit.Open(t, nodes[0].Addr, "/all", "Last-Event-ID: "+id)
	for missing(written, next) {
		take(last.Next(t, patience))
	}
	if n := strings.Count(id, "~"); n != 3 {
		t.Errorf("id %s has %d topics", id, n)
	}
	for _, s := range nodes {
		for _, reason := range []string{"unknown", "expired", "truncated", "recreated", "too-far"} {
			if n := s.Metric(t, fmt.Sprintf("tailcast_resyncs_total{reason=%q}", reason)); n != 0 {
				t.Errorf("%v resyncs: %s", n, reason)
			}
		}
	}
}

// missing reports whether there is something written that was not taken.
func missing(written, taken map[string]int64) bool {
	for at, n := range written {
		if taken[at] < n {
			return true
		}
	}
	return false
}

// asks sends a request of a host and returns the connection.
func asks(t *testing.T, s *testkit.Server, host, target string, fields ...string) *testkit.Conn {
	t.Helper()
	c := testkit.Dial(t, s.Addr)
	c.Send(t, strings.Join(append([]string{"GET " + target + " HTTP/1.1", "Host: " + host, "Origin: https://app.test"}, fields...), "\r\n")+"\r\n\r\n")
	return c
}

// TestParameters asks for topics by path, query and host.
func TestParameters(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "tenant-1", "tenant-2", "room-7", "other", "public", "beta")
	s := ready(t, b, "--cors-origins", "https://app.test", "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: "/t/{topic}", topic: "{topic}", allow: ["tenant-*", public]}
  - {path: /t/tenant-1, host: beta.test, topic: beta}
  - {path: /rooms, topics: [public, "room-{room}"], allow: ["room-*"]}
`))
	for _, c := range []struct {
		host, target string
		status       int
		body         string
	}{
		{"gw.test", "/t/tenant-9", 404, "there is no such topic"},
		{"gw.test", "/t/other", 403, "this topic is not served here"},
		{"gw.test", "/t/a%20b", 404, "there is no such topic"},
		{"gw.test", "/t/tenant-1%2fx", 400, ""},
		{"gw.test", "/t/", 404, "no stream at this path"},
		{"gw.test", "/rooms", 400, `the query has no parameter "room"`},
		{"gw.test", "/rooms?room=", 400, `the query has no parameter "room"`},
		{"gw.test", "/rooms?room=7&room=8", 400, `the query has parameter "room" more than once`},
		{"gw.test", "/rooms?room=8", 404, "there is no such topic"},
		{"gw.test", "/rooms?room=7/..", 404, "there is no such topic"},
	} {
		conn := asks(t, s, c.host, c.target, "Connection: close")
		head := conn.Head(t, patience)
		_ = conn.End(t, patience)
		if head.StatusCode != c.status || !strings.Contains(string(conn.Raw), c.body) || head.Header.Get("Access-Control-Allow-Origin") != "https://app.test" {
			t.Errorf("%s%s: %q, want %d %s", c.host, c.target, conn.Raw, c.status, c.body)
		}
	}
	streams := map[string]*testkit.Conn{}
	for _, at := range []string{"gw.test/t/tenant-1", "gw.test/t/tenant-2", "BETA.test:8080/t/tenant-1", "beta.test/t/public", "gw.test/rooms?x=1&room=7"} {
		host, path, _ := strings.Cut(at, "/")
		c := asks(t, s, host, "/"+path)
		c.Until(t, patience, "first id of "+at, func() bool { return c.Stream.Parser.LastEventID() != "" })
		streams[at] = c
	}
	for _, topic := range []string{"other", "tenant-1", "tenant-2", "beta", "room-7", "public"} {
		b.send(&kgo.Record{Topic: topic, Value: []byte(topic)})
	}
	for at, want := range map[string]string{
		"gw.test/t/tenant-1": "tenant-1", "gw.test/t/tenant-2": "tenant-2", "BETA.test:8080/t/tenant-1": "beta",
		"beta.test/t/public": "public", "gw.test/rooms?x=1&room=7": "room-7 public",
	} {
		for range strings.FieldsSeq(want) {
			if e := streams[at].Next(t, patience); !strings.Contains(want, e.Data) {
				t.Errorf("%s: got %s, want %s", at, e.Data, want)
			} else {
				want = strings.TrimSpace(strings.Replace(want, e.Data, "", 1))
			}
		}
	}
	// An id is a place in the topics of the route, and opens no others.
	id := streams["gw.test/t/tenant-1"].Stream.Parser.LastEventID()
	back := asks(t, s, "gw.test", "/t/tenant-2", "Last-Event-ID: "+id)
	if e := back.Next(t, patience); e.Type != "resync" || !strings.Contains(e.Data, `"unknown"`) {
		t.Errorf("with an id of another topic: %+v", e)
	}
	// Once it exists it is served, and a request is all that it takes.
	b.create("tenant-9", 1)
	var late *testkit.Conn
	testkit.Eventually(t, patience, "the new topic", func() bool {
		late = asks(t, s, "gw.test", "/t/tenant-9")
		return late.Head(t, patience).StatusCode == http.StatusOK
	})
	late.Until(t, patience, "first id", func() bool { return late.Stream.Parser.LastEventID() != "" })
	b.produce("tenant-9", 0, 1)
	wantRecords(t, late, 0, 0, 1)
}

// TestHead: HEAD is told what GET is, and begins no stream.
func TestHead(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "tenant-1", "other")
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: "/t/{topic}", topic: "{topic}", allow: ["tenant-*"]}
  - {path: /mine, topic: other, filter: [{key: "{user}"}]}
`))
	for _, method := range []string{"HEAD", "GET"} {
		for target, status := range map[string]int{
			"/t/tenant-1": 200, "/t/tenant-9": 404, "/t/other": 403, "/mine": 400, "/mine?user=a": 200, "/nope": 404,
		} {
			c := testkit.Dial(t, s.Addr)
			c.Send(t, method+" "+target+" HTTP/1.1\r\nHost: gw.test\r\nConnection: close\r\n\r\n")
			if code := c.Head(t, patience).StatusCode; code != status {
				t.Errorf("%s %s: %d, want %d", method, target, code, status)
			}
			if method == "HEAD" {
				_ = c.End(t, patience)
				if !strings.HasSuffix(string(c.Raw), "\r\n\r\n") {
					t.Errorf("HEAD %s is answered with a body: %q", target, c.Raw)
				}
			}
			c.Close()
		}
		if method == "HEAD" { // that of /mine is filtered, and open for good
			wantMetric(t, s, "tailcast_feeds", 1)
		}
	}
}

// TestTopicsByClaim: the token says which topic a stream is of, whatever its
// client asks for.
func TestTopicsByClaim(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "tenant-a", "tenant-b", "other")
	i := newIssuer(t)
	i.publish("one")
	s := serve(t, b, "--config", writeFile(t, "tailcast.yaml", fmt.Sprintf(`
guard: {issuer: %q, audience: streams}
routes:
  - {path: /mine, topic: "tenant-${claims.org.tenant}", allow: ["tenant-*"]}
  - {path: /named, topic: "${claims.topic}", allow: ["tenant-*"]}
`, i.url)))
	s.Ready(t, patience)
	for _, c := range []struct {
		path, claim string
		status      int
	}{
		{"/mine", "", 200},
		{"/mine?tenant=b", "", 200},
		{"/named", "", 403},
		{"/named?topic=tenant-a", "", 403},
		{"/named", "topic=other", 403},
		{"/named", "topic=tenant-9", 404},
		{"/named", "topic=tenant-b", 200},
	} {
		conn := testkit.Open(t, s.Addr, c.path, "Authorization: Bearer "+i.token(60, strings.Fields(c.claim)...))
		if code := conn.Head(t, patience).StatusCode; code != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.claim, code, c.status)
		}
	}
	c := testkit.Open(t, s.Addr, "/mine", "Authorization: Bearer "+i.token(60))
	c.Until(t, patience, "first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
	for _, topic := range []string{"tenant-b", "tenant-a"} {
		b.send(&kgo.Record{Topic: topic, Value: []byte(topic)})
	}
	if e := c.Next(t, patience); e.Data != "tenant-a" {
		t.Errorf("got %s", e.Data)
	}
	if code := testkit.Open(t, s.Addr, "/mine").Head(t, patience).StatusCode; code != 401 {
		t.Errorf("without a token: %d", code)
	}
}

// TestParametersWhileKafkaIsAway: nobody can know then whether a topic exists,
// so a stream of it is open and waits.
func TestParametersWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "t-1")
	b.stop()
	b.forget()
	s := serve(t, b, "--config", writeFile(t, "tailcast.yaml", `routes: [{path: "/{t}", topic: "{t}", allow: ["t-*"]}]`))
	c := testkit.Open(t, s.Addr, "/t-1")
	c.Until(t, patience, "a heartbeat", func() bool { return c.Stream.Parser.Comments >= 2 })
	refused := testkit.Open(t, s.Addr, "/x-1")
	if code := refused.Head(t, patience).StatusCode; code != 403 {
		t.Errorf("what is not allowed is answered by %d", code)
	}
	b.start()
	c.Until(t, patience, "first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
	b.produce("t-1", 0, 2)
	wantRecords(t, c, 0, 0, 2)
}

// TestManyFeeds has a feed for each of many topics, one stream each: every one
// gets its own records and no other's.
func TestManyFeeds(t *testing.T) {
	t.Parallel()
	const n = 150
	var topics []string
	for i := range n {
		topics = append(topics, fmt.Sprint("user-", i))
	}
	b := started(t, 1, topics...)
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", `routes: [{path: "/users/{user}", topic: "user-{user}", allow: ["user-*"]}]`))
	streams := make([]*testkit.Conn, n)
	for i := range streams {
		streams[i] = testkit.Open(t, s.Addr, fmt.Sprint("/users/", i))
	}
	for i, c := range streams {
		c.Until(t, patience, fmt.Sprint("first id of ", i), func() bool { return c.Stream.Parser.LastEventID() != "" })
	}
	for round := range 3 {
		var recs []*kgo.Record
		for _, topic := range topics {
			recs = append(recs, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s/%d", topic, round)})
		}
		b.send(recs...)
		for i, c := range streams {
			if e := c.Next(t, patience); e.Data != fmt.Sprintf("user-%d/%d", i, round) {
				t.Fatalf("stream %d got %q in round %d", i, e.Data, round)
			}
		}
	}
	for series, want := range map[string]float64{
		"tailcast_feeds": n, `tailcast_records_total{topic="(others)"}`: 3 * n, "tailcast_streams": n,
	} {
		if got := s.Metric(t, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if text := s.Get(t, "/metrics") + s.Get(t, "/status"); strings.Contains(text, "user-7") {
		t.Error("the names that requests make up are in metrics or status")
	}
}
