package http1

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// heads returns the heads that browsers and other clients really send, by
// name. The files have LF line ends so that editors leave them alone.
func heads(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/heads/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no heads in testdata: %v", err)
	}
	m := make(map[string][]byte)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m[strings.TrimSuffix(filepath.Base(f), ".txt")] = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	return m
}

// outcome is all that a Parse says, as text.
type outcome struct {
	n    int
	err  error
	text string
}

// parseCuts gives in to a parser in pieces that end at cuts (ascending) and at
// last whole. Each time the bytes have moved, and the place where they were is
// cleared. The capacity ends with the bytes, so that a slice beyond them
// panics.
func parseCuts(in []byte, cuts ...int) outcome {
	var p Parser
	return parseWith(&p, in, cuts...)
}

func parseWith(p *Parser, in []byte, cuts ...int) outcome {
	var old []byte
	for _, end := range append(cuts, len(in)) {
		b := append(make([]byte, 0, end), in[:end]...)[:end:end]
		clear(old)
		old = b
		var r Request
		n, err := p.Parse(b, &r)
		if err == nil {
			return outcome{n, nil, describe(&r)}
		}
		if err != ErrIncomplete {
			return outcome{n, err, ""}
		}
	}
	return outcome{0, ErrIncomplete, ""}
}

// everyByte returns the cuts of an input that comes byte by byte.
func everyByte(in []byte) []int {
	cuts := make([]int, len(in))
	for i := range cuts {
		cuts[i] = i
	}
	return cuts
}

// parseAnyhow parses in whole, byte by byte and cut in two at every place, and
// fails when it makes a difference.
func parseAnyhow(t testing.TB, in []byte) outcome {
	t.Helper()
	want := parseCuts(in)
	if got := parseCuts(in, everyByte(in)...); got != want {
		t.Errorf("%.200q\nbyte by byte: %+v\nwhole:        %+v", in, got, want)
	}
	for i := 0; i < len(in); i += step(in) {
		if got := parseCuts(in, i); got != want {
			t.Errorf("%.200q\ncut at %d: %+v\nwhole:     %+v", in, i, got, want)
		}
	}
	return want
}

// step is how far two cuts of a large input may be apart.
func step(in []byte) int {
	if len(in) > 2000 {
		return 97
	}
	return 1
}

// describe writes down everything about r.
func describe(r *Request) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d %d 1.%d %q %q ?%q host %q length %d chunked %t keep %t continue %t\n",
		r.Method, r.Form, r.Minor, r.MethodName, r.Path, r.Query, r.Host, r.Length, r.Chunked, r.KeepAlive(), r.WantsContinue())
	for name, value := range r.Fields() {
		fmt.Fprintf(&s, "%q: %q\n", name, value)
	}
	for n := other + 1; n < names; n++ {
		if v := r.Value(n); v != nil {
			fmt.Fprintf(&s, "%s = %q repeated %t\n", nameText[n], v, r.Repeated(n))
		}
	}
	return s.String()
}

// mustParse returns the request in head, which must be the whole of it.
func mustParse(t testing.TB, head string) *Request {
	t.Helper()
	p, r := new(Parser), new(Request)
	if n, err := p.Parse([]byte(head), r); err != nil || n != len(head) {
		t.Fatalf("Parse(%q) = %d, %v", head, n, err)
	}
	return r
}

// get returns a GET with the given further lines, each without its CRLF.
func get(lines ...string) string { return request("GET / HTTP/1.1", lines...) }

// post returns a POST with the given further lines.
func post(lines ...string) string { return request("POST / HTTP/1.1", lines...) }

func request(line string, lines ...string) string {
	return line + "\r\nHost: gw.test\r\n" + strings.Join(append(lines, "", ""), "\r\n")
}
