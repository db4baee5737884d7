package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// The versions of TLS that streams may speak.
const (
	TLS12 = "1.2"
	TLS13 = "1.3"
)

// clientTLS is what clients speak: the version of the specification, and with
// what crypto/tls prefers, as the server does. It is nil without a version;
// trusted is nil for what the system trusts.
func (s *Spec) clientTLS(trusted *x509.CertPool) *tls.Config {
	if s.TLS == "" {
		return nil
	}
	version := uint16(tls.VersionTLS13)
	if s.TLS == TLS12 {
		version = tls.VersionTLS12
	}
	config := &tls.Config{
		MinVersion: version, MaxVersion: version, RootCAs: trusted, NextProtos: []string{"http/1.1"},
		ClientSessionCache: forgetful{},
	}
	if s.Resume {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1) // one for all: a server can't tell
	}
	return config
}

// forgetful is a cache of sessions that has none. With it a client asks for
// tickets, as browsers do, and the server has to make them.
type forgetful struct{}

func (forgetful) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (forgetful) Put(string, *tls.ClientSessionState)        {}

// keyPair makes a key and a certificate for 127.0.0.1 that is signed by itself:
// files of the run, and what trusts them. ECDSA with P-256 is what most sites
// have; a server with RSA pays some 1 ms more a handshake.
func (s *Setup) keyPair() (cert, key string, trusted *x509.CertPool, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", nil, err
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(day * time.Second), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &secret.PublicKey, secret)
	if err != nil {
		return "", "", nil, err
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		return "", "", nil, err
	}
	trusted = x509.NewCertPool()
	trusted.AddCert(c)
	if cert, err = s.pemFile("server.pem", "CERTIFICATE", der); err != nil {
		return "", "", nil, err
	}
	if der, err = x509.MarshalPKCS8PrivateKey(secret); err != nil {
		return "", "", nil, err
	}
	key, err = s.pemFile("server.key", "PRIVATE KEY", der)
	return cert, key, trusted, err
}

func (s *Setup) pemFile(name, kind string, der []byte) (path string, err error) {
	return s.File(name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}
