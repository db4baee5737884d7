package ssetest

import (
	"reflect"
	"strings"
	"testing"
)

// parse feeds stream in pieces of at most n bytes.
func parse(stream string, n int) (*Parser, []Event) {
	var p Parser
	var all []Event
	for len(stream) > 0 {
		n := min(n, len(stream))
		all = append(all, p.Feed([]byte(stream[:n]))...)
		stream = stream[n:]
	}
	return &p, all
}

func TestParser(t *testing.T) {
	msg := func(data string) []Event { return []Event{{Type: "message", Data: data}} }
	for _, c := range []struct {
		name, stream string
		want         []Event
	}{
		{"spec: stock", "data: YHOO\ndata: +2\ndata: 10\n\n", msg("YHOO\n+2\n10")},
		{"spec: ids", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", []Event{
			{"message", "first event", "1"}, {"message", "second event", ""}, {"message", " third event", ""},
		}},
		{"spec: empty data, and an unfinished block", "data\n\ndata\ndata\n\ndata:", []Event{{"message", "", ""}, {"message", "\n", ""}}},
		{"spec: one space", "data:test\n\ndata: test\n\n", append(msg("test"), msg("test")...)},
		{"line ends", "data:a\rdata:b\r\ndata:c\n\r\n", msg("a\nb\nc")},
		{"CRLF only", "data:a\r\n\r\ndata:b\r\n\r\n", append(msg("a"), msg("b")...)},
		{"CR only", "data:a\r\rdata:b\r\r", append(msg("a"), msg("b")...)},
		{"BOM", "\uFEFFdata:a\n\n", msg("a")},
		{"second BOM spoils the field", "\uFEFF\uFEFFdata:a\n\n", nil},
		{"BOM later is data", "\n\uFEFFdata:a\n\n", nil},
		{"comment", ":data:a\n\n", nil},
		{"unknown field, odd case", "Data:a\ndatas:b\n data:c\n\n", nil},
		{"event name", "event: x\ndata:a\n\ndata:b\n\n", []Event{{"x", "a", ""}, {"message", "b", ""}}},
		{"name without data", "event: x\n\ndata:b\n\n", msg("b")},
		{"id stays", "id: 1\ndata:a\n\ndata:b\n\n", []Event{{"message", "a", "1"}, {"message", "b", "1"}}},
		{"id alone", "id: 1\n\ndata:b\n\n", []Event{{"message", "b", "1"}}},
		{"id with NUL", "id: 1\nid: 2\x003\ndata:b\n\n", []Event{{"message", "b", "1"}}},
		{"id of an unfinished block", "id: 1\n\nid: 2\n", nil},
		{"bytes that are not UTF-8", "data:\xff\xfe\xc0\x80\xed\xa0\x80\xf0\x9f\x92\n\n", msg(strings.Repeat("\uFFFD", 8))},
		{"cut character, then a line end", "data:\xe2\x82\ndata:b\n\n", msg("\uFFFD\nb")},
		{"largest characters", "data:\u07ff\uffff\U0010ffff\xf4\x90\n\n", msg("\u07ff\uffff\U0010ffff\uFFFD\uFFFD")},
		{"NEL and others end no line", "data:a\u0085\u2028\u2029\v\f\x1cb\n\n", msg("a\u0085\u2028\u2029\v\f\x1cb")},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := 1; n <= len(c.stream); n++ {
				if _, got := parse(c.stream, n); !reflect.DeepEqual(got, c.want) {
					t.Fatalf("in pieces of %d: got %q, want %q", n, got, c.want)
				}
			}
		})
	}
}

func TestDecodeUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a\nb": "a\nb", "\uFEFFé": "\uFEFFé", "\xff\xf0\x9f\x92x\xe2\x82": "\uFFFD\uFFFDx\uFFFD", "\xe0\x9f\xbf": "\uFFFD\uFFFD\uFFFD",
	} {
		if got := DecodeUTF8(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestLastEventID(t *testing.T) {
	for stream, want := range map[string]string{
		"":                        "",
		"id: 1\n":                 "",
		"id: 1\n\n":               "1",
		"id: 1\n\ndata: x\n\n":    "1",
		"id: 1\n\nid\n\n":         "",
		"id: 1\n\nid: 2\ndata: x": "1",
	} {
		if p, _ := parse(stream, 1); p.LastEventID() != want {
			t.Errorf("%q: got %q, want %q", stream, p.LastEventID(), want)
		}
	}
}

func TestRetry(t *testing.T) {
	for stream, want := range map[string]int{
		"":                         -1,
		"retry: 3000\n":            3000,
		"retry: 3000\nretry: 1x\n": 3000,
		"retry: 1000x\n":           -1,
		"retry: -1\n":              -1,
		"retry: 1.5\n":             -1,
		"retry:\n":                 -1,
		"retry: 3000":              -1,
		"retry: 01\n":              1,
		"retry: \u0661\n":          -1,
		"retry: 10\nretry: 20\n\n": 20,
	} {
		p, _ := parse(stream, 1)
		got, ok := p.Retry()
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, want %d", stream, got, want)
		}
	}
}

func TestChunks(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		count            int
		done             bool
		err              string
	}{
		{"two", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", 2, true, ""},
		{"hex", "1a\r\n" + strings.Repeat("x", 26) + "\r\n", strings.Repeat("x", 26), 1, false, ""},
		{"upper case", "A\r\n0123456789\r\n", "0123456789", 1, false, ""},
		{"CRLF in the data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", 1, true, ""},
		{"unfinished", "5\r\nab", "ab", 1, false, ""},
		{"no size", "\r\n", "", 0, false, `chunks: '\r' in a chunk's size`},
		{"no hex", "g\r\n", "", 0, false, `chunks: 'g' in a chunk's size`},
		{"control byte for a digit", "\x10\r\n", "", 0, false, `chunks: '\x10' in a chunk's size`},
		{"extension", "1;a\r\n", "", 0, false, `chunks: ';' in a chunk's size`},
		{"bare LF", "1\nx\r\n", "", 0, false, `chunks: '\n' in a chunk's size`},
		{"too large", "10000000\r\n", "", 0, false, "chunks: a chunk is too large"},
		{"data too long", "1\r\nab", "a", 1, false, `chunks: 'b' after a chunk's data`},
		{"trailer", "0\r\nX", "", 0, false, `chunks: 'X' after the last chunk`},
		{"bytes after the end", "0\r\n\r\n1", "", 0, true, "chunks: bytes after the last chunk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := 1; n <= len(c.body); n++ {
				var d Chunks
				var got []byte
				var err error
				for rest := c.body; len(rest) > 0 && err == nil; {
					piece := rest[:min(n, len(rest))]
					rest = rest[len(piece):]
					var data []byte
					data, err = d.Feed([]byte(piece))
					got = append(got, data...)
				}
				msg := ""
				if err != nil {
					msg = err.Error()
				}
				if string(got) != c.want || d.Count != c.count || d.Done != c.done || msg != c.err {
					t.Fatalf("in pieces of %d: got %q, count %d, done %v, error %q", n, got, d.Count, d.Done, msg)
				}
			}
		})
	}
}

func TestStream(t *testing.T) {
	const body = "retry: 2000\nid: 1\n\ndata: x\n\n"
	want := []Event{{"message", "x", "1"}}
	for name, response := range map[string]string{
		"HTTP/1.1": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\n" + body + "\r\n0\r\n\r\n",
		"HTTP/1.0": "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + body,
	} {
		for n := 1; n <= len(response); n++ {
			var s Stream
			var got []Event
			for rest := response; len(rest) > 0; {
				piece := rest[:min(n, len(rest))]
				rest = rest[len(piece):]
				events, err := s.Feed([]byte(piece))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, events...)
			}
			if !reflect.DeepEqual(got, want) || s.Head.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("%s in pieces of %d: got %q, head %v", name, n, got, s.Head)
			}
			if chunked := name == "HTTP/1.1"; s.Chunks.Done != chunked {
				t.Fatalf("%s in pieces of %d: last chunk seen: %v", name, n, s.Chunks.Done)
			}
		}
	}
	if _, err := new(Stream).Feed([]byte("nonsense\r\n\r\n")); err == nil {
		t.Error("a response head that is none was accepted")
	}
}
