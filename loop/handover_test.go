package loop

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailcast/static"
)

// withFiles has a server serve a directory with one file, until the test ends.
func withFiles(t *testing.T, as *setup) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	as.files = func(srv *Server) Files {
		files, err := static.Open(static.Config{
			Dir: dir, HeadTimeout: 5 * time.Second, Routed: srv.Routed, Back: srv.Back, Answered: srv.Answered, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { files.Close(context.Background()) })
		return files
	}
}

// file asks for the file and reads the answer.
func (c *client) file() {
	c.t.Helper()
	c.send(req("GET /a.txt HTTP/1.1"))
	c.answers("a file")
}

func (c *client) answers(want string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(body), want) {
		c.t.Fatalf("%s %q, %v, want %q", res.Status, body, err, want)
	}
}

// TestHandOver: a page's connection asks for files, then for a stream, as
// browsers do, and counts as one all the time.
func TestHandOver(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		s := start(t, func(as *setup) { with(as); withFiles(t, as); as.MaxConnsPerIP = 2 })
		s.open(1)
		for _, cut := range []int{0, 10} {
			c := s.dial()
			c.send(req("GET /events/none HTTP/1.1")) // files know no such path either
			c.answers("not found")
			c.file()
			text := req("GET /a.txt HTTP/1.1") + req("GET /events HTTP/1.1", "Origin: https://app.test")
			c.send(text[:len(text)-cut]) // one behind the other
			c.answers("a file")
			c.send(text[len(text)-cut:])
			if head := c.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") || !strings.Contains(head, "Allow-Origin: https://app.test") {
				t.Fatalf("got %q", head)
			}
			eventually(t, "the stream is open", func() bool { return s.stats().Streams == 1 })
			for i := range 10 {
				s.produce(0, fmt.Sprint("event ", i))
				if i == 0 {
					c.expect("retry")
				}
				c.expect(fmt.Sprint("event ", i))
			}
			if n := s.srv.accepter.count(); n != 1 {
				t.Errorf("%d connections count", n)
			}
			second := s.dial()
			second.file()
			s.isRefused("127.0.0.1")
			second.Close()
			c.Close()
			eventually(t, "nobody counts", func() bool { return s.srv.accepter.count() == 0 && s.srv.accepter.perAddr.len() == 0 })
		}
	})
}

// TestFileMethods: files are read with GET and HEAD, and the loop, which need
// not hand over for it, says so whether there is a file or not.
func TestFileMethods(t *testing.T) {
	const refused = "405 allow=GET,HEAD"
	for _, tt := range []struct{ name, in, want string }{
		{"post", req("POST /a.txt HTTP/1.1", "Content-Length: 3") + "abc" + req("OPTIONS * HTTP/1.1"), refused + " vary=Origin; 204 allow=GET,HEAD,OPTIONS"},
		{"put in chunks", req("PUT /a.txt HTTP/1.1", "Transfer-Encoding: chunked") + "1\r\na\r\n0\r\n\r\n", refused + " vary=Origin"},
		{"delete", req("DELETE /a.txt HTTP/1.1"), refused + " vary=Origin"},
		{"options", req("OPTIONS /a.txt HTTP/1.1"), refused + " vary=Origin"},
		{"preflight", req("OPTIONS /a.txt HTTP/1.1", "Origin: https://app.test", "Access-Control-Request-Method: GET"), refused + " acao=https://app.test vary=Origin"},
		{"unknown method", req("FROB /a.txt HTTP/1.1"), refused + " vary=Origin"},
		{"no such file", req("POST /none HTTP/1.1"), refused + " vary=Origin"},
		{"a route", req("PUT /events HTTP/1.1"), "405 allow=GET,HEAD,OPTIONS vary=Origin"},
		{"connect", "CONNECT gw.test:443 HTTP/1.1\r\nHost: gw.test:443\r\n\r\n", "501 close vary=Origin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.l.srv.site.Files = noRoom{}
			p := r.dial()
			p.send(tt.in)
			raw, _ := p.read()
			if got, err := answers(raw); err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestHandOverToNobody: when there is no room the client is told so.
func TestHandOverToNobody(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		s := start(t, func(as *setup) { with(as); as.files = func(*Server) Files { return noRoom{} } })
		s.open(1)
		c := s.dial()
		c.send(req("GET /a.txt HTTP/1.1"))
		c.answers("too many files")
		eventually(t, "it is closed", func() bool { return s.srv.accepter.count() == 0 })
		s.page("HTTP/1.1", "/events").Close()
	})
}

type noRoom struct{}

func (noRoom) Take(net.Conn) bool { return false }

// TestStopWhileFilesAreRead: connections that come back when nothing is taken
// any more are closed.
func TestStopWhileFilesAreRead(t *testing.T) {
	s := start(t, func(as *setup) { withFiles(t, as); as.Drain = 200 * time.Millisecond })
	s.open(1)
	c := s.dial()
	c.file()
	s.srv.Stop(t.Context())
	s.isStopped = true
	c.send(req("GET /events HTTP/1.1"))
	if got, err := io.ReadAll(c.r); len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
}
