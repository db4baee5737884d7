package httpcases

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		interim  bool
		heads    []bool
		want     string // "status body" of each answer
		torn     bool
	}{
		{"length", "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc", false, nil, "404 abc", false},
		{"two", "HTTP/1.1 404 X\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 400 Y\r\nContent-Length: 0\r\n\r\n", false, nil, "404 abc, 400 ", false},
		{"chunked", "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\nHTTP/1.1 400 Y\r\nContent-Length: 0\r\n\r\n", false, nil, "200 abc0123456789, 400 ", false},
		{"until the end", "HTTP/1.0 200 X\r\n\r\nabc", false, nil, "200 abc", false},
		{"no content", "HTTP/1.1 204 X\r\n\r\nHTTP/1.1 304 Y\r\n\r\n", false, nil, "204 , 304 ", false},
		{"head", "HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nHTTP/1.1 404 Y\r\nContent-Length: 1\r\n\r\nz", false, []bool{true, false}, "200 , 404 z", false},
		{"head second", "HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nyHTTP/1.1 404 Y\r\nContent-Length: 1\r\n\r\n", false, []bool{false, true}, "200 y, 404 ", false},
		{"100 ignored", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Y\r\nContent-Length: 0\r\n\r\n", false, nil, "404 ", false},
		{"100 counted", "HTTP/1.1 100 Continue\r\n\r\n", true, nil, "100 ", false},
		{"torn head", "HTTP/1.1 404 Y\r\nContent", false, nil, "", true},
		{"torn length", "HTTP/1.1 404 Y\r\nContent-Length: 2\r\n\r\na", false, nil, "404 a", true},
		{"torn chunks", "HTTP/1.1 404 Y\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", false, nil, "404 a", true},
		{"torn trailer", "HTTP/1.1 404 Y\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", false, nil, "404 ", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for at := range tt.in {
				a := answers{interim: tt.interim, heads: tt.heads}
				if err := a.feed([]byte(tt.in[:at])); err != nil {
					t.Fatal(err)
				}
				if err := a.feed([]byte(tt.in[at:])); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, r := range a.list {
					got = append(got, fmt.Sprintf("%d %s", r.Status, r.Body))
				}
				if strings.Join(got, ", ") != tt.want || a.torn() != tt.torn || string(a.raw) != tt.in {
					t.Errorf("split at %d: got %q, torn %t; want %q, %t", at, got, a.torn(), tt.want, tt.torn)
				}
			}
		})
	}
	for _, bad := range []string{"hello", "HTTP/2 200\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nab", "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc"} {
		a := answers{}
		if err := a.feed([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
