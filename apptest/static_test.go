package apptest

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// pageFiles writes a directory with files to serve, and some beside it that must not
// be, all of which say secret.
func pageFiles(t testing.TB) (dir string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "www")
	for name, text := range map[string]string{
		"www/index.html": "<title>home</title>", "www/app.js": "let a = 1", "www/style.css": "a {}", "www/logo.svg": "<svg/>",
		"www/data.json": "{}", "www/app.wasm": "\x00asm", "www/notes.txt": "0123456789", "www/a b%.txt": "odd", "www/sub/index.html": "sub", "www/bare/x.txt": "x",
		"www/.env": "secret", "www/.git/config": "secret", "www/sub/.hidden": "secret", "out.txt": "secret", "www-next/x.txt": "secret",
	} {
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"out": "../out.txt", "absolute": filepath.Join(top, "out.txt"), "up": "..", "next": "../www-next", "sub/far": "../../out.txt",
		"inside.js": "app.js", "hidden": ".env", "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// browser is a connection that is kept, over which a test asks one thing after
// the other.
type browser struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

// surf connects, by TLS if cert is not empty.
func surf(t testing.TB, addr, cert string) *browser {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err == nil && cert != "" {
		c = tls.Client(c, testkit.Trusting(t, cert))
	}
	if err == nil {
		err = c.SetDeadline(time.Now().Add(2 * patience))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &browser{t, c, bufio.NewReader(c)}
}

// asks sends one request and reads the answer.
func (b *browser) asks(line string, fields ...string) (*http.Response, string) {
	b.t.Helper()
	b.sends(line, fields...)
	return b.reads(line)
}

func (b *browser) sends(line string, fields ...string) {
	b.t.Helper()
	text := strings.Join(append([]string{line + " HTTP/1.1", "Host: gw.test"}, fields...), "\r\n") + "\r\n\r\n"
	if _, err := io.WriteString(b, text); err != nil {
		b.t.Fatalf("%s: %v", line, err)
	}
}

// reads reads the answer to a request.
func (b *browser) reads(line string) (*http.Response, string) {
	b.t.Helper()
	method, _, _ := strings.Cut(line, " ")
	res, err := http.ReadResponse(b.r, &http.Request{Method: method})
	if err != nil {
		b.t.Fatalf("%s: %v", line, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatalf("%s: %v", line, err)
	}
	return res, string(body)
}

// follows reads the stream that was asked for, to its first event.
func (b *browser) follows(want string) {
	b.t.Helper()
	var s ssetest.Stream
	buf := make([]byte, 4096)
	for {
		n, err := b.r.Read(buf)
		events, ferr := s.Feed(buf[:n])
		switch {
		case len(events) > 0 && events[0].Data == want:
			return
		case len(events) > 0:
			b.t.Fatalf("event %+v, want %q", events[0], want)
		case err != nil || ferr != nil:
			b.t.Fatalf("the stream ended: %v, %v", err, ferr)
		}
	}
}

// TestStaticFiles asks for files, one behind the other on one connection, plain
// and by TLS.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "page")
	s, secure, cert := secured(t, b, "--route", "/events=page", "--static", pageFiles(t), "--access-log", "on")
	const date = "Tue, 14 Nov 2023 22:13:20 GMT"
	const tag = `"6553f100-a"` // and ten bytes
	for addr, cert := range map[string]string{s.Addr: "", secure: cert} {
		c := surf(t, addr, cert)
		for _, tc := range []struct {
			line, field string
			status      int
			header      string // NAME: VALUE
			body        string
		}{
			{"GET /", "", 200, "Content-Type: text/html; charset=utf-8", "<title>home</title>"},
			{"GET /?a=b", "", 200, "Last-Modified: " + date, "<title>home</title>"},
			{"HEAD /", "", 200, "Content-Length: 19", ""},
			{"HEAD /", "", 200, "ETag: \"6553f100-13\"", ""},
			{"GET /app.js?v=2", "", 200, "Content-Type: text/javascript; charset=utf-8", "let a = 1"},
			{"GET /style.css", "", 200, "Content-Type: text/css; charset=utf-8", "a {}"},
			{"GET /logo.svg", "", 200, "Content-Type: image/svg+xml", "<svg/>"},
			{"GET /data.json", "", 200, "Content-Type: application/json", "{}"},
			{"GET /app.wasm", "", 200, "Content-Type: application/wasm", "\x00asm"},
			{"GET /notes.txt", "", 200, "Cache-Control: no-cache", "0123456789"},
			{"GET /notes.txt", "", 200, "X-Content-Type-Options: nosniff", "0123456789"},
			{"GET /a%20b%25.txt", "", 200, "", "odd"},
			{"GET /inside.js", "", 200, "", "let a = 1"},
			{"GET /sub/", "", 200, "", "sub"},
			{"GET /sub", "", 301, "Location: sub/", ""},
			{"GET /index.html", "", 301, "Location: ./", ""},

			{"GET /notes.txt", "Range: bytes=2-4", 206, "Content-Range: bytes 2-4/10", "234"},
			{"GET /notes.txt", "Range: bytes=-3", 206, "Content-Range: bytes 7-9/10", "789"},
			{"HEAD /notes.txt", "Range: bytes=2-4", 206, "Content-Length: 3", ""},
			{"GET /notes.txt", "Range: bytes=20-", 416, "Content-Range: bytes */10", "invalid range: failed to overlap\n"},
			{"GET /notes.txt", "Range: bytes=2-4\r\nIf-Range: " + date, 206, "", "234"},
			{"GET /notes.txt", "Range: bytes=2-4\r\nIf-Range: Mon, 13 Nov 2023 22:13:20 GMT", 200, "", "0123456789"},
			{"GET /notes.txt", "If-Modified-Since: " + date, 304, "", ""},
			{"GET /notes.txt", "If-Modified-Since: Mon, 13 Nov 2023 22:13:20 GMT", 200, "", "0123456789"},
			{"GET /notes.txt", "Range: bytes=2-4\r\nIf-Range: " + tag, 206, "ETag: " + tag, "234"},
			{"GET /notes.txt", "Range: bytes=2-4\r\nIf-Range: W/" + tag, 200, "", "0123456789"}, // RFC 9110 13.1.5
			{"GET /notes.txt", "Range: bytes=2-4\r\nIf-Range: \"x\"", 200, "", "0123456789"},
			{"GET /notes.txt", "If-None-Match: *", 304, "", ""},
			{"GET /notes.txt", "If-None-Match: " + tag, 304, "ETag: " + tag, ""},
			{"GET /notes.txt", "If-None-Match: W/" + tag, 304, "", ""},
			{"GET /notes.txt", "If-None-Match: \"x\", " + tag, 304, "", ""},
			{"HEAD /notes.txt", "If-None-Match: " + tag, 304, "", ""},
			{"GET /notes.txt", "If-None-Match: " + tag + "\r\nIf-Modified-Since: Mon, 13 Nov 2023 22:13:20 GMT", 304, "", ""},
			{"GET /notes.txt", "If-Match: " + tag, 200, "", "0123456789"},
			{"GET /notes.txt", "If-Match: \"x\"", 412, "", ""},
			{"GET /none.txt", "If-None-Match: *", 404, "ETag: ", "404 page not found\n"},
			{"GET /notes.txt", "If-None-Match: \"x\"\r\nIf-Modified-Since: " + date, 200, "", "0123456789"}, // RFC 9110 13.1.3
			{"GET /notes.txt", "If-Unmodified-Since: Mon, 13 Nov 2023 22:13:20 GMT", 412, "", ""},
			{"POST /notes.txt", "Content-Length: 0", 405, "Allow: GET, HEAD", "files are read with GET\n"},
			{"DELETE /notes.txt", "", 405, "Allow: GET, HEAD", "files are read with GET\n"},
		} {
			var fields []string
			if tc.field != "" {
				fields = append(fields, tc.field)
			}
			res, body := c.asks(tc.line, fields...)
			name, value, _ := strings.Cut(tc.header, ": ")
			if res.StatusCode != tc.status || body != tc.body || res.Header.Get(name) != value || res.Close {
				t.Errorf("%s %s: %d %q, %s %q; want %d %q, %q", tc.line, tc.field, res.StatusCode, body, name, res.Header.Get(name), tc.status, tc.body, value)
			}
		}
	}
	for _, line := range []string{"POST /notes.txt", "OPTIONS /notes.txt", "PUT /none.txt"} { // first on their connection
		if res, body := surf(t, s.Addr, "").asks(line); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" || res.Close {
			t.Errorf("%s: %d %q, %v", line, res.StatusCode, body, res.Header)
		}
	}
	wantLog(t, s, "msg=request address=127.0.0.1 method=GET path=/app.js status=200")
	wantLog(t, s, "msg=request address=127.0.0.1 method=GET path=/notes.txt status=416")
	if log := s.Stderr.String(); strings.Contains(log, "v=2") {
		t.Errorf("a query is in the log:\n%s", log)
	}
	wantMetric(t, s, `tailcast_connections_closed_total{reason="static"}`, 2)
}

// TestStaticTraversal: nothing outside of the directory, nothing hidden, and no
// listing, however a path is written.
func TestStaticTraversal(t *testing.T) {
	t.Parallel()
	s := ready(t, started(t, 1, "page"), "--route", "/events=page", "--static", pageFiles(t))
	for _, path := range []string{
		"/../out.txt", "/sub/../../out.txt", "/%2e%2e/out.txt", "/%2E%2E/out.txt", "/.%2e/out.txt", "/sub/%2e%2e/%2e%2e/out.txt",
		"/..%2fout.txt", "/%2e%2e%2fout.txt", "/sub/..%2f..%2fout.txt", "/%252e%252e/out.txt", "/%252e%252e%252fout.txt",
		"/%25252e%25252e/out.txt", `/..\out.txt`, "/..%5cout.txt", "/%2e%2e%5cout.txt", "/sub%5c..%5c..%5cout.txt", "/..%255cout.txt",
		"/%c0%ae%c0%ae/out.txt", "/%e0%80%ae%e0%80%ae/out.txt", "/..;/out.txt", "/...//out.txt", "/....//out.txt", "//out.txt", "/./../out.txt",
		"/..%00/out.txt", "/out.txt%00.html", "/%2e%2e", "/..", "/../www-next/x.txt", "/..%2fwww-next/x.txt",
		"/out", "/absolute", "/up/out.txt", "/up/www/notes.txt", "/next/x.txt", "/sub/far", "/loop",
		"/.env", "/%2eenv", "/%2Eenv", "/.git/config", "/.git/", "/.git", "/sub/.hidden", "/sub/%2ehidden",
		"/bare/", "/bare", "/etc/passwd", "/proc/self/environ", "/notes.txt/", "/notes.txt/x",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			c := surf(t, s.Addr, "")
			res, body := c.asks(method+" "+path, "Connection: close")
			if res.StatusCode < 300 || res.StatusCode >= 500 || strings.Contains(body, "secret") || strings.Contains(body, "root:") || strings.Contains(body, "x.txt") {
				t.Errorf("%s %s: %d %q", method, path, res.StatusCode, body)
			}
			if at := res.Header.Get("Location"); at != "" && (strings.Contains(at, "://") || strings.HasPrefix(at, "//")) {
				t.Errorf("%s %s leads to %s", method, path, at)
			}
			c.Close()
		}
	}
	// A link to a hidden file is the operator's word that it may be seen.
	if res, body := surf(t, s.Addr, "").asks("GET /hidden"); res.StatusCode != http.StatusOK || body != "secret" {
		t.Errorf("a link inside: %d %q", res.StatusCode, body)
	}
}

// TestStaticAndStreams: a page's connection asks for files and for a stream, one
// behind the other, before the first is answered; and streams count where they
// did.
func TestStaticAndStreams(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "page")
	s, secure, cert := secured(t, b, "--route", "/events=page", "--static", pageFiles(t), "--max-conns-per-ip", "6")
	var all []*browser
	for addr, cert := range map[string]string{s.Addr: "", secure: cert} {
		for _, files := range []string{"", "GET /", "GET / | GET /app.js | GET /none | HEAD /notes.txt"} {
			c := surf(t, addr, cert)
			var lines []string
			if files != "" {
				lines = strings.Split(files, " | ")
			}
			var text strings.Builder
			for _, line := range append(lines, "GET /events") {
				fmt.Fprintf(&text, "%s HTTP/1.1\r\nHost: gw.test\r\n\r\n", line)
			}
			if _, err := io.WriteString(c, text.String()); err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				res, body := c.reads(line)
				if found := res.StatusCode == http.StatusOK; found == (line == "GET /none") || strings.HasPrefix(line, "GET") && body == "" {
					t.Errorf("%s: %d %q", line, res.StatusCode, body)
				}
			}
			all = append(all, c)
		}
	}
	testkit.Eventually(t, patience, "6 streams", func() bool { return s.Metric(t, "tailcast_streams") == 6 })
	wantMetric(t, s, "tailcast_connections", 6)
	if more, err := net.Dial("tcp", s.Addr); err == nil {
		if _, err := io.ReadAll(more); err == nil { // a reset, not an end
			t.Error("one more than --max-conns-per-ip is taken")
		}
		more.Close()
	}
	b.produce("page", 0, 1)
	for _, c := range all {
		c.follows(valueOf(0, 0, false))
	}
}
