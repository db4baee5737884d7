package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"tailcast/http1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keys are the test's own, made once.
var keys = sync.OnceValue(func() (k struct {
	rsa, rsa2, weak        *rsa.PrivateKey
	p256, p384, p521, p224 *ecdsa.PrivateKey
	ed                     ed25519.PrivateKey
},
) {
	for dst, bits := range map[**rsa.PrivateKey]int{&k.rsa: 2048, &k.rsa2: 2048, &k.weak: 1024} {
		var err error
		if *dst, err = rsa.GenerateKey(rand.Reader, bits); err != nil {
			panic(err)
		}
	}
	for dst, curve := range map[**ecdsa.PrivateKey]elliptic.Curve{
		&k.p256: elliptic.P256(), &k.p384: elliptic.P384(), &k.p521: elliptic.P521(), &k.p224: elliptic.P224(),
	} {
		var err error
		if *dst, err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			panic(err)
		}
	}
	_, k.ed, _ = ed25519.GenerateKey(rand.Reader)
	return k
})

func public(key crypto.Signer) crypto.PublicKey { return key.Public() }

// jwk is the JWK of a public key.
func jwk(key crypto.PublicKey, more map[string]any) map[string]any {
	b64 := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	m := map[string]any{}
	switch k := key.(type) {
	case *rsa.PublicKey:
		m["kty"], m["n"], m["e"] = "RSA", b64(k.N.Bytes()), b64(big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PublicKey:
		size := (k.Curve.Params().BitSize + 7) / 8
		raw, err := k.Bytes()
		if err != nil {
			panic(err)
		}
		m["kty"], m["crv"], m["x"], m["y"] = "EC", k.Curve.Params().Name, b64(raw[1:1+size]), b64(raw[1+size:])
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["x"] = "OKP", "Ed25519", b64(k)
	case []byte:
		m["kty"], m["k"] = "oct", b64(k)
	}
	maps.Copy(m, more)
	return m
}

func jwks(all ...map[string]any) string {
	if all == nil {
		all = []map[string]any{}
	}
	text, err := json.Marshal(map[string]any{"keys": all})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func pemOf(t testing.TB, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// write puts text into a file of its own.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// began is the tests' now: tokens are made for it.
var began = time.Unix(1_900_000_000, 0)

type claims = map[string]any

// good are the claims of a token that is right, with changes; nil removes one.
func good(change claims) claims {
	c := claims{
		"iss": "https://issuer.test", "aud": "streams", "sub": "ada", "scope": "read write",
		"exp": began.Unix() + 30,
	}
	for name, v := range change {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	return c
}

// sign makes a token.
func sign(t testing.TB, method jwt.SigningMethod, key any, header claims, payload claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims(payload))
	for name, v := range header {
		if token.Header[name] = v; v == nil {
			delete(token.Header, name)
		}
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// signRaw makes a token of any header and payload text.
func signRaw(t testing.TB, method jwt.SigningMethod, key any, header, payload string) string {
	t.Helper()
	b64 := base64.RawURLEncoding
	text := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(payload))
	sig, err := method.Sign(text, key)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64.EncodeToString(sig)
}

// spec is that of the tests, whose keys are the RSA key in a file.
func spec(t testing.TB) Spec {
	return Spec{
		Issuer: "https://issuer.test", Audience: []string{"streams"}, RolesClaim: []string{"scope"},
		Keys: write(t, pemOf(t, public(keys().rsa))), Leeway: time.Second,
		Sources: []Source{Authorization, Query},
	}
}

type cryptoPublicKey = crypto.PublicKey

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// node returns one that runs until the test ends, at the time began.
func node(t testing.TB, cfg Config, guards func(n *Node)) (*Node, *clock) {
	t.Helper()
	if cfg.Challenge == 0 {
		cfg.Challenge = 30 * time.Second
	}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	n := NewNode(cfg)
	at := &clock{at: began}
	n.now = at.now
	guards(n)
	runUntilEnd(t, n)
	return n, at
}

func guardOf(t testing.TB, n *Node, s Spec, uses ...[]string) *Guard {
	t.Helper()
	g, err := n.Guard(s, uses)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// request parses a request of some header lines.
func request(t testing.TB, line string, fields ...string) *http1.Request {
	t.Helper()
	text := strings.Join(append([]string{line + " HTTP/1.1", "Host: gw.test"}, fields...), "\r\n") + "\r\n\r\n"
	var p http1.Parser
	var r http1.Request
	if _, err := p.Parse([]byte(text), &r); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return &r
}

func reason(r *Refusal) string {
	if r == nil {
		return ""
	}
	return strings.TrimPrefix(r.Reason, "the token ")
}
