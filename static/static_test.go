package static

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tailcast/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a running Server. Routes are below /events.
type site struct {
	*Server
	t    *testing.T
	dir  string
	back chan string // what is given back: the first bytes
}

func open(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), back: make(chan string, 1)}
	for name, text := range map[string]string{
		"index.html": "<title>home</title>", "app.js": "let a", "a b.txt": "0123456789", "sub/index.html": "sub", "empty/x": "x",
		"big.txt": strings.Repeat("0123456789", 10),
		".env":    "secret", ".git/config": "secret", "sub/.hidden": "secret", "../out.txt": "secret",
	} {
		path := filepath.Join(s.dir, "www", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	www := filepath.Join(s.dir, "www")
	err := errors.Join(
		os.Symlink("../out.txt", filepath.Join(www, "out")), os.Symlink("/etc", filepath.Join(www, "etc")),
		os.Symlink("app.js", filepath.Join(www, "link.js")), syscall.Mkfifo(filepath.Join(www, "pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	s.Server, err = Open(Config{
		Dir: www, HeadTimeout: time.Second, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Routed: func(_, path string) (bool, error) {
			if strings.Contains(path, "..") {
				return false, errors.New("the path has segments of dots")
			}
			return strings.HasPrefix(path, "/events"), nil
		},
		Answered: func(net.Addr, string, string, int) {},
		Back:     func(c net.Conn, first []byte) { s.back <- string(first); c.Close() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// conn is a client's end of a connection that was handed over.
func (s *site) conn() (net.Conn, *bufio.Reader) {
	s.t.Helper()
	near, far := net.Pipe()
	if !s.Take(far) {
		s.t.Fatal("there is no room")
	}
	s.t.Cleanup(func() { near.Close() })
	if err := near.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	return near, bufio.NewReader(near)
}

func (s *site) ask(c net.Conn, r *bufio.Reader, line string, fields ...string) (*http.Response, string) {
	s.t.Helper()
	method, _, _ := strings.Cut(line, " ")
	if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: gw.test\r\n%s\r\n", line, strings.Join(append(fields, ""), "\r\n")); err != nil {
		s.t.Fatal(err)
	}
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	return res, string(body)
}

// TestFiles asks for one after the other on a kept connection.
func TestFiles(t *testing.T) {
	s := open(t)
	c, r := s.conn()
	for _, tc := range []struct {
		line   string
		field  string
		status int
		want   string // in the body, or the value of a field
	}{
		{"GET /", "", 200, "home"},
		{"HEAD /", "", 200, ""},
		{"GET /app.js?v=2", "", 200, "let a"},
		{"GET /a%20b.txt", "", 200, "0123456789"},
		{"GET /a%20b.txt", "Range: bytes=2-4", 206, "234"},
		{"GET /a%20b.txt", "Range: bytes=20-", 416, ""},
		{"GET /big.txt", "Range: bytes=0-1,98-99", 206, "Content-Range: bytes 98-99/100"},
		{"GET /big.txt", "Range: bytes=0-0" + strings.Repeat(",1-1", rangesMax), 200, "0123456789"},
		{"GET /app.js", "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT", 304, ""},
		{"GET /sub/", "", 200, "sub"},
		{"GET /sub", "", 301, ""},
		{"GET /link.js", "", 200, "let a"},
		{"POST /app.js", "Content-Length: 0", 405, ""},

		{"GET /empty/", "", 404, ""},
		{"GET /nope", "", 404, ""},
		{"GET /.env", "", 404, ""},
		{"GET /%2eenv", "", 404, ""},
		{"GET /.git/config", "", 404, ""},
		{"GET /sub/.hidden", "", 404, ""},
		{"GET /out", "", 404, ""},
		{"GET /etc/passwd", "", 404, ""},
		{"GET /etc/", "", 404, ""},
		{"GET /pipe", "", 404, ""},
		{"GET /../out.txt", "", 400, ""},
		{"GET /sub/../../out.txt", "", 400, ""},
		{"GET /%2e%2e/out.txt", "", 404, ""}, // and what is here decoded is cleaned first
		{"GET /sub/%2e%2e%2f%2e%2e%2fout.txt", "", 404, ""},
		{"GET /%252e%252e/out.txt", "", 404, ""},
		{`GET /..%5cout.txt`, "", 400, ""},
		{`GET /sub%5c%2e%2e%5cout.txt`, "", 404, ""},
		{"GET /app.js%00.txt", "", 404, ""},
	} {
		var fields []string
		if tc.field != "" {
			fields = append(fields, tc.field)
		}
		res, body := s.ask(c, r, tc.line, fields...)
		moved := tc.status == http.StatusNotFound && res.StatusCode == http.StatusMovedPermanently // to nowhere
		if res.StatusCode != tc.status && !moved || !strings.Contains(body, tc.want) || strings.Contains(body, "secret") || strings.Contains(body, "root:") {
			t.Errorf("%s %s: %d %q, want %d %q", tc.line, tc.field, res.StatusCode, body, tc.status, tc.want)
		}
		if res.StatusCode == http.StatusOK && (res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Last-Modified") == "") {
			t.Errorf("%s: %v", tc.line, res.Header)
		}
	}
	res, _ := s.ask(c, r, "GET /app.js")
	if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/javascript") {
		t.Errorf("a script is %q", got)
	}
}

// TestBack: a request for a route goes back, with its body and what is behind it.
// A file that changes is another one to who has its ETag.
func TestChangedFile(t *testing.T) {
	s := open(t)
	c, r := s.conn()
	path := filepath.Join(s.dir, "www", "app.js")
	write := func(text string, changed time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, changed, changed)); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1_700_000_000, 999)
	tags := map[string]bool{}
	for _, tc := range []struct {
		text    string
		changed time.Time
	}{{"let a", old}, {"let ab", old}, {"let a", old.Add(time.Second)}} {
		write(tc.text, tc.changed)
		res, body := s.ask(c, r, "GET /app.js")
		tag := res.Header.Get("Etag")
		if body != tc.text || tag == "" || tags[tag] {
			t.Errorf("%q of %v is answered with %q, ETag %s; those of before: %v", tc.text, tc.changed, body, tag, tags)
		}
		for before := range tags {
			if res, body := s.ask(c, r, "GET /app.js", "If-None-Match: "+before); res.StatusCode != http.StatusOK || body != tc.text {
				t.Errorf("who has %s gets %d %q", before, res.StatusCode, body)
			}
		}
		if res, body := s.ask(c, r, "GET /app.js", "If-None-Match: "+tag); res.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("who has it gets %d %q", res.StatusCode, body)
		}
		tags[tag] = true
	}
}

// The tag is that of nginx, and weak as long as the second that it tells is not
// over for sure.
func TestETag(t *testing.T) {
	changed := time.Unix(1_700_000_000, 0)
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{
		{-time.Hour, `W/"6553f100-400"`},
		{0, `W/"6553f100-400"`},
		{time.Second, `W/"6553f100-400"`},
		{2 * time.Second, `"6553f100-400"`},
		{time.Hour, `"6553f100-400"`},
	} {
		if got := etag(changed, 1024, changed.Add(tc.after)); got != tc.want {
			t.Errorf("%v after the change: %s, want %s", tc.after, got, tc.want)
		}
	}
}

func TestBack(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{
			"stream", "GET /events?a=b HTTP/1.1\r\nhost: gw.test\r\nlast-event-id: v1:\r\nCookie: a\r\nCookie: b\r\n\r\n",
			"GET /events?a=b HTTP/1.1\r\nHost: gw.test\r\nCookie: a\r\nCookie: b\r\nLast-Event-Id: v1:\r\n\r\n",
		},
		{
			"body", "POST /events HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 5\r\n\r\nhelloGET /x HTTP/1.1\r\n",
			"POST /events HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 5\r\n\r\nhelloGET /x HTTP/1.1\r\n",
		},
		{
			"chunks", "POST /events HTTP/1.1\r\nHost: gw.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"POST /events HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 5\r\n\r\nhello",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t)
			c, r := s.conn()
			s.ask(c, r, "GET /")
			if _, err := io.WriteString(c, tc.text); err != nil {
				t.Fatal(err)
			}
			if got := <-s.back; got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if n := len(s.queue.places); n != 0 {
				t.Errorf("%d places are taken", n)
			}
		})
	}
	t.Run("too long", func(t *testing.T) {
		s := open(t)
		c, r := s.conn()
		text := fmt.Sprintf("POST /events HTTP/1.1\r\nHost: gw.test\r\nContent-Length: %d\r\n\r\n%s", 2*bodyMax, strings.Repeat("x", 2*bodyMax))
		go func() { _, _ = io.WriteString(c, text) }() // is refused before all of it is read
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%v, %v", res, err)
		}
	})
}

// TestRoom: there is a bound, and places become free.
func TestRoom(t *testing.T) {
	s := open(t)
	var all []net.Conn
	for range connsMax {
		c, _ := s.conn()
		all = append(all, c)
	}
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if s.Take(far) {
		t.Fatal("one too many is taken")
	}
	all[0].Close()
	testkit.Eventually(t, 20*time.Second, "a free place", func() bool { return s.Take(far) })
}

func TestOpenErrors(t *testing.T) {
	for _, dir := range []string{"nowhere", "static_test.go"} {
		if _, err := Open(Config{Dir: dir}); err == nil || !strings.HasPrefix(err.Error(), "--static: ") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestComputing: clients that don't read what they asked for, or say nothing,
// keep nobody's CPU, and the end of a connection gives it back.
func TestComputing(t *testing.T) {
	s := open(t)
	for range 2 * cap(s.queue.cpus) {
		slow, _ := s.conn()
		if _, err := fmt.Fprint(slow, "GET /big.txt HTTP/1.1\r\nHost: gw.test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		s.conn()
	}
	for range 3 {
		c, r := s.conn()
		for range 3 {
			if res, body := s.ask(c, r, "GET /app.js"); res.StatusCode != http.StatusOK || !strings.HasPrefix(body, "let a") {
				t.Errorf("%d %q", res.StatusCode, body)
			}
		}
		c.Close()
	}
	c, _ := s.conn()
	if _, err := fmt.Fprint(c, "GET /events HTTP/1.1\r\nHost: gw.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-s.back
	testkit.Eventually(t, 20*time.Second, "all CPUs to be free", func() bool { return len(s.queue.cpus) == 0 })
}
