package loop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answers describes what a client got: of each answer its status, whether it
// says that the connection ends, and the Allow and CORS fields. methods are
// those of the requests.
func answers(raw string, methods ...string) (string, error) {
	r := bufio.NewReader(strings.NewReader(raw))
	var all []string
	for i := 0; ; i++ {
		if _, err := r.Peek(1); err == io.EOF {
			return strings.Join(all, "; "), nil
		}
		method := "GET"
		if i < len(methods) {
			method = methods[i]
		}
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return "", fmt.Errorf("answer %d: %w in %q", i, err, raw)
		}
		if res.Header.Get("Content-Type") == "text/event-stream" && method == "GET" {
			return strings.Join(append(all, fmt.Sprint(res.StatusCode, " stream")), "; "), nil
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return "", fmt.Errorf("body of answer %d: %w in %q", i, err, raw)
		}
		all = append(all, describe(res))
	}
}

func describe(res *http.Response) string {
	said := []string{strconv.Itoa(res.StatusCode)}
	if res.Close {
		said = append(said, "close")
	}
	for _, f := range []struct{ name, short string }{
		{"Allow", "allow"},
		{"Access-Control-Allow-Origin", "acao"},
		{"Access-Control-Allow-Methods", "acam"},
		{"Vary", "vary"},
	} {
		if v := res.Header.Get(f.name); v != "" {
			said = append(said, f.short+"="+strings.ReplaceAll(v, ", ", ","))
		}
	}
	return strings.Join(said, " ")
}

// TestPipelined: of the requests in one read some are answered, and the last of
// them says that the connection ends; as many in several reads are no matter.
func TestPipelined(t *testing.T) {
	ask := req("OPTIONS * HTTP/1.1")
	r := newRig(t, nil)
	p, q := r.dial(), r.dial()
	p.send(strings.Repeat(ask, 3*pipelinedMax))
	raw, ended := p.read()
	if n := strings.Count(raw, "HTTP/1.1 204 "); n != pipelinedMax || strings.Count(raw, "Connection: close") != 1 || !ended {
		t.Errorf("%d answers, ended: %t, the end %q", n, ended, raw[max(0, len(raw)-200):])
	}
	for range 3 {
		q.send(strings.Repeat(ask, pipelinedMax-1))
		raw, ended := q.read()
		if n := strings.Count(raw, "HTTP/1.1 204 "); n != pipelinedMax-1 || strings.Contains(raw, "close") || ended {
			t.Errorf("%d answers, ended: %t", n, ended)
		}
	}
}

// TestRequests sends each input whole, byte by byte and cut at every place:
// the answers must be the same, and the connection must end or go on the same.
func TestRequests(t *testing.T) {
	const allow = "allow=GET,HEAD,OPTIONS"
	const granted = "acao=https://app.test vary=Origin"
	page := "Origin: https://app.test"
	other := "Origin: https://evil.test"
	long := strings.Repeat("x", 100)
	chunked := "Transfer-Encoding: chunked"
	for _, tt := range []struct {
		name, in string
		methods  []string // of the requests, GET if missing
		want     string
		goes     bool // the connection goes on
	}{
		{"stream", req("GET /events HTTP/1.1"), nil, "200 stream", true},
		{"stream with a query", req("GET /events?x=1&y=%zz HTTP/1.1"), nil, "200 stream", true},
		{"decoded path", req("GET /a%20b HTTP/1.1"), nil, "200 stream", true},
		{"decoded letters", req("GET /%65vents HTTP/1.1"), nil, "200 stream", true},
		{"absolute form", "GET http://gw.test/events HTTP/1.1\r\nHost: evil.test\r\n\r\n", nil, "200 stream", true},
		{"1.0 stream", "GET /events HTTP/1.0\r\n\r\n", nil, "200 stream", true},
		{"head", req("HEAD /events HTTP/1.1"), []string{"HEAD"}, "200 close vary=Origin", false},
		{"head of a page", req("HEAD /events HTTP/1.1", page), []string{"HEAD"}, "200 close " + granted, false},
		{"options", req("OPTIONS /events HTTP/1.1"), nil, "204 " + allow + " vary=Origin", true},
		{"options *", req("OPTIONS * HTTP/1.1"), nil, "204 " + allow, true},
		{"options of the whole server, absolute", "OPTIONS http://gw.test HTTP/1.1\r\nHost: gw.test\r\n\r\n", nil, "204 " + allow, true},
		{"options in 1.0", "OPTIONS /events HTTP/1.0\r\n\r\n", nil, "204 close " + allow + " vary=Origin", false},
		{
			"preflight", req("OPTIONS /events HTTP/1.1", page, "Access-Control-Request-Method: GET"), nil,
			"204 " + allow + " acao=https://app.test acam=GET,HEAD,OPTIONS vary=Origin", true,
		},
		{"preflight of a stranger", req("OPTIONS /events HTTP/1.1", other, "Access-Control-Request-Method: GET"), nil, "204 " + allow + " vary=Origin", true},
		{"preflight for no route", req("OPTIONS /nope HTTP/1.1", page, "Access-Control-Request-Method: GET"), nil, "404 " + granted, true},
		{"no route", req("GET /nope HTTP/1.1", page), nil, "404 " + granted, true},
		{"no route, stranger", req("GET /nope HTTP/1.1", other), nil, "404 vary=Origin", true},
		{"no route, two origins", req("GET /nope HTTP/1.1", page, page), nil, "404 vary=Origin", true},
		{"no route in another case", req("GET /Events HTTP/1.1"), nil, "404 vary=Origin", true},
		{"no route with a slash behind", req("GET /events/ HTTP/1.1"), nil, "404 vary=Origin", true},
		{"no route, head", req("HEAD /nope HTTP/1.1"), []string{"HEAD"}, "404 vary=Origin", true},
		{"post", req("POST /events HTTP/1.1", page, "Content-Length: 0"), nil, "405 " + allow + " " + granted, true},
		{"put", req("PUT /events HTTP/1.1"), nil, "405 " + allow + " vary=Origin", true},
		{"unknown method for no route", req("FROB /nope HTTP/1.1"), nil, "501 vary=Origin", true},
		{"unknown method", req("FROB /events HTTP/1.1"), nil, "405 " + allow + " vary=Origin", true},
		{"lower case", req("get /events HTTP/1.1"), nil, "405 " + allow + " vary=Origin", true},
		{"connect", "CONNECT gw.test:443 HTTP/1.1\r\nHost: gw.test:443\r\n\r\n\x16\x03\x01", nil, "501 close vary=Origin", false},
		{"bad path of a page", req("GET /%zz HTTP/1.1", page), nil, "400 close " + granted, false},
		{"bad head of a page", req("GET /events HTTP/1.1", page, "bad line"), nil, "400 close vary=Origin", false},
		{"bad path of a head", req("HEAD /a//b HTTP/1.1"), []string{"HEAD"}, "400 close vary=Origin", false},
		{"head without a host", "HEAD /events HTTP/1.1\r\n\r\n", []string{"HEAD"}, "400 close vary=Origin", false},
		{"head of another version", req("HEAD /events HTTP/2.0"), []string{"HEAD"}, "505 close vary=Origin", false},
		{"bad line of a head", req("HEAD /events HTTP/1.1", "bad line"), []string{"HEAD"}, "400 close vary=Origin", false},
		{"too long a head of a head", req("HEAD /events HTTP/1.1", "X: "+strings.Repeat("x", 17<<10)), []string{"HEAD"}, "431 close vary=Origin", false},
		{"head, then a bad get", req("HEAD /nope HTTP/1.1") + "GET / HTTP/1.1\r\n\r\n", []string{"HEAD"}, "404 vary=Origin; 400 close vary=Origin", false},
		{"no host", "GET /events HTTP/1.1\r\n\r\n", nil, "400 close vary=Origin", false},
		{"version", "GET /events HTTP/2.0\r\nHost: a\r\n\r\n", nil, "505 close vary=Origin", false},
		{"head too long", req("GET /events HTTP/1.1", "X: "+strings.Repeat("x", 17<<10)), nil, "431 close vary=Origin", false},
		{"line too long", req("GET /" + strings.Repeat("x", 13<<10) + " HTTP/1.1"), nil, "414 close vary=Origin", false},
		{"tls", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", nil, "400 close vary=Origin", false},

		{"body", req("POST /events HTTP/1.1", "Content-Length: 100") + long, nil, "405 " + allow + " vary=Origin", true},
		{"body, then another", req("POST /nope HTTP/1.1", "Content-Length: 41") + req("GET /smuggled HTTP/1.1") + req("OPTIONS * HTTP/1.1"), nil, "404 vary=Origin; 204 " + allow, true},
		{"body and close", req("POST /events HTTP/1.1", "Content-Length: 100", "Connection: close") + long, nil, "405 close " + allow + " vary=Origin", false},
		{"chunks", req("POST /events HTTP/1.1", chunked) + "3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n" + req("OPTIONS * HTTP/1.1"), nil, "405 " + allow + " vary=Origin; 204 " + allow, true},
		{"bad chunks", req("POST /events HTTP/1.1", chunked) + "zz\r\n" + req("OPTIONS * HTTP/1.1"), nil, "405 " + allow + " vary=Origin", false},
		{"long chunk", req("POST /events HTTP/1.1", chunked) + "fffff\r\n", nil, "405 " + allow + " vary=Origin", false},
		{"long body", req("POST /events HTTP/1.1", "Content-Length: 65537") + long, nil, "405 close " + allow + " vary=Origin", false},
		{"continue", req("POST /events HTTP/1.1", "Content-Length: 100", "Expect: 100-continue"), nil, "405 close " + allow + " vary=Origin", false},
		{"body of a get", req("GET /events HTTP/1.1", "Content-Length: 41") + req("GET /smuggled HTTP/1.1"), nil, "400 close vary=Origin", false},
		{"body of a head", req("HEAD /events HTTP/1.1", chunked) + "0\r\n\r\n", []string{"HEAD"}, "400 close vary=Origin", false},
		{"body of options", req("OPTIONS * HTTP/1.1", "Content-Length: 2") + "ab", nil, "204 " + allow, true},

		{"close", req("GET /nope HTTP/1.1", "Connection: close"), nil, "404 close vary=Origin", false},
		{"close in a list", req("GET /nope HTTP/1.1", "Connection: keep-alive, X-Foo", "Connection: Upgrade , CLoSe") + req("OPTIONS * HTTP/1.1"), nil, "404 close vary=Origin", false},
		{"1.0", "GET /nope HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + req("OPTIONS * HTTP/1.1"), nil, "404 close vary=Origin", false},
		{"empty line before", "\r\n" + req("GET /nope HTTP/1.1"), nil, "404 vary=Origin", true},
		{
			"pipelined", req("GET /nope HTTP/1.1") + req("HEAD /nope HTTP/1.1") + req("POST /events HTTP/1.1", "Content-Length: 3") + "abc" + req("OPTIONS * HTTP/1.1"),
			[]string{"GET", "HEAD", "POST", "OPTIONS"},
			"404 vary=Origin; 404 vary=Origin; 405 " + allow + " vary=Origin; 204 " + allow, true,
		},
		{"pipelined before a stream", req("OPTIONS * HTTP/1.1") + req("GET /nope HTTP/1.1") + req("GET /events HTTP/1.1"), nil, "204 " + allow + "; 404 vary=Origin; 200 stream", true},
		{"pipelined before a bad one", req("OPTIONS * HTTP/1.1") + "Invalid\r\n\r\n", nil, "204 " + allow + "; 400 close vary=Origin", false},
		{"behind a stream", req("GET /events HTTP/1.1") + req("GET /nope HTTP/1.1"), nil, "200 stream", true},
		{"half a head", "GET /events HTTP/1.1\r\nHost: gw.t", nil, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, cut := range cuts(len(tt.in)) {
				r := newRig(t, nil)
				r.open(1)
				p := r.dial()
				for _, piece := range cut.pieces(tt.in) {
					p.send(piece)
				}
				raw, ended := p.read()
				got, err := answers(raw, tt.methods...)
				if err != nil || got != tt.want || ended == tt.goes {
					t.Fatalf("%s: got %q (ended: %t), %v, want %q (goes on: %t)", cut.name, got, ended, err, tt.want, tt.goes)
				}
				p.hangUp()
				if len(r.l.all) > 0 || r.l.wheel.n > 0 || r.l.counts.streams > 0 || len(r.l.feeds) > 0 {
					t.Fatalf("%s: the loop remembers a connection that is gone", cut.name)
				}
			}
		})
	}
}

// cut is a way to send an input.
type cut struct {
	name string
	at   int // 0: whole, -1: byte by byte
}

// cuts are those of an input of n bytes; a long one is cut at some places.
func cuts(n int) []cut {
	all := []cut{{"whole", 0}, {"byte by byte", -1}}
	for at, step := 1, 1+n/300; at < n; at += step {
		all = append(all, cut{fmt.Sprintf("cut at %d", at), at})
	}
	return all
}

func (c cut) pieces(in string) []string {
	switch c.at {
	case 0:
		return []string{in}
	case -1:
		return strings.Split(in, "")
	}
	return []string{in[:c.at], in[c.at:]}
}

// TestAnswerFields checks what every answer carries, on a real connection.
func TestAnswerFields(t *testing.T) {
	s := start(t, nil)
	c := s.dial()
	c.send(req("GET /nope HTTP/1.1"))
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	if !bytes.Contains(body, []byte("no stream")) || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %q with %v", body, res.Header)
	}
	if at, err := http.ParseTime(res.Header.Get("Date")); err != nil || time.Since(at).Abs() > 5*time.Second {
		t.Errorf("Date: %q, %v", res.Header.Get("Date"), err)
	}
	c.send(req("GET /events HTTP/1.1", "Origin: https://app.test"))
	res, err = http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no",
		"Access-Control-Allow-Origin": "https://app.test", "Vary": "Origin",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if !slices.Equal(res.TransferEncoding, []string{"chunked"}) {
		t.Errorf("got transfer coding %v", res.TransferEncoding)
	}
}

// TestKeepAlive serves many requests on one connection, and ends it when it
// rests too long.
func TestKeepAlive(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	for i := range 50 {
		r.later(4 * time.Second) // below the header timeout
		p.send(req("POST /events HTTP/1.1", "Content-Length: 2") + "ab")
		if raw, ended := p.read(); !strings.HasPrefix(raw, "HTTP/1.1 405 ") || ended {
			t.Fatalf("request %d: %q, ended: %t", i, raw, ended)
		}
	}
	r.later(r.srv.waits.keepAlive - time.Second)
	if _, ended := p.read(); ended {
		t.Fatal("ended before --keep-alive was over")
	}
	r.later(2 * time.Second)
	if raw, ended := p.read(); raw != "" || !ended {
		t.Fatalf("got %q, ended: %t; want a silent end", raw, ended)
	}
	if r.l.counts.closed[closeTimeout] != 1 {
		t.Errorf("closed: %v", r.l.counts.closed)
	}
}

// TestHeaderTimeout counts from the first byte, or from the opening when there
// is none; a byte now and then does not help.
func TestHeaderTimeout(t *testing.T) {
	r := newRig(t, nil)
	silent, slow, head := r.dial(), r.dial(), r.dial()
	slow.send("GET /events HT")
	head.send("HEAD /events HTTP/1.1\r\nHost: gw.test\r\n")
	for range 4 {
		r.later(time.Second)
		slow.send("X")
	}
	for _, p := range []*peer{silent, slow} {
		if raw, ended := p.read(); raw != "" || ended {
			t.Fatalf("got %q, ended: %t before the time", raw, ended)
		}
	}
	r.later(1200 * time.Millisecond)
	if raw, ended := silent.read(); raw != "" || !ended {
		t.Errorf("without a byte: got %q, ended: %t; want a silent end", raw, ended)
	}
	raw, ended := slow.read()
	if got, err := answers(raw); got != "408 close vary=Origin" || err != nil || !ended {
		t.Errorf("half a head: got %q, %v, ended: %t", got, err, ended)
	}
	raw, ended = head.read()
	if got, err := answers(raw, "HEAD"); got != "408 close vary=Origin" || err != nil || !ended {
		t.Errorf("half of a HEAD: got %q, %v, ended: %t", got, err, ended)
	}
	slow.send("more")
	if raw, _ := slow.read(); raw != "" {
		t.Errorf("got %q behind the last answer", raw)
	}
	r.later(r.srv.waits.linger + time.Second)
	if r.l.counts.closed[closeTimeout] != 3 || len(r.l.all) != 0 {
		t.Errorf("closed: %v, %d left", r.l.counts.closed, len(r.l.all))
	}
}

// TestBodyTimeout ends a connection whose body does not come.
func TestBodyTimeout(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.send(req("POST /events HTTP/1.1", "Content-Length: 10") + "abc")
	r.later(4 * time.Second)
	if _, ended := p.read(); ended {
		t.Fatal("ended before the time")
	}
	r.later(1200 * time.Millisecond)
	if _, ended := p.read(); !ended {
		t.Fatal("still open")
	}
}

// TestAnswerReachesSendingClient: an answer given while the client goes on
// sending must not be lost to a reset, which the kernel sends for a socket
// that is closed with unread bytes.
func TestAnswerReachesSendingClient(t *testing.T) {
	s := start(t, nil)
	for name, in := range map[string]string{
		"body":  req("POST /events HTTP/1.1", "Content-Length: 10000000"),
		"head":  "GET /events HTTP/1.1\r\n",
		"other": "\x00\x01\x02",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial()
			c.send(in)
			sent := make(chan error)
			go func() {
				_, err := c.Write(bytes.Repeat([]byte("X: yyyyyyyyyyyy\r\n"), 10_000_000/17))
				sent <- err
			}()
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(c.r)
			if got, perr := answers(string(raw)); perr != nil || err != nil || !strings.HasPrefix(got, "4") {
				t.Fatalf("got %q, %v, %v", got, err, perr)
			}
		})
	}
}

// TestLingerIsBounded: who goes on sending behind the last answer is cut off.
func TestLingerIsBounded(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.send(req("GET /nope HTTP/1.1", "Connection: close"))
	block := strings.Repeat("x", 64<<10)
	n := 0
	for p.near.open {
		p.send(block)
		n += len(block)
	}
	if n <= discardBytesMax || n > discardBytesMax+2*len(block) {
		t.Errorf("cut off after %d bytes", n)
	}
	if r.l.counts.closed[closeDone] != 1 {
		t.Errorf("closed: %v", r.l.counts.closed)
	}
}

// TestUnreadAnswers ends a connection on which requests come and answers are
// not read.
func TestUnreadAnswers(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	for range 100_000 {
		if p.send(req("GET /nope HTTP/1.1")); !p.near.open {
			break
		}
	}
	if r.l.counts.closed[closeError] != 1 || len(r.l.all) != 0 {
		t.Errorf("closed: %v, %d left", r.l.counts.closed, len(r.l.all))
	}
}
