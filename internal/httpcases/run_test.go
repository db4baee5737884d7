//go:build !race

// These play thousands of connections to servers of other people and of the
// test; under the race detector they would test its speed.

package httpcases

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNetHTTP plays all cases to Go's own server. It plays two wrong: it goes
// on after a message with both Content-Length and Transfer-Encoding, and after
// one with Transfer-Encoding in HTTP/1.0.
func TestNetHTTP(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Target", r.URL.Path)
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			http.NotFound(w, r)
		case http.MethodConnect:
			w.Header().Set("Connection", "close")
			fallthrough
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	srv.Config.ReadHeaderTimeout = 3 * time.Second
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	defer srv.Close()
	failures := Run(t.Context(), srv.Listener.Addr().String(), Options{
		Parallel: 128, HeaderTimeout: 3 * time.Second,
		Target: func(a Answer) string { return a.Header.Get("X-Target") },
	})
	for _, f := range failures {
		if f.Case != "B76" && f.Case != "B87" {
			t.Error(f)
		}
	}
}

// serve runs a server that hands each connection to play, and closes it.
func serve(t *testing.T, play func(c net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				play(c)
			}()
		}
	}()
	return l.Addr().String()
}

// eachHead calls answer for everything that ends in an empty line.
func eachHead(c net.Conn, answer func(head string)) {
	var in []byte
	var buf [64 << 10]byte
	for {
		n, err := c.Read(buf[:])
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		for {
			head, rest, found := bytes.Cut(in, []byte("\r\n\r\n"))
			if !found {
				break
			}
			answer(string(head))
			in = rest
		}
	}
}

func say(c net.Conn, status int, body string) {
	fmt.Fprintf(c, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// sloppy takes every head as it is.
func sloppy(c net.Conn) { eachHead(c, func(string) { say(c, 200, "ok") }) }

// TestDetects plays cases to servers with one fault each.
func TestDetects(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cases string
		play  func(net.Conn)
		want  string // of every failure; "" is none
	}{
		{"right", "B23 B25 B42 B62", sloppy, ""},
		{"serves what it must refuse", "B05 B15 B17 B18 B19 B47 B49 B57 B58 B60 B64 B66 B77", sloppy, "got answers 200"},
		{"does not close", "B63 B100 B101 B103", sloppy, "the server to end the connection: true"},
		{"answers what it must not", "B64 B66 B100", sloppy, "at most 1 answers"},
		{"other last status", "B105", sloppy, "want last status [400]"},
		{"closes where another answer is due", "B105", func(c net.Conn) { say(c, 200, "") }, "answers 200"},
		{"says nothing", "B01 B25 B57", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "got no answer; want first status"},
		{"hangs up", "B25 B57", func(net.Conn) {}, "got no answer, then the end"},
		{"HTTP/0.9", "B25 B45", func(c net.Conn) { eachHead(c, func(string) { io.WriteString(c, "hello") }) }, "no HTTP/1 response"},
		{"tears its answer", "B25", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 404 X\r\nContent-Length: 9\r\n\r\nhello") }, "ended inside an answer"},
		{"answers twice", "B25", func(c net.Conn) { eachHead(c, func(string) { say(c, 404, ""); say(c, 404, "") }) }, "at most 1 answers"},
		{"shows secrets", "B32", func(c net.Conn) { eachHead(c, func(head string) { say(c, 405, head) }) }, `"SECRET" must not be in an answer`},
		{"reads once", "B25", func(c net.Conn) {
			var buf [64 << 10]byte
			n, _ := c.Read(buf[:])
			if strings.HasSuffix(string(buf[:n]), "\r\n\r\n") {
				say(c, 404, "")
			} else {
				say(c, 400, "")
			}
		}, "want first status"},
		{"differs by cut", "B28", func(c net.Conn) {
			var buf [64 << 10]byte
			if n, _ := c.Read(buf[:]); n < 20 {
				say(c, 501, "")
			} else {
				say(c, 405, "")
			}
		}, "want the same answers as in one write: 405"},
		{"waits for the body", "B115", func(c net.Conn) {
			eachHead(c, func(string) { time.AfterFunc(1100*time.Millisecond, func() { say(c, 405, "") }) })
		}, "want an answer within a second"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			only := strings.Fields(tt.cases)
			opts := Options{Parallel: 256, Quiet: 100 * time.Millisecond, EndWithin: 300 * time.Millisecond, Only: only}
			if strings.HasPrefix(tt.want, "got no answer;") {
				opts.AnswerWithin = opts.EndWithin // every way of sending waits for it
			}
			failed := map[string]bool{}
			for _, f := range Run(t.Context(), serve(t, tt.play), opts) {
				failed[f.Case] = true
				if tt.want == "" || !strings.Contains(f.String(), tt.want) {
					t.Errorf("unexpected: %s", f)
				}
			}
			for _, id := range only {
				if !failed[id] && tt.want != "" {
					t.Errorf("%s passes", id)
				}
			}
		})
	}
}

// TestTarget shows that answers for a target that must not be served are found
// also where the number of answers is right.
func TestTarget(t *testing.T) {
	addr := serve(t, func(c net.Conn) {
		eachHead(c, func(head string) {
			_, target, _ := strings.Cut(head[strings.LastIndex(head, "\n")+1:], " ")
			fmt.Fprintf(c, "HTTP/1.1 404 X\r\nX-Target: %s\r\nContent-Length: 0\r\n\r\n", strings.Fields(target + " -")[0])
			if strings.Contains(head, "/smuggled") {
				c.Close()
			}
		})
	})
	opts := Options{EndWithin: 300 * time.Millisecond, Only: []string{"B107"}}
	if failures := Run(t.Context(), addr, opts); len(failures) > 0 {
		t.Fatalf("without targets there should be nothing to see: %v", failures)
	}
	opts.Target = func(a Answer) string { return "/smuggled" }
	failures := Run(t.Context(), addr, opts)
	if len(failures) != 1 || !strings.Contains(failures[0].String(), "/smuggled must not be served") {
		t.Errorf("got %v, want one failure for /smuggled", failures)
	}
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	failures := Run(t.Context(), l.Addr().String(), Options{Only: []string{"B25"}})
	if len(failures) != 1 || failures[0].More == 0 || !strings.Contains(failures[0].Got, "refused") {
		t.Errorf("got %v, want one failure for all ways: connection refused", failures)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if failures := Run(ctx, serve(t, sloppy), Options{Only: []string{"B25"}}); len(failures) == 0 {
		t.Error("a run that was cancelled has no failure")
	}
}

func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.ID] || c.ID == "" || len(c.Input) == 0 || c.Source == "" {
			t.Errorf("case %q: twice, or incomplete", c.ID)
		}
		seen[c.ID] = true
		for _, e := range c.all() {
			if len(e.Status) == 0 || e.Min < 1 || e.Max < e.Min {
				t.Errorf("case %s: %+v", c.ID, e)
			}
		}
	}
	if len(seen) < 80 {
		t.Errorf("%d cases", len(seen))
	}
	for id, want := range map[string][]bool{"B104": {false, true, false}, "B28": {false}, "B45": nil} {
		i := slices.IndexFunc(Cases(), func(c Case) bool { return c.ID == id })
		if got := Cases()[i].heads(); !slices.Equal(got, want) {
			t.Errorf("%s: HEAD requests %v, want %v", id, got, want)
		}
	}
}
