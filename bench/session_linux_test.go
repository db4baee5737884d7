package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tailcast/internal/testkit"
)

// keyPair is a server's certificate for localhost, and what its clients trust.
func keyPair(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	file, key := testkit.Certificate(t, t.TempDir(), "server", "localhost", time.Hour)
	cert, err := tls.LoadX509KeyPair(file, key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return cert, roots
}

// serveTLS is serve by TLS. Clients are to use the configuration.
func serveTLS(t *testing.T, version uint16, play func(c net.Conn, lastID string)) (url string, config *tls.Config) {
	t.Helper()
	cert, roots := keyPair(t)
	l := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{cert}})
	addr := serveOn(t, l, func(c net.Conn, _, lastID string) {
		send(c, testHead)
		play(c, lastID)
	})
	return "https://" + addr + "/events", &tls.Config{
		RootCAs: roots, ServerName: "localhost", MinVersion: version, MaxVersion: version,
	}
}

func versions(t *testing.T, test func(t *testing.T, version uint16)) {
	t.Helper()
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(v), func(t *testing.T) { test(t, v) })
	}
}

// TestTLS: every record is read, and a fault is seen, whatever the records and
// segments it comes in.
func TestTLS(t *testing.T) {
	versions(t, func(t *testing.T, version uint16) {
		const records = 300
		long := chunk(": " + strings.Repeat("x", 3*recordMax) + "\n")
		url, config := serveTLS(t, version, func(c net.Conn, _ string) {
			for i := range int64(records) {
				text := chunk(record(0, i))
				if i == records-1 {
					text = chunk(record(0, i+1)) // a gap, at the end
				}
				cut := int(i) % len(text)
				send(c, text[:cut])
				if i%100 == 0 {
					text = text[cut:] + long
					cut = 0
				}
				send(c, text[cut:])
			}
			idle(c)
		})
		cl := newClient(t, Config{URL: url, TLS: config, Conns: 50, Opening: 16})
		cl.mustOpen(t)
		if err := cl.RunTotal(t.Context(), records, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		n := cl.Result().Counts
		if n.Events != 50*records || n.Comments != 150 || n.Gaps != 50 || n.Faults() != 50 {
			t.Errorf("%+v; %q", n, cl.tally.faults)
		}
		if n.Handshakes != 50 || n.Resumed != 0 || n.Bytes < 150*3*recordMax {
			t.Errorf("%+v", n)
		}
	})
}

// TestTLSCut cuts connections at any byte of a record, or of a handshake; they
// come back with the session they had.
func TestTLSCut(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	versions(t, func(t *testing.T, version uint16) {
		url, config := serveTLS(t, version, resumes(0))
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		cl := newClient(t, Config{URL: url, TLS: config, Conns: 20, Reconnecting: 10, ReconnectEvery: 5 * time.Millisecond})
		cl.mustOpen(t)
		cl.runUntilTrue(t, "all records", func() bool { return cl.haveAll(0) && cl.tally.counts.Resumed > 20 })
		if n := cl.Result().Counts; n.Faults() != 0 || n.ConnectFails != 0 || n.Handshakes < n.Opened {
			t.Errorf("%+v; %q", n, cl.tally.faults)
		}
	})
}

// TestTLSKinds: slow streams are slow by bytes, and stalled ones read nothing
// behind the handshake.
func TestTLSKinds(t *testing.T) {
	url, config := serveTLS(t, tls.VersionTLS13, func(c net.Conn, _ string) {
		for seq := int64(0); send(c, chunk(record(0, seq))); seq++ {
			continue
		}
	})
	const rate, enough = 20_000, 10_000
	cl := newClient(t, Config{URL: url, TLS: config, Conns: 2, Slow: 1, SlowRate: rate, Stalled: 1})
	began := time.Now()
	cl.mustOpen(t)
	shaken := cl.tally.counts.Bytes
	cl.runUntilTrue(t, "bytes", func() bool { return cl.tally.counts.Bytes >= shaken+enough })
	n, g := cl.Result().Counts, cl.Result().Groups
	if most := int64(time.Since(began).Seconds() * rate); n.Bytes-shaken > most || n.Faults() != 0 {
		t.Errorf("%+v; want at most %d bytes", n, most)
	}
	if g[Slow].EventsMax < 10 || g[Stalled].EventsMax != 0 {
		t.Errorf("%+v", g)
	}
}

// TestTLSFails: a handshake that comes to nothing is a connection that failed,
// with the reason.
func TestTLSFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cert, roots := keyPair(t)
	trusting := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	sealed := func(t *testing.T, config *tls.Config) string {
		config.Certificates = []tls.Certificate{cert}
		return serveOn(t, tls.NewListener(listen(t), config), func(net.Conn, string, string) {})
	}
	raw := func(t *testing.T, text string) string {
		l := listen(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, text)
				c.Close()
			}
		}()
		t.Cleanup(func() { l.Close(); <-done })
		return l.Addr().String()
	}
	for _, tt := range []struct {
		name   string
		addr   func(t *testing.T) string
		config *tls.Config
		want   string
	}{
		{"not trusted", func(t *testing.T) string { return sealed(t, &tls.Config{}) }, nil, "certificate"},
		{"another host", func(t *testing.T) string { return sealed(t, &tls.Config{}) }, &tls.Config{RootCAs: roots}, "127.0.0.1"},
		{"another version", func(t *testing.T) string { return sealed(t, &tls.Config{MaxVersion: tls.VersionTLS12}) }, &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13}, "protocol version"},
		{"no TLS", func(t *testing.T) string { return raw(t, "HTTP/1.1 400 Bad Request\r\n\r\n") }, trusting, "does not look like a TLS handshake"},
		{"closed", func(t *testing.T) string { return raw(t, "") }, trusting, "EOF"},
		{"closed in the middle", func(t *testing.T) string { return raw(t, "\x16\x03\x03\x00\x7a\x02\x00\x00") }, trusting, "EOF"},
		{"no version", func(t *testing.T) string { return sealed(t, &tls.Config{}) }, &tls.Config{MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS12}, "TLS handshake"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cl := newClient(t, Config{URL: "https://" + tt.addr(t) + "/", TLS: tt.config, Conns: 3})
			err := cl.Open(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if n := cl.Result().Counts; n.ConnectFails != 3 || n.Opened != 0 || n.Handshakes != 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestTLSHangs: a handshake that never ends is given up with the client.
func TestTLSHangs(t *testing.T) {
	l := listen(t)
	defer l.Close() // what connects is never accepted
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cl, err := New(Config{URL: "https://" + l.Addr().String() + "/", TLS: &tls.Config{}, Conns: 5})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := cl.Open(ctx); err == nil || !strings.Contains(err.Error(), "5 of 5 streams did not open: no response head in time") {
		t.Errorf("error %v", err)
	}
	if err := cl.Close(); err != nil {
		t.Error(err)
	}
}
