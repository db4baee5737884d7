package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// What a gateway under attack has.
const (
	EventsPath  = "/events"   // the route of honest clients, and of attackers
	GuardedPath = "/guarded"  // a route with a guard
	Node        = "node"      // the name in its challenges
	BalancerIP  = "127.0.0.9" // the one address whose PROXY headers it believes
)

// The ids of the issuer's keys, which everybody may read.
const keyES256, keyRS256 = "es", "rs"

// Site is what a gateway under attack needs beside its broker: an issuer of
// tokens, which runs until Close, and files.
type Site struct {
	// Args are flags of tailcast serve. Those of its listeners are left to the
	// caller: Target wants to know them.
	Args []string

	issuer string
	server *http.Server
	asked  atomic.Int64
}

// NewSite makes a site whose files are in dir and whose events are those of topic.
func NewSite(dir, topic string) (*Site, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("issuer of tokens: %w", err)
	}
	s := &Site{issuer: "http://" + ln.Addr().String()}
	if err := s.write(dir, topic); err != nil {
		_ = ln.Close()
		return nil, err
	}
	keys, err := jwks()
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	s.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		_, _ = w.Write(keys)
	})}
	go func() { _ = s.server.Serve(ln) }() // until Close
	return s, nil
}

// Close ends the issuer.
func (s *Site) Close() error { return s.server.Close() }

// Asked is how often the issuer was asked for its keys.
func (s *Site) Asked() int64 { return s.asked.Load() }

// Target is the gateway when it listens.
func (s *Site) Target(plain, tls string) Target {
	return Target{Plain: plain, TLS: tls, Issuer: s.issuer}
}

// write writes the files, and has Args name them.
func (s *Site) write(dir, topic string) error {
	cert, key, err := certificate()
	if err != nil {
		return err
	}
	files := filepath.Join(dir, "static")
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	config := filepath.Join(dir, "tailcast.yaml")
	for path, text := range map[string]string{
		filepath.Join(dir, "cert.pem"):    cert,
		filepath.Join(dir, "key.pem"):     key,
		filepath.Join(files, "page.html"): strings.Repeat("<p>a page</p>\n", 500),
		config: fmt.Sprintf(configText, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), files,
			BalancerIP, Node, EventsPath, topic, GuardedPath, s.issuer),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	s.Args = []string{"--config", config}
	return nil
}

// configText is the gateway's file. Its memory of events is small, so that who
// asks for old ones makes it ask the broker.
const configText = `tls-cert: %[1]q
tls-key: %[2]q
static: %[3]q
proxy-protocol: optional
proxy-trusted: %[4]s
node: %[5]s
log-bytes: 512KiB
max-event: 64KiB
cors-origins: https://app.test
routes:
  - {path: %[6]s, topic: %[7]q}
  - {path: %[8]s, topic: %[7]q, guard: {issuer: %[9]q, audience: streams}}
  - {path: "/users/{user}", topic: %[7]q, filter: [{key: "{user}"}]}
  - {path: "/topics/{name}", topic: "%[7]s-{name}", allow: ["%[7]s-*"]}
`

// certificate makes one that is signed by itself.
func certificate() (cert, key string, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &secret.PublicKey, secret)
	if err != nil {
		return "", "", err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return "", "", err
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", pkcs8), nil
}

// jwks makes the issuer's keys and returns their public parts (RFC 7517).
// Nobody ever signs by them.
func jwks() ([]byte, error) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := ec.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, err
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return json.Marshal(map[string]any{"keys": []map[string]string{
		{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": keyES256, "x": b64(point[1:33]), "y": b64(point[33:])},
		{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": keyRS256, "n": b64(rs.N.Bytes()), "e": b64(big.NewInt(int64(rs.E)).Bytes())},
	}})
}
