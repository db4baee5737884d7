package apptest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

type sseCase struct{ ssetest.Case }

func readCases(t *testing.T) []sseCase {
	t.Helper()
	var cases []sseCase
	for _, c := range ssetest.ReadCases(t, "../frame/testdata/sse-cases.json") {
		cases = append(cases, sseCase{c})
	}
	return cases
}

// TestSSECases produces every case to a broker and reads it on a route for
// each way to present it, and once more over HTTP/1.0.
func TestSSECases(t *testing.T) {
	t.Parallel()
	cases := readCases(t)
	b := started(t, 1, "cases")
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: /raw, topic: cases}
  - {path: /named, topic: cases, event: {header: event-type}}
  - {path: /base64, topic: cases, binary: base64}
  - {path: /drop, topic: cases, binary: drop}
  - {path: /envelope, topic: cases, format: envelope}
`))
	conns := map[string]*testkit.Conn{}
	for _, path := range []string{"/raw", "/named", "/base64", "/drop", "/envelope"} {
		conns[path] = open(t, s, path)
	}
	old := testkit.Dial(t, s.Addr)
	old.Send(t, "GET /raw HTTP/1.0\r\n\r\n")
	old.Until(t, patience, "first id", func() bool { return old.Stream.Parser.LastEventID() != "" })
	conns["/raw of HTTP/1.0"] = old

	for i := range cases {
		r := &kgo.Record{Topic: "cases", Key: cases[i].KeyBytes(), Value: cases[i].Value}
		for _, h := range cases[i].Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		b.send(r)
	}
	b.send(&kgo.Record{Topic: "cases", Value: []byte("the end")})

	got := map[string]map[int]ssetest.Event{}
	for path, c := range conns {
		got[path] = eventsByOffset(t, c, len(cases))
	}
	for i := range cases {
		c := &cases[i]
		route := "/raw"
		switch c.Requires {
		case "":
		case "event type is mapped from the record header `event-type`":
			route = "/named"
		default:
			t.Fatalf("%s needs %q", c.ID, c.Requires)
		}
		c.checkText(t, got, route, i)
		if route == "/raw" {
			c.checkText(t, got, "/raw of HTTP/1.0", i)
		}
		c.checkBase64(t, got["/base64"][i])
		_, fired := got["/drop"][i]
		if want := utf8.Valid(c.Value); fired != want {
			t.Errorf("%s: /drop sends it: %t, want %t", c.ID, fired, want)
		}
		c.checkEnvelope(t, got["/envelope"][i], i)
	}
}

// eventsByOffset reads the events of a stream that begins at offset 0, up to
// the one at offset last, by the offset in their ids.
func eventsByOffset(t *testing.T, c *testkit.Conn, last int) map[int]ssetest.Event {
	t.Helper()
	events := map[int]ssetest.Event{}
	for before := -1; before < last; {
		e := c.Next(t, patience)
		at, err := offsetsOf(e.LastEventID)
		offset := int(at[0])
		if err != nil || offset <= before {
			t.Fatalf("event %+v after offset %d: %v", e, before, err)
		}
		events[offset], before = e, offset
	}
	return events
}

func (c *sseCase) checkText(t *testing.T, got map[string]map[int]ssetest.Event, route string, i int) {
	t.Helper()
	e, fired := got[route][i]
	event := ssetest.CaseEvent{Fires: fired, Type: e.Type, Data: e.Data}
	want := append([]ssetest.CaseEvent{c.Want}, c.Alt...)
	if c.Value == nil {
		want = []ssetest.CaseEvent{{Fires: true, Type: "delete", Data: string(c.KeyBytes())}}
	}
	if !slices.Contains(want, event) {
		t.Errorf("%s on %s: got %+v, want one of %+v", c.ID, route, event, want)
	}
}

func (c *sseCase) checkBase64(t *testing.T, e ssetest.Event) {
	t.Helper()
	want := c.Value
	if want == nil {
		want = c.KeyBytes()
	}
	if got, err := base64.StdEncoding.DecodeString(e.Data); err != nil || string(got) != string(want) {
		t.Errorf("%s on /base64: got %.300q, %v, want %.300q", c.ID, got, err, want)
	}
}

// envelope is what a page reads of the format. A pair is a header.
type envelope struct {
	Topic       string
	Partition   int32
	Offset      int64
	Key         *string
	KeyBase64   []byte `json:"key_base64"`
	Headers     [][]*string
	Value       *string
	ValueBase64 []byte `json:"value_base64"`
}

func (c *sseCase) checkEnvelope(t *testing.T, e ssetest.Event, i int) {
	t.Helper()
	var got envelope
	if err := json.Unmarshal([]byte(e.Data), &got); err != nil {
		t.Errorf("%s: envelope %.300q: %v", c.ID, e.Data, err)
		return
	}
	if got.Topic != "cases" || got.Partition != 0 || got.Offset != int64(i) || (c.Value == nil) != (e.Type == "delete") {
		t.Errorf("%s: envelope of event %q: %.300q", c.ID, e.Type, e.Data)
	}
	checkBytes(t, c.ID+": key", got.Key, got.KeyBase64, c.KeyBytes())
	checkBytes(t, c.ID+": value", got.Value, got.ValueBase64, c.Value)
	headers := [][]string{}
	for _, pair := range got.Headers {
		h := []string{}
		for _, s := range pair {
			if s == nil {
				h = append(h, "null")
				continue
			}
			h = append(h, *s)
		}
		headers = append(headers, h)
	}
	want := [][]string{}
	for _, h := range c.Headers {
		switch {
		case h.Value == nil:
			want = append(want, []string{h.Name, "null"})
		case utf8.Valid(h.Value):
			want = append(want, []string{h.Name, string(h.Value)})
		default:
			want = append(want, []string{h.Name, base64.StdEncoding.EncodeToString(h.Value), "base64"})
		}
	}
	if fmt.Sprintf("%q", headers) != fmt.Sprintf("%q", want) {
		t.Errorf("%s: headers %q, want %q", c.ID, headers, want)
	}
}

// checkBytes checks a key or value, which is text or base64, or null.
func checkBytes(t *testing.T, what string, text *string, coded, want []byte) {
	t.Helper()
	got := coded
	if text != nil {
		got = []byte(*text)
	}
	if (got == nil) != (want == nil) || string(got) != string(want) || (text != nil) != (want != nil && utf8.Valid(want)) {
		t.Errorf("%s: got %.300q (text %t), want %.300q", what, got, text != nil, want)
	}
}
