package certs

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tailcast/internal/testkit"
)

// dir is a directory of certificates.
type dir struct {
	t    *testing.T
	path string
}

// make writes NAME.pem and NAME.key for a host, valid for d, signed by itself.
func (d dir) make(name, host string, valid time.Duration) Pair {
	d.t.Helper()
	cert, key := testkit.Certificate(d.t, d.path, name, host, valid)
	return Pair{Cert: cert, Key: key}
}

func (d dir) write(name string, text []byte) string {
	d.t.Helper()
	path := filepath.Join(d.path, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// ask makes a handshake with what the store holds, asking for host, and
// returns the server's certificate.
func ask(s *Store, host string, shown ...tls.Certificate) (*x509.Certificate, error) {
	near, far := net.Pipe()
	defer near.Close()
	server := tls.Server(far, s.TLS())
	go func() {
		if server.Handshake() == nil {
			_, _ = server.Write([]byte("x")) // with TLS 1.3 a client hears of a refusal here
		}
		_ = far.Close()
	}()
	c := tls.Client(near, &tls.Config{ServerName: host, InsecureSkipVerify: true, Certificates: shown}) //nolint:gosec // it looks for itself
	if _, err := c.Read(make([]byte, 1)); err != nil {
		return nil, err
	}
	return c.ConnectionState().PeerCertificates[0], nil
}

// shows checks whose certificate is shown to who asks for host.
func shows(t *testing.T, s *Store, host, want string) {
	t.Helper()
	c, err := ask(s, host)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.DNSNames[0]; got != want {
		t.Errorf("%q is shown the certificate of %s, want %s", host, got, want)
	}
}

func TestSeveralHosts(t *testing.T) {
	d := dir{t, t.TempDir()}
	s, err := Open(Config{Pairs: []Pair{
		d.make("a", "a.test", time.Hour), d.make("b", "b.test", 2*time.Hour), d.make("c", "*.c.test", time.Hour),
	}})
	if err != nil {
		t.Fatal(err)
	}
	shows(t, s, "a.test", "a.test")
	shows(t, s, "b.test", "b.test")
	shows(t, s, "x.c.test", "*.c.test")
	shows(t, s, "other.test", "a.test")
	shows(t, s, "", "a.test")
	if left := time.Until(s.Expires()); left > time.Hour || left < 59*time.Minute {
		t.Errorf("the first expires in %v", left)
	}
}

func TestClientCA(t *testing.T) {
	d := dir{t, t.TempDir()}
	ours, theirs := d.make("client", "client.test", time.Hour), d.make("other", "other.test", time.Hour)
	s, err := Open(Config{Pairs: []Pair{d.make("a", "a.test", time.Hour)}, ClientCA: ours.Cert})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(s, "a.test"); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
	if _, err := ask(s, "a.test", load(t, theirs)); err == nil {
		t.Error("taken with another's certificate")
	}
	if _, err := ask(s, "a.test", load(t, ours)); err != nil {
		t.Errorf("with the right certificate: %v", err)
	}
}

func load(t *testing.T, p Pair) tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRenewal: files that change are taken, whole or not at all, and every
// change is said once.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dir{t, t.TempDir()}
		var log testkit.Output
		said := 0 // of it, in the steps before
		p := d.make("a", "old.test", 1000*time.Hour)
		s, err := Open(Config{Pairs: []Pair{p}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		go s.Run(t.Context())
		later := func(step, host, want string) {
			t.Helper()
			time.Sleep(3*lookEvery + time.Second) //nolint:forbidigo // of the synctest bubble: no time passes, and every look that is due is taken
			synctest.Wait()
			if got := s.current.Load().Certificates[0].Leaf.DNSNames[0]; got != host {
				t.Errorf("%s: the certificate is that of %s", step, got)
			}
			got := log.String()[said:]
			said += len(got)
			lines := strings.Count(got, "\n")
			if (want != "" || lines != 0) && (lines != 1 || !strings.Contains(got, want)) {
				t.Errorf("%s: logged %q, want %q once", step, got, want)
			}
		}
		later("unchanged", "old.test", "")
		d.write("a.pem", []byte("no certificate"))
		later("broken", "old.test", "certificates are kept as they were")
		q := d.make("b", "new.test", 1000*time.Hour)
		if err := os.Rename(q.Cert, p.Cert); err != nil {
			t.Fatal(err)
		}
		later("half of a pair", "old.test", "private key does not match public key")
		if err := os.Rename(q.Key, p.Key); err != nil {
			t.Fatal(err)
		}
		later("new", "new.test", "certificates read again")
		if err := os.Remove(p.Cert); err != nil {
			t.Fatal(err)
		}
		later("gone", "new.test", "no such file")
		d.make("a", "third.test", 1000*time.Hour)
		later("there again", "third.test", "certificates read again")
		d.make("a", "fourth.test", time.Minute-time.Hour)
		later("expired", "third.test", "expired on")
	})
}

func TestOpenErrors(t *testing.T) {
	d := dir{t, t.TempDir()}
	good, old := d.make("a", "a.test", time.Hour), d.make("old", "a.test", -time.Minute)
	empty := d.write("empty", nil)
	huge := d.write("huge", make([]byte, fileBytesMax+1))
	for want, cfg := range map[string]Config{
		"--tls-cert: open nowhere":                        {Pairs: []Pair{{"nowhere", good.Key}}},
		"--tls-key: open nowhere":                         {Pairs: []Pair{{good.Cert, "nowhere"}}},
		"--tls-cert: " + huge + " is longer than":         {Pairs: []Pair{{huge, good.Key}}},
		"--tls-cert " + empty:                             {Pairs: []Pair{{empty, good.Key}}},
		"--tls-cert " + old.Cert + ": expired on":         {Pairs: []Pair{old}},
		"--tls-client-ca: open nowhere":                   {Pairs: []Pair{good}, ClientCA: "nowhere"},
		"--tls-client-ca " + empty + ": it holds no cert": {Pairs: []Pair{good}, ClientCA: empty},
	} {
		if _, err := Open(cfg); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
