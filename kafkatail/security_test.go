package kafkatail

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// ca issues certificates for tests.
type ca struct {
	file string // PEM
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newCA(t testing.TB) *ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &ca{key: key, pool: x509.NewCertPool()}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if c.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	c.pool.AddCert(c.cert)
	c.file = write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return c
}

// issue writes a certificate for 127.0.0.1 and its key.
func (c *ca) issue(t testing.TB, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, c.cert, k.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(t, name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: kder})))
}

func (c *ca) server(t testing.TB) *tls.Config {
	t.Helper()
	crt, err := tls.LoadX509KeyPair(c.issue(t, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{crt}, ClientCAs: c.pool}
}

func TestSASL(t *testing.T) {
	for mechanism, auth := range map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: "u", Pass: "right"}.AsMechanism(),
		"SCRAM-SHA-256": scram.Auth{User: "u", Pass: "right"}.AsSha256Mechanism(),
		"SCRAM-SHA-512": scram.Auth{User: "u", Pass: "right"}.AsSha512Mechanism(),
	} {
		t.Run(mechanism, func(t *testing.T) {
			c := newCluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "u", "right"), kfake.SeedTopics(1, "a"))
			password := write(t, "password", "wrong-secret")
			tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.SASL = SASL{mechanism, "u", password} })
			rec := newRecorder(t)
			tail.Tail.Tail("a", rec)

			// A wrong password is said once, with the flags to look at and
			// without a secret (case C28).
			eventually(t, "three refusals", func() (bool, any) {
				c := tail.Status().Counters
				return c.Failed >= 3, c
			})
			if n := len(tail.log.lines("Kafka does not answer")); n != 1 {
				t.Errorf("logged %d times", n)
			}
			for what, text := range map[string]string{"log": tail.log.String(), "status": tail.Status().Error} {
				if !strings.Contains(text, "--kafka-sasl-") {
					t.Errorf("the %s names no flag: %s", what, text)
				}
				if strings.Contains(text, "wrong-secret") {
					t.Errorf("the %s holds the password", what)
				}
			}
			if err := tail.Status().Ready(time.Now()); err == nil {
				t.Error("ready with a wrong password")
			}

			// The right one needs no restart.
			if err := os.WriteFile(password, []byte("right\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			waitOpen(t, rec)
			produce(t, c.client(kgo.SASL(auth)), "a", 0, 3)
			wantOffsets(t, rec, 0, upTo(0, 3))
		})
	}
}

// The password file is gone while Kafka asks for it again: said with the flag.
func TestPasswordFileGone(t *testing.T) {
	c := newCluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "right"))
	password := write(t, "password", "wrong")
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.SASL = SASL{"PLAIN", "u", password} })
	eventually(t, "a refusal", func() (bool, any) { return tail.Status().Error != "", "" })
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing file to be said", func() (bool, any) {
		s := tail.Status().Error
		return strings.HasPrefix(s, "--kafka-sasl-password-file: open "), s
	})
}

func TestTLS(t *testing.T) {
	ca := newCA(t)
	server := ca.server(t)
	server.ClientAuth = tls.RequireAndVerifyClientCert
	c := newCluster(t, kfake.TLS(server), kfake.SeedTopics(1, "a"))
	cert, key := ca.issue(t, "client")
	with := func(o TLS) func(*Config) { return func(c *Config) { c.TLS = o } }

	rec := startTail(t, c.ListenAddrs(), with(TLS{On: true, CA: ca.file, Cert: cert, Key: key})).follow(t, "a")
	crt, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	produce(t, c.client(kgo.DialTLSConfig(&tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{crt}})), "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))

	startTail(t, c.ListenAddrs(), with(TLS{On: true, CA: ca.file, Cert: cert, Key: key, ServerName: "broker"})).follow(t, "a")
	startTail(t, c.ListenAddrs(), with(TLS{On: true, InsecureSkipVerify: true, Cert: cert, Key: key})).follow(t, "a")

	for _, tc := range []struct {
		name string
		tls  TLS
		want string
	}{
		{"unknown authority", TLS{On: true, Cert: cert, Key: key}, "unknown authority"},
		{"other name", TLS{On: true, CA: ca.file, Cert: cert, Key: key, ServerName: "elsewhere"}, "elsewhere"},
		{"no client certificate", TLS{On: true, CA: ca.file}, "certificate"},
		{"no TLS", TLS{}, "TLS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tail := startTail(t, c.ListenAddrs(), with(tc.tls))
			eventually(t, "the reason", func() (bool, any) {
				s := tail.Status().Error
				return strings.Contains(s, tc.want), s
			})
		})
	}
}
