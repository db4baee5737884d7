//go:build clients

package apptest

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tailcast/internal/testkit"
)

// TestClientsTLSCurl: curl asks for HTTP/2 and gets HTTP/1.1.
func TestClientsTLSCurl(t *testing.T) {
	b := started(t, 1, "sealed")
	_, addr, cert := secured(t, b, "--route", "/events=sealed")
	url := "https://localhost" + addr[strings.LastIndexByte(addr, ':'):] + "/events"
	for _, version := range [][]string{{"--tls-max", "1.2"}, {"--tlsv1.3"}} {
		c := startCurl(t, append(version, "--http2", "--cacert", cert, url)...)
		b.produce("sealed", 0, 1)
		if e := c.next(t); !strings.HasPrefix(e.Data, "0/") {
			t.Errorf("got %+v", e)
		}
	}
}

// openssl is an s_client at work.
type openssl struct {
	*testkit.Process
	in io.Writer
}

// TestClientsTLSOpenSSL: the protocol as another library sees it: versions,
// the certificate, ALPN, new keys while events come, no renegotiation, the end.
func TestClientsTLSOpenSSL(t *testing.T) {
	path := need(t, "openssl", "apt-get install openssl")
	for _, version := range []string{"-tls1_2", "-tls1_3"} {
		t.Run(version, func(t *testing.T) {
			b := started(t, 1, "sealed")
			s, addr, cert := secured(t, b, "--route", "/events=sealed", "--drain-delay", "0s")
			c := startOpenSSL(t, path, "s_client", "-connect", addr, "-servername", "localhost", "-CAfile", cert, "-alpn", "h2,http/1.1", version)
			c.sees(t, `Verify return code: 0 \(ok\)`)
			c.sees(t, `ALPN protocol: http/1.1`)
			fmt.Fprint(c.in, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
			c.sees(t, `id: v1:`)
			for i := range 5 {
				if version == "-tls1_3" {
					fmt.Fprint(c.in, "K\n") // new keys, both ways
					c.sees(t, `(?s)(KEYUPDATE.*){`+strconv.Itoa(i+1)+`}`)
				}
				b.produce("sealed", 0, 1)
				c.sees(t, fmt.Sprintf(`data: 0/%d/`, i))
			}
			s.Signal(t, syscall.SIGTERM)
			c.sees(t, `\r\n0\r\n\r\n`)
			if code := c.Wait(t, patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
	t.Run("renegotiation", func(t *testing.T) {
		b := started(t, 1, "sealed")
		s, addr, cert := secured(t, b, "--route", "/events=sealed")
		c := startOpenSSL(t, path, "s_client", "-connect", addr, "-servername", "localhost", "-CAfile", cert, "-tls1_2")
		c.sees(t, `Verify return code: 0 \(ok\)`)
		fmt.Fprint(c.in, "R\n")
		c.Wait(t, patience)
		wantMetric(t, s, `tailcast_connections_closed_total{reason="tls"}`, 1)
	})
}

func startOpenSSL(t *testing.T, path string, args ...string) *openssl {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { w.Close() })
	return &openssl{testkit.StartWith(t, r, path, args...), w}
}

// sees waits for a part of the output.
func (c *openssl) sees(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	testkit.Eventually(t, patience, pattern, func() bool {
		return re.MatchString(c.Stdout.String() + c.Stderr.String())
	})
}

// TestClientsTLSEventSource cuts the connection of a page's EventSource, over
// TLS: it comes back and misses nothing.
func TestClientsTLSEventSource(t *testing.T) {
	page := origin(t)
	b := started(t, 3, "page")
	_, addr, _ := secured(t, b, "--route", "/events=page", "--cors-origins", page)
	between := startProxy(t, addr)
	p := openTab(t, page+"/?stream=https://"+between.addr+"/events", "ignore-certificate-errors")
	p.until(`opens === 1`)
	l := b.load("page", 3, 200)
	for i := range 4 {
		p.until(fmt.Sprintf(`opens === %d && got.length >= %d`, i+1, 100*(i+1)))
		between.cut(i%2 == 0)
	}
	p.until(`opens === 5`)
	l.end(t)
	p.until(`last === 3`)
	if f := p.judge(); len(f.reasons) > 0 {
		t.Errorf("resyncs %q", f.reasons)
	}
}
