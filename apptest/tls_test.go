package apptest

import (
	"os"
	"strings"
	"testing"
	"time"

	"tailcast/internal/testkit"
)

// secured starts a gateway that listens by TLS too, and returns where, and
// its certificate.
func secured(t testing.TB, b *broker, flags ...string) (s *testkit.Server, addr, cert string) {
	t.Helper()
	addr = testkit.FreeAddr(t)
	cert, key := testkit.Certificate(t, t.TempDir(), "gw", "localhost", time.Hour)
	s = ready(t, b, append([]string{"--listen-tls", addr, "--tls-cert", cert, "--tls-key", key}, flags...)...)
	return s, addr, cert
}

// TestTLS: both listeners serve the same streams, a certificate that is
// replaced is shown to new clients and costs no stream, and a drain ends both
// cleanly.
func TestTLS(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "sealed")
	s, addr, cert := secured(t, b, "--route", "/events=sealed", "--drain-delay", "0s")
	plain := testkit.Open(t, s.Addr, "/events")
	sealed := testkit.OpenTLS(t, addr, cert, "/events")
	both := func(from, to int64) {
		t.Helper()
		b.produce("sealed", 0, int(to-from))
		wantRecords(t, plain, 0, from, to)
		wantRecords(t, sealed, 0, from, to)
	}
	plain.Head(t, patience)
	sealed.Head(t, patience)
	testkit.Eventually(t, patience, "both streams", func() bool { return s.Metric(t, "tailcast_streams") == 2 })
	both(0, 20)

	newCert, newKey := testkit.Certificate(t, t.TempDir(), "new", "localhost", time.Hour)
	for from, to := range map[string]string{newCert: cert, newKey: cert[:len(cert)-len(".pem")] + ".key"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wantLog(t, s, "certificates read again")
	testkit.OpenTLS(t, addr, newCert, "/events").Head(t, patience)
	both(20, 40)

	if code := s.Stop(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, c := range []*testkit.Conn{plain, sealed} {
		if err := c.End(t, patience); err.Error() != "EOF" || !c.Stream.Chunks.Done {
			t.Errorf("it ended by %v, last chunk: %t", err, c.Stream.Chunks.Done)
		}
	}
}

// wantLog waits for a line of the server's log that has text.
func wantLog(t testing.TB, s *testkit.Server, text string) {
	t.Helper()
	testkit.Eventually(t, patience, "log of "+text, func() bool { return strings.Contains(s.Stderr.String(), text) })
}
