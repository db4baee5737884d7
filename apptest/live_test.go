package apptest

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

func TestLive(t *testing.T) {
	t.Parallel()
	live(t, started(t, 3, "live"), "live")
}

// live has two streams, one of HTTP/1.0, see every record once, in the order
// of its partition, while others are not served.
func live(t *testing.T, b *broker, topic string) {
	b.produce(topic, 1, 4)
	s := ready(t, b, "--route", "/events="+topic)
	first := open(t, s, "/events")
	if at, err := offsetsOf(first.Stream.Parser.LastEventID()); err != nil || fmt.Sprint(at) != "map[1:3]" {
		t.Errorf("the stream begins at %v, %v; want behind what was there", at, err)
	}
	old := testkit.Dial(t, s.Addr)
	old.Send(t, "GET /events HTTP/1.0\r\n\r\n")
	old.Until(t, patience, "first id", func() bool { return old.Stream.Parser.LastEventID() != "" })
	if h := old.Stream.Head; h.StatusCode != http.StatusOK || h.ContentLength != -1 || h.TransferEncoding != nil {
		t.Errorf("head of HTTP/1.0: %+v", h)
	}
	for round := range int64(20) {
		b.produce(topic, 0, 2)
		b.produce(topic, 1, 1)
		for _, c := range []*testkit.Conn{first, old} {
			wantAll(t, c, map[int32]int64{0: 2 * round, 1: 4 + round}, map[int32]int64{0: 2*round + 2, 1: 5 + round})
		}
	}
}

// TestBytes compares what is on the wire with docs/PROTOCOL.md, to the byte.
func TestBytes(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "bytes")
	s := ready(t, b, "--cors-origins", "https://app.test", "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: /raw, topic: bytes, event: {header: kind}}
  - {path: /whole, topic: bytes, format: envelope}
  - {path: /quiet, topic: bytes, delete: skip}
max-event: 1KiB
`))
	raw, whole, quiet := open(t, s, "/raw", "Origin: https://app.test"), open(t, s, "/whole"), open(t, s, "/quiet")
	stamp := time.UnixMilli(1796017979421)
	b.send(
		&kgo.Record{Topic: "bytes", Value: []byte("a\r\nb\rc"), Timestamp: stamp, Headers: []kgo.RecordHeader{{Key: "kind", Value: []byte("x")}, {Key: "kind", Value: []byte("order")}}},
		&kgo.Record{Topic: "bytes", Key: []byte("k1"), Timestamp: stamp, Headers: []kgo.RecordHeader{{Key: "kind", Value: []byte("resync")}, {Key: "none"}, {Key: "bin", Value: []byte("\xff\x00\n")}}},
		&kgo.Record{Topic: "bytes", Key: []byte("\xff"), Value: []byte(strings.Repeat("x", 2048)), Timestamp: stamp},
		&kgo.Record{Topic: "bytes", Key: []byte("\xff"), Value: []byte(`{"a":"é"}`), Timestamp: stamp},
	)
	tag := strings.TrimPrefix(raw.Stream.Parser.LastEventID(), "v1:")
	id := func(offset int) string { return fmt.Sprintf("id: v1:0-%d%s\n", offset, tag) }
	skipped := func(size int) string { // what would have been sent
		return fmt.Sprintf("event: skipped\ndata: {\"topic\":\"bytes\",\"partition\":0,\"offset\":2,\"size\":%d}\n\n", size)
	}
	for _, c := range []struct {
		name   string
		conn   *testkit.Conn
		fields string
		blocks []string
	}{
		{"raw", raw, "Access-Control-Allow-Origin: https://app.test\r\nVary: Origin\r\n", []string{
			id(0) + "event: order\ndata: a\ndata: b\ndata: c\n\n",
			id(1) + "event: delete\ndata: k1\n\n",
			id(2) + skipped(2048),
			id(3) + `data: {"a":"é"}` + "\n\n",
		}},
		{"envelope", whole, "Vary: Origin\r\n", []string{
			id(0) + `data: {"topic":"bytes","partition":0,"offset":0,"timestamp":1796017979421,"key":null,"headers":[["kind","x"],["kind","order"]],"value":"a\r\nb\rc"}` + "\n\n",
			id(1) + "event: delete\n" + `data: {"topic":"bytes","partition":0,"offset":1,"timestamp":1796017979421,"key":"k1","headers":[["kind","resync"],["none",null],["bin","/wAK","base64"]],"value":null}` + "\n\n",
			id(2) + skipped(2049),
			id(3) + `data: {"topic":"bytes","partition":0,"offset":3,"timestamp":1796017979421,"key_base64":"/w==","headers":[],"value":"{\"a\":\"é\"}"}` + "\n\n",
		}},
		{"delete: skip", quiet, "Vary: Origin\r\n", []string{
			id(0) + "data: a\ndata: b\ndata: c\n\n",
			id(2) + skipped(2048),
			id(3) + `data: {"a":"é"}` + "\n\n",
		}},
	} {
		for range c.blocks {
			c.conn.Next(t, patience)
		}
		head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store, no-transform\r\nX-Accel-Buffering: no\r\n" +
			"Date: .*\r\n" + regexp.QuoteMeta(c.fields) + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
		var want strings.Builder
		want.WriteString("^" + head + `[0-9a-f]+\r\nretry: \d+\nid: v1:` + tag + `\n\n\r\n`)
		for _, block := range c.blocks {
			fmt.Fprintf(&want, `(?:2\r\n:\n\r\n)*%x\r\n%s\r\n`, len(block), regexp.QuoteMeta(block))
		}
		if !regexp.MustCompile(want.String()).Match(c.conn.Raw) {
			t.Errorf("%s: got\n%q\nwant\n%s", c.name, c.conn.Raw, want.String())
		}
	}
}

// TestHeartbeat: a silent stream gets comments, and its retry is within the
// bounds that --retry sets.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s := ready(t, started(t, 1, "beat"), "--route", "/events=beat", "--retry", "4s")
	c := open(t, s, "/events")
	if retry, ok := c.Stream.Parser.Retry(); !ok || retry < 2000 || retry > 6000 {
		t.Errorf("retry %d, %t; want 2000 to 6000", retry, ok)
	}
	c.Until(t, patience, "two heartbeats", func() bool { return c.Stream.Parser.Comments >= 2 })
}

// TestAnswers asks for what is no stream.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := ready(t, started(t, 1, "answers"), "--route", "/events=answers", "--cors-origins", "https://app.test")
	for _, c := range []struct {
		method, path, origin, ask string
		status                    int
		header, value             string
	}{
		{"HEAD", "/events", "", "", 200, "Content-Type", "text/event-stream"},
		{"HEAD", "/events", "https://app.test", "", 200, "Access-Control-Allow-Origin", "https://app.test"},
		{"HEAD", "/events", "https://evil.test", "", 200, "Access-Control-Allow-Origin", ""},
		{"OPTIONS", "/events", "", "", 204, "Allow", "GET, HEAD, OPTIONS"},
		{"OPTIONS", "*", "", "", 204, "Allow", "GET, HEAD, OPTIONS"},
		{"OPTIONS", "/events", "https://app.test", "GET", 204, "Access-Control-Allow-Headers", "last-event-id, authorization, cache-control, content-type"},
		{"POST", "/events", "", "", 405, "Allow", "GET, HEAD, OPTIONS"},
		{"DELETE", "/events", "https://app.test", "", 405, "Access-Control-Allow-Origin", "https://app.test"},
		{"GET", "/event", "https://app.test", "", 404, "Access-Control-Allow-Origin", "https://app.test"},
		{"GET", "/events/", "", "", 404, "Content-Type", "text/plain; charset=utf-8"},
		{"GET", "/events/../events", "https://app.test", "", 400, "Access-Control-Allow-Origin", "https://app.test"},
		{"GET", "/metrics", "", "", 404, "", ""},
	} {
		conn := testkit.Dial(t, s.Addr)
		head := c.method + " " + c.path + " HTTP/1.1\r\nHost: " + s.Addr + "\r\nConnection: close\r\n"
		if c.origin != "" {
			head += "Origin: " + c.origin + "\r\n"
		}
		if c.ask != "" {
			head += "Access-Control-Request-Method: " + c.ask + "\r\n"
		}
		conn.Send(t, head+"\r\n")
		res := conn.Head(t, patience)
		if res.StatusCode != c.status || c.header != "" && res.Header.Get(c.header) != c.value {
			t.Errorf("%s %s from %q: status %d, %s %q; want %d, %q; head %v",
				c.method, c.path, c.origin, res.StatusCode, c.header, res.Header.Get(c.header), c.status, c.value, res.Header)
		}
		conn.Close()
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/status": 200, "/": 200, "/debug/pprof/": 200, "/events": 404} {
		res, err := http.Get("http://" + s.Admin + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("admin %s: status %d, want %d", path, res.StatusCode, status)
		}
	}
}
