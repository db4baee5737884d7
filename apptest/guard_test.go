package apptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// issuer signs tokens, and publishes its keys at a URL.
type issuer struct {
	t    testing.TB
	url  string
	env  []string                   // of who is to trust its certificate
	keys map[string]*rsa.PrivateKey // by id, those published

	mu    sync.Mutex
	asked int
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{t: t, keys: map[string]*rsa.PrivateKey{}}
	s := httptest.NewServer(i)
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

// newIssuerTLS is an issuer at an https URL where nobody listens but between
// start and stop.
func newIssuerTLS(t *testing.T) (i *issuer, start, stop func()) {
	t.Helper()
	addr := testkit.FreeAddr(t)
	file, key := testkit.Certificate(t, t.TempDir(), "issuer", "localhost", time.Hour)
	cert, err := tls.LoadX509KeyPair(file, key)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	i = &issuer{t: t, url: "https://localhost:" + port, env: []string{"SSL_CERT_FILE=" + file}, keys: map[string]*rsa.PrivateKey{}}
	var s *http.Server
	stop = func() {
		if s != nil {
			_ = s.Close()
		}
	}
	t.Cleanup(stop)
	return i, func() {
		t.Helper()
		l, err := tls.Listen("tcp4", addr, &tls.Config{Certificates: []tls.Certificate{cert}})
		if err != nil {
			t.Fatal(err)
		}
		s = &http.Server{Handler: i, ReadHeaderTimeout: patience}
		go func() { _ = s.Serve(l) }()
	}, stop
}

// askings is how often somebody came for the keys.
func (i *issuer) askings() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// publish makes a key and publishes it instead of those before.
func (i *issuer) publish(kid string) {
	i.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.keys)
	i.keys[kid] = key
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if r.URL.Path != "/.well-known/jwks.json" || len(i.keys) == 0 {
		http.NotFound(w, r)
		return
	}
	b64 := base64.RawURLEncoding.EncodeToString
	var keys []map[string]string
	for kid, key := range i.keys {
		keys = append(keys, map[string]string{
			"kty": "RSA", "kid": kid, "alg": "RS256", "use": "sig",
			"n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
}

// token signs one by the key that is published. It lives for some seconds, and
// up to one more. An empty change removes a claim.
func (i *issuer) token(seconds int64, changes ...string) string {
	i.t.Helper()
	return i.tokenBy("", seconds, changes...)
}

// tokenBy is token with another key id in its header, if kid is not empty.
func (i *issuer) tokenBy(kid string, seconds int64, changes ...string) string {
	i.t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	claims := jwt.MapClaims{
		"iss": i.url, "aud": "streams", "sub": "ada", "scope": "read:events",
		"exp": time.Now().Unix() + seconds + 1, "org": map[string]any{"tenant": "a"},
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		if claims[name] = value; value == "" {
			delete(claims, name)
		}
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	var key *rsa.PrivateKey
	for token.Header["kid"], key = range i.keys {
	}
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// guarding starts a server whose routes need a token of i.
func (i *issuer) guarding(b *broker, topic string, flags ...string) *testkit.Server {
	i.t.Helper()
	file := writeFile(i.t, "tailcast.yaml", fmt.Sprintf(`
guard: {issuer: %q, audience: streams, roles: ["read:events"]}
cors-origins: https://app.test
routes:
  - {path: /events, topic: %[2]s}
  - {path: /tenant, topic: %[2]s, filter: [{key: "${claims.org.tenant}"}]}
  - {path: /own, topic: "%[2]s-${claims.org.tenant}", allow: ["%[2]s-*"]}
  - {path: /open, topic: %[2]s, guard: none}
`, i.url, topic))
	return serveIn(i.t, i.env, b, append([]string{"--config", file}, flags...)...)
}

// challenge is the data of a challenge.
type challenge struct {
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
}

// nextChallenge waits for the challenge of a stream.
func nextChallenge(t testing.TB, c *testkit.Conn) (ch challenge) {
	t.Helper()
	e := c.Next(t, patience)
	if err := json.Unmarshal([]byte(e.Data), &ch); e.Type != "challenge" || err != nil {
		t.Fatalf("%+v, %v; want a challenge", e, err)
	}
	return ch
}

// answer does what a challenge says, with a token, and returns the status and
// the body.
func (ch challenge) answer(t testing.TB, s *testkit.Server, path, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t), ch.Method, "http://"+s.Addr+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range ch.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Origin", "https://app.test")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.Header.Get("Access-Control-Allow-Origin") != "https://app.test" {
		t.Errorf("the answer to a challenge lacks its CORS fields: %v", res.Header)
	}
	return res.StatusCode, string(body)
}

// TestRenewal: a stream is challenged two thirds through the life of its token,
// goes on when a new one is posted, and ends with the token when none is. Nothing
// of a token gets into the log.
func TestRenewal(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "guarded")
	i := newIssuer(t)
	i.publish("k1")
	s := i.guarding(b, "guarded", "--log-level", "debug")
	s.Ready(t, patience)
	first, second := i.token(4), i.token(60)
	begin := time.Now()
	c := open(t, s, "/events?access_token="+first)
	left := open(t, s, "/events?access_token="+first)
	ch := nextChallenge(t, c)
	if after := time.Since(begin); after < 2500*time.Millisecond || after > 5*time.Second {
		t.Errorf("challenged after %v, with a token of 4 to 5 s", after)
	}
	for _, tc := range []struct {
		token string
		want  int
	}{{i.token(60, "sub=bob"), 403}, {second[:len(second)-4], 401}, {second, 204}, {second, 410}} {
		if got, _ := ch.answer(t, s, "/events", tc.token); got != tc.want {
			t.Errorf("status %d, want %d", got, tc.want)
		}
	}
	nextChallenge(t, left)
	if err := left.End(t, patience); err != io.EOF || !strings.HasSuffix(string(left.Raw), "\n\n\r\n0\r\n\r\n") {
		t.Errorf("without an answer: %v, %q", err, left.Raw)
	}
	left.Close()
	b.produce("guarded", 0, 3)
	wantRecords(t, c, 0, 0, 3)
	wantMetric(t, s, "tailcast_renewals_total", 1)
	wantMetric(t, s, `tailcast_connections_closed_total{reason="expired"}`, 1)
	log := s.Stderr.String()
	for _, token := range []string{first, second} {
		for part := range strings.SplitSeq(token, ".") {
			if strings.Contains(log, part) {
				t.Errorf("a token is in the log:\n%s", log)
			}
		}
	}
	if _, nonce, _ := strings.Cut(ch.Headers["x-challenge"], "."); nonce == "" || strings.Contains(log, nonce) {
		t.Errorf("a challenge is in the log:\n%s", log)
	}
}

// TestRenewalAtPeers: the answer may come to any node that knows the one of the
// stream; one that does not sends the client to open its stream anew.
func TestRenewalAtPeers(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "guarded")
	i := newIssuer(t)
	i.publish("k1")
	alone := i.guarding(b, "guarded", "--node", "b")
	knows := i.guarding(b, "guarded", "--node", "a", "--peers", "b=http://"+alone.Addr)
	alone.Ready(t, patience)
	knows.Ready(t, patience)
	first, second := i.token(3), i.token(60)
	ofAlone := open(t, alone, "/events?access_token="+first)
	ofOther := open(t, knows, "/events?access_token="+first)
	ch := nextChallenge(t, ofAlone)
	if !strings.HasPrefix(ch.Headers["x-challenge"], "b.") {
		t.Errorf("challenge %v of node b", ch)
	}
	for _, tc := range []struct {
		token string
		want  int
	}{{i.token(60, "sub=bob"), 403}, {second[:len(second)-4], 401}, {second, 204}, {second, 410}} {
		if got, _ := ch.answer(t, knows, "/events", tc.token); got != tc.want {
			t.Errorf("at the peer: status %d, want %d", got, tc.want)
		}
	}
	code, body := nextChallenge(t, ofOther).answer(t, alone, "/events", second)
	if code != 409 || strings.TrimSpace(body) != `{"renew":"reconnect"}` {
		t.Errorf("at a node without peers: %d %q", code, body)
	}
	if err := ofOther.End(t, patience); err != io.EOF {
		t.Errorf("without an answer: %v", err)
	}
	b.produce("guarded", 0, 2)
	wantRecords(t, ofAlone, 0, 0, 2)
	// What the client does then: it opens the stream anew, with its last id.
	again := open(t, alone, "/events?access_token="+second, "Last-Event-ID: "+ofOther.Stream.Parser.LastEventID())
	wantRecords(t, again, 0, 0, 2)
}

// TestKeyRotation: a token by a new key is taken while the server runs, those by
// the old key are not any more. An issuer that is away at the start ends nothing.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "guarded")
	i := newIssuer(t)
	s := i.guarding(b, "guarded")
	if code, body := readiness(t, s); code != 503 || !strings.Contains(body, "guard: "+i.url) {
		t.Errorf("without keys: %d %q", code, body)
	}
	open(t, s, "/open")
	i.publish("k1")
	s.Ready(t, patience)
	old := i.token(60)
	open(t, s, "/events", "Authorization: Bearer "+old)
	i.publish("k2")
	open(t, s, "/events", "Authorization: Bearer "+i.token(60))
	c := testkit.Open(t, s.Addr, "/events", "Authorization: Bearer "+old)
	if code := c.Head(t, patience).StatusCode; code != 401 {
		t.Errorf("by the old key: %d", code)
	}
}

// TestIssuerAway: the issuer's keys come by HTTPS. It is down when the server
// starts, comes, and goes again: meanwhile clients are sent to come back, and
// tokens by keys that are known are taken all the time. Whoever makes keys up, it
// is asked every 5 s at most.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "guarded")
	i, start, stop := newIssuerTLS(t)
	i.publish("k1")
	s := i.guarding(b, "guarded")
	bearer := func(token string) string { return "Authorization: Bearer " + token }
	comesBack := func(token string) { // 200 and the end, for EventSource gives up on anything else
		t.Helper()
		c := testkit.Open(t, s.Addr, "/events", bearer(token))
		err := c.End(t, patience)
		retry, _ := c.Stream.Parser.Retry()
		if c.Stream.Head.StatusCode != http.StatusOK || err != io.EOF || !c.Stream.Chunks.Done || retry < 5000 || retry > 15000 {
			t.Errorf("without its key a token is answered by %q, %v", c.Raw, err)
		}
	}
	testkit.Eventually(t, patience, "the reason", func() bool {
		code, body := readiness(t, s)
		return code == 503 && strings.Contains(body, "guard: "+i.url) && strings.Contains(body, "connection refused")
	})
	comesBack(i.token(60))

	start()
	s.Ready(t, patience)
	known := i.token(60)
	open(t, s, "/events", bearer(known))

	before, begin := i.askings(), time.Now()
	var crowd sync.WaitGroup
	for n := range 30 {
		token := i.tokenBy(fmt.Sprint("made-up-", n), 60)
		crowd.Go(func() {
			res, err := http.Get("http://" + s.Addr + "/events?access_token=" + token)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized {
				t.Errorf("a key that nobody has: %d", res.StatusCode)
			}
		})
	}
	crowd.Wait()
	if n, most := i.askings()-before, 2+int(time.Since(begin)/(5*time.Second)); n == 0 || n > most {
		t.Errorf("asked %d times in %v, want 1 to %d", n, time.Since(begin), most)
	}

	stop()
	comesBack(i.tokenBy("k2", 60))
	open(t, s, "/events", bearer(known))
	open(t, s, "/events", bearer(i.token(60, "sub=bob")))
	if code, body := readiness(t, s); code != 200 {
		t.Errorf("with keys it is not ready: %s", body)
	}
}

// TestFileOfKeys: a file of keys that is replaced is taken without a restart, and
// one that is broken changes nothing.
func TestFileOfKeys(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "guarded")
	i := newIssuer(t)
	i.publish("k1")
	old := i.token(60)
	keys := func() string {
		res := httptest.NewRecorder()
		i.ServeHTTP(res, httptest.NewRequest(http.MethodGet, "/.well-known/jwks.json", http.NoBody))
		return res.Body.String()
	}
	file := writeFile(t, "keys.json", keys())
	replace := func(text string) {
		t.Helper()
		if err := os.Rename(writeFile(t, "new.json", text), file); err != nil {
			t.Fatal(err)
		}
	}
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", fmt.Sprintf(`
guard: {issuer: %q, audience: streams, keys: %q}
routes: [{path: /events, topic: guarded}]
`, i.url, file)))
	stream := open(t, s, "/events", "Authorization: Bearer "+old)
	replace("{}")
	wantLog(t, s, "a guard's keys are kept as they were")
	open(t, s, "/events", "Authorization: Bearer "+old)
	i.publish("k2")
	replace(keys())
	wantLog(t, s, "a guard's keys read again")
	open(t, s, "/events", "Authorization: Bearer "+i.token(60))
	if code := testkit.Open(t, s.Addr, "/events", "Authorization: Bearer "+old).Head(t, patience).StatusCode; code != 401 {
		t.Errorf("by the old key: %d", code)
	}
	b.produce("guarded", 0, 2) // a stream goes on as long as its token
	wantRecords(t, stream, 0, 0, 2)
}

// TestForgedTokens: none of them opens a stream, and the right one gets what is
// its own.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "guarded", "guarded-a")
	i := newIssuer(t)
	i.publish("k1")
	s := i.guarding(b, "guarded")
	s.Ready(t, patience)
	right := i.token(60)
	parts := strings.Split(right, ".")
	b64 := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	i.mu.Lock()
	public := i.keys["k1"].PublicKey
	i.mu.Unlock()
	signed := func(method jwt.SigningMethod, key any) string {
		token := jwt.NewWithClaims(method, jwt.MapClaims{"iss": i.url, "aud": "streams", "scope": "read:events", "exp": time.Now().Unix() + 60})
		token.Header["kid"] = "k1"
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, target string
		header       string
		status       int
		challenge    string // in WWW-Authenticate
	}{
		{"no token", "/events", "", 401, "Bearer"},
		{"alg none", "/events?access_token=" + b64(`{"alg":"none"}`) + "." + parts[1] + ".", "", 401, "invalid_token"},
		{"the public key as a secret", "/events?access_token=" + signed(jwt.SigningMethodHS256, public.N.Bytes()), "", 401, "invalid_token"},
		{"another kind of key", "/events?access_token=" + signed(jwt.SigningMethodES256, curve), "", 401, "invalid_token"},
		{"another payload", "/events?access_token=" + parts[0] + "." + b64(`{"sub":"root"}`) + "." + parts[2], "", 401, "invalid_token"},
		{"claims twice", "/events?access_token=" + parts[0] + "." + b64(`{"sub":"ada","sub":"root"}`) + "." + parts[2], "", 401, "invalid_token"},
		{"another issuer", "/events?access_token=" + i.token(60, "iss=https://evil.test"), "", 401, "invalid_token"},
		{"another audience", "/events?access_token=" + i.token(60, "aud=others"), "", 401, "invalid_token"},
		{"expired", "/events?access_token=" + i.token(-10), "", 401, "invalid_token"},
		{"no role", "/events?access_token=" + i.token(60, "scope=write"), "", 403, "insufficient_scope"},
		{"no claim for the filter", "/tenant?access_token=" + i.token(60, "org="), "", 403, "insufficient_scope"},
		{"no claim for the topic", "/own?access_token=" + i.token(60, "org="), "", 403, "insufficient_scope"},
		{"a claim that is no object", "/own?access_token=" + i.token(60, "org=b"), "", 403, "insufficient_scope"},
		{"huge", "/events", "Authorization: Bearer " + strings.Repeat("a", 9<<10), 400, "invalid_request"},
		{"twice", "/events?access_token=" + right, "Authorization: Bearer " + right, 400, "invalid_request"},
		{"right, at another route", "/nope?access_token=" + right, "", 404, ""},
	} {
		var header []string
		if tc.header != "" {
			header = []string{tc.header}
		}
		res := testkit.Open(t, s.Addr, tc.target, append(header, "Origin: https://app.test")...).Head(t, patience)
		if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != tc.status || !strings.Contains(got, tc.challenge) || (got != "") != (tc.challenge != "") {
			t.Errorf("%s: %d, WWW-Authenticate %q", tc.name, res.StatusCode, got)
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "https://app.test" {
			t.Errorf("%s: no CORS fields", tc.name)
		}
	}
	c := open(t, s, "/tenant?access_token="+right)
	b.send(
		&kgo.Record{Topic: "guarded", Key: []byte("b"), Value: []byte("not mine")},
		&kgo.Record{Topic: "guarded", Key: []byte("a"), Value: []byte("mine")})
	if e := c.Next(t, patience); e.Data != "mine" {
		t.Errorf("got %+v", e)
	}
	c = open(t, s, "/own?access_token="+right)
	b.send(&kgo.Record{Topic: "guarded-a", Value: []byte("my topic's")})
	if e := c.Next(t, patience); e.Data != "my topic's" {
		t.Errorf("got %+v", e)
	}
}
