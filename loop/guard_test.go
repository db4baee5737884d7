package loop

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tailcast/auth"
)

// issuer signs the tokens of a test, whose guard stands before its routes.
type issuer struct {
	t     testing.TB
	key   ed25519.PrivateKey
	node  *auth.Node
	guard *auth.Guard
}

// newIssuer returns one whose node is not running. The route uses the claim tenant.
func newIssuer(t testing.TB, cfg auth.Config, change func(*auth.Spec)) *issuer {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := auth.Spec{
		Issuer: "us", Audience: []string{"streams"}, Roles: []string{"read"}, RolesClaim: []string{"scope"}, Keys: path,
		Sources: []auth.Source{auth.Authorization, auth.Query},
	}
	if change != nil {
		change(&spec)
	}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	i := &issuer{t: t, key: key, node: auth.NewNode(cfg)}
	if i.guard, err = i.node.Guard(spec, [][]string{{"tenant"}}); err != nil {
		t.Fatal(err)
	}
	return i
}

// run lets the node check tokens until the test ends.
func (i *issuer) run() *issuer {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); i.node.Run(ctx) }()
	i.t.Cleanup(func() { cancel(); <-done })
	return i
}

// guarded starts a server whose routes i guards.
func (i *issuer) guarded(change func(*setup)) *site {
	s := start(i.t, func(as *setup) {
		as.serving.Guard = i.guard
		if change != nil {
			change(as)
		}
	})
	s.open(1)
	return s
}

// token signs one that is good for some seconds, with changes to its claims.
func (i *issuer) token(seconds int64, changes ...string) string {
	i.t.Helper()
	claims := jwt.MapClaims{
		"iss": "us", "aud": "streams", "sub": "ada", "scope": "read", "tenant": "a",
		"exp": time.Now().Unix() + seconds,
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		if claims[name] = value; value == "" {
			delete(claims, name)
		}
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims).SignedString(i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

func bearer(token string) string { return "Authorization: Bearer " + token }

// Guards answer what they refuse with what RFC 6750 asks for, and with CORS
// fields, and the connection goes on.
func TestGuardAnswers(t *testing.T) {
	i := newIssuer(t, auth.Config{}, nil).run()
	s := i.guarded(nil)
	const origin = "Origin: https://app.test"
	c := s.dial()
	ask := func(line string, fields ...string) (head, body string) {
		c.send(req(line+" HTTP/1.1", fields...))
		head = c.head()
		var n int
		if _, rest, ok := strings.Cut(head, "Content-Length: "); ok && !strings.HasPrefix(line, "HEAD") {
			fmt.Sscan(rest, &n)
		}
		text := make([]byte, n)
		if _, err := io.ReadFull(c.r, text); err != nil {
			t.Fatal(err)
		}
		return head, string(text)
	}
	bad := i.token(60) + "x"
	for _, tc := range []struct {
		name, line string
		fields     []string
		status     string
		challenge  string // the WWW-Authenticate field
		body       string
	}{
		{"no token", "GET /events", nil, "401 Unauthorized", "Bearer", "the stream needs a token"},
		{"no token, HEAD", "HEAD /events", nil, "401 Unauthorized", "Bearer", ""},
		{"another scheme", "GET /events", []string{"Authorization: Basic YTpi"}, "401 Unauthorized", "Bearer", "the stream needs a token"},
		{"a bad token", "GET /events", []string{bearer(bad)}, "401 Unauthorized", `Bearer error="invalid_token", error_description="the token is malformed"`, "the token is malformed"},
		{"a bad token, HEAD", "HEAD /events", []string{bearer(bad)}, "401 Unauthorized", `Bearer error="invalid_token", error_description="the token is malformed"`, ""},
		{"expired", "GET /events?access_token=" + i.token(-5), nil, "401 Unauthorized", `Bearer error="invalid_token", error_description="the token has expired"`, "the token has expired"},
		{"no role", "GET /events?access_token=" + i.token(60, "scope=reader"), nil, "403 Forbidden", `Bearer error="insufficient_scope", error_description="the token lacks a role that the stream needs"`, "the token lacks a role that the stream needs"},
		{"two tokens", "GET /events?access_token=" + bad, []string{bearer(bad)}, "400 Bad Request", `Bearer error="invalid_request", error_description="the request has more than one token"`, "the request has more than one token"},
		{"an unknown path", "GET /nope", nil, "404 Not Found", "", "no stream at this path"},
		{"another method", "PUT /events", nil, "405 Method Not Allowed", "", "a stream is read with GET"},
		{"another POST", "POST /events", []string{"Content-Type: text/plain", "Content-Length: 0"}, "415 Unsupported Media Type", "", "what is posted here is application/x-challenge-response"},
		{"a POST of no type", "POST /events", nil, "415 Unsupported Media Type", "", "what is posted here is application/x-challenge-response"},
		{"a POST of a longer type", "POST /events", []string{"Content-Type: application/x-challenge-responses"}, "415 Unsupported Media Type", "", "what is posted here is application/x-challenge-response"},
		{"no challenge", "POST /events", []string{"Content-Type: application/x-challenge-response"}, "400 Bad Request", "", "the X-Challenge header is not that of a challenge"},
		{"no challenge, another case", "POST /events", []string{"Content-Type: Application/X-Challenge-Response"}, "400 Bad Request", "", "the X-Challenge header is not that of a challenge"},
		{"no challenge, a parameter", "POST /events", []string{"Content-Type: application/x-challenge-response ;charset=utf-8"}, "400 Bad Request", "", "the X-Challenge header is not that of a challenge"},
		{"a preflight", "OPTIONS /events", []string{"Access-Control-Request-Method: POST"}, "204 No Content", "", ""},
	} {
		head, body := ask(tc.line, append(tc.fields, origin)...)
		if !strings.HasPrefix(head, "HTTP/1.1 "+tc.status+"\r\n") || strings.TrimSpace(body) != tc.body {
			t.Errorf("%s: %q %q, want %s", tc.name, head, body, tc.status)
		}
		_, challenge, _ := strings.Cut(head, "\r\nWWW-Authenticate: ")
		if challenge, _, _ = strings.Cut(challenge, "\r\n"); challenge != tc.challenge {
			t.Errorf("%s: WWW-Authenticate %q, want %q", tc.name, challenge, tc.challenge)
		}
		if !strings.Contains(head, "\r\nAccess-Control-Allow-Origin: https://app.test\r\n") || strings.Contains(head, "\r\nConnection: close") {
			t.Errorf("%s: %q", tc.name, head)
		}
		if tc.name == "a preflight" && (!strings.Contains(head, "OPTIONS, POST\r\n") || !strings.Contains(head, ", authorization, cache-control, content-type, x-challenge\r\n")) {
			t.Errorf("%s: %q", tc.name, head)
		}
	}
	s.produce(0, "one")
	c.send(req("GET /events?lastEventId=v1:&access_token="+i.token(60)+" HTTP/1.1", origin))
	if head := c.head(); !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") {
		t.Fatal(head)
	}
	c.expect("retry: ", "data: one")
}

// What a client sends behind a request whose token is being checked is not
// read, and the connection ends with the answer.
func TestGuardPipelined(t *testing.T) {
	i := newIssuer(t, auth.Config{}, nil).run()
	s := i.guarded(nil)
	c := s.dial()
	c.send(req("GET /events HTTP/1.1", bearer(i.token(-5))) + req("GET /nope HTTP/1.1"))
	if head := c.head(); !strings.Contains(head, " 401 ") || !strings.Contains(head, "\r\nConnection: close\r\n") {
		t.Error(head)
	}
	if rest, err := io.ReadAll(c.r); err != nil || string(rest) != "the token has expired\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

// A request waits for its verdict: while it does, others are answered, and its
// client may go away.
func TestGuardWaits(t *testing.T) {
	i := newIssuer(t, auth.Config{}, nil)
	s := i.guarded(nil)
	waiting, leaving, cut := s.dial(), s.dial(), s.dial()
	waiting.send(req("GET /events HTTP/1.1", bearer(i.token(60))))
	leaving.send(req("GET /events HTTP/1.1", bearer(i.token(61))))
	whole := req("GET /events HTTP/1.1", bearer(i.token(62)))
	cut.send(whole[:40])
	cut.send(whole[40:])
	other := s.dial()
	other.send(req("GET /nope HTTP/1.1"))
	if head := other.head(); !strings.Contains(head, " 404 ") {
		t.Error(head)
	}
	leaving.Close()
	s.closed(closePeer, 1)
	i.run()
	for _, c := range []*client{waiting, cut} {
		if head := c.head(); !strings.Contains(head, " 200 ") {
			t.Error(head)
		}
		c.expect("retry: ")
	}
}

// When there is no verdict in time the client is sent to come back, by a stream
// that ends: EventSource would give up on anything else.
func TestGuardTooLate(t *testing.T) {
	i := newIssuer(t, auth.Config{}, nil) // that never checks
	s := i.guarded(func(as *setup) { as.waits.guard = 100 * time.Millisecond })
	c := s.get("/events", bearer(i.token(60)))
	c.expect("retry: ")
	if _, err := c.block(); err != io.EOF {
		t.Errorf("%v, want the last chunk", err)
	}
	c = s.dial()
	c.send(req("HEAD /events HTTP/1.1", bearer(i.token(61))))
	if head := c.head(); !strings.Contains(head, " 200 ") {
		t.Error(head)
	}
	if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
		t.Errorf("behind the head of a HEAD: %q, %v", rest, err)
	}
}

// A stream ends with its token, cleanly, and is challenged before: a third of
// the token's life, which began with the stream where it does not say.
func TestTokenExpires(t *testing.T) {
	i := newIssuer(t, auth.Config{Name: "n", Challenge: 30 * time.Second}, nil).run()
	s := i.guarded(nil)
	begin := time.Now()
	c := s.get("/events", bearer(i.token(3)))
	c.expect("retry: ", "event: challenge\ndata: {\"method\":\"POST\"")
	if after := time.Since(begin); after < time.Second || after > 2800*time.Millisecond {
		t.Errorf("challenged after %v of 3 s", after)
	}
	c.expect("retry: ")
	if _, err := c.block(); err != io.EOF {
		t.Errorf("%v, want the last chunk", err)
	}
	if after := time.Since(begin); after < 1900*time.Millisecond {
		t.Errorf("ended after %v", after)
	}
	c.Close()
	s.closed(closeExpired, 1)
}

var challengePattern = regexp.MustCompile(`^event: challenge\ndata: (\{"method":"POST","headers":\{"content-type":"application/x-challenge-response","x-challenge":"(n\.[A-Za-z0-9_-]{22})"\}\})\n\n$`)

// challenged reads the next challenge of a stream.
func (c *client) challenged() string {
	c.t.Helper()
	got, err := c.block()
	m := challengePattern.FindStringSubmatch(got)
	if m == nil {
		c.t.Fatalf("%q, %v; want a challenge", got, err)
	}
	return m[2]
}

// renew posts an answer and returns the status.
func (s *site) renew(path, challenge string, fields ...string) string {
	s.t.Helper()
	c := s.dial()
	c.send(req("POST "+path+" HTTP/1.1", append(fields, "Content-Type: application/x-challenge-response", "X-Challenge: "+challenge, "Content-Length: 0")...))
	_, status, _ := strings.Cut(c.head(), " ")
	return status[:3]
}

// The right answer gives a stream the time of the new token; a wrong one changes
// nothing, and five are too many.
func TestRenewal(t *testing.T) {
	i := newIssuer(t, auth.Config{Name: "n", Challenge: 30 * time.Second}, nil).run()
	s := i.guarded(nil)
	first := i.token(3)
	c := s.get("/events?access_token=" + first)
	spent := s.get("/events?access_token=" + first)
	c.expect("retry: ")
	spent.expect("retry: ")
	challenge := c.challenged()
	unknown := challenge[:len(challenge)-2] + "AA"
	for _, tc := range []struct{ path, challenge, token, want string }{
		{"/events", challenge, i.token(-1), "401"},
		{"/events", challenge, i.token(60, "sub=bob"), "403"},
		{"/events", challenge, i.token(60, "tenant=b"), "403"},
		{"/events", challenge, i.token(60, "scope="), "403"},
		{"/events", unknown, i.token(60), "410"},
		{"/a%20b", challenge, i.token(60), "410"},
		{"/events", "other" + challenge[1:], i.token(60), "409"},
		{"/events", challenge + "A", i.token(60), "400"},
		{"/events?access_token=" + first, challenge, i.token(6), "204"},
		{"/events", challenge, i.token(60), "410"},
	} {
		if got := s.renew(tc.path, tc.challenge, bearer(tc.token)); got != tc.want {
			t.Errorf("POST %s: %s, want %s", tc.path, got, tc.want)
		}
	}
	challenge = spent.challenged()
	for range 5 {
		if got := s.renew("/events", challenge); got != "401" {
			t.Errorf("without a token: %s", got)
		}
	}
	for range 5 {
		if got := s.renew("/events", challenge, bearer(i.token(60, "sub=bob"))); got != "403" {
			t.Errorf("a wrong answer: %s", got)
		}
	}
	if got := s.renew("/events", challenge, bearer(i.token(60))); got != "410" {
		t.Errorf("after five wrong answers: %s", got)
	}
	spent.expect("retry: ")
	spent.Close()
	s.closed(closeExpired, 1)
	// The other goes on, and is challenged once more.
	s.produce(0, "later")
	c.expect("data: later")
	if got := s.renew("/events?access_token="+i.token(60), c.challenged()); got != "204" {
		t.Errorf("a token in the query: %s", got)
	}
}

// challengeNow asks the client of a stream of a rig for its next token.
func (p *peer) challengeNow() { p.r.l.challenge(p.c, p.c.lease()) }

// A challenge comes between two events, whatever the stream is doing, and takes
// nothing of its id.
func TestChallengeBetweenEvents(t *testing.T) {
	const big = 200 << 10 // more than a socket takes, and less than a segment of the log
	for _, line := range []string{"/events HTTP/1.1", "/events HTTP/1.0", "/claim HTTP/1.1", "/claim HTTP/1.0"} {
		t.Run(line, func(t *testing.T) {
			path, version, _ := strings.Cut(line, " ")
			i := newIssuer(t, auth.Config{Name: "n"}, nil)
			r := newRig(t, func(as *setup) { as.filters, as.serving.Guard, as.waits.guard = filters, i.guard, time.Hour })
			r.sndbuf = 32 << 10
			r.open(1)
			r.put("ada", strings.Repeat("x", 2*big)) // the next segment holds all that follows
			i.run()
			p := r.dial()
			p.send(req("GET " + path + "?access_token=" + i.token(600) + " " + version))
			eventually(t, "a stream", func() bool { r.turn(); return p.c.state == stateStream })
			p.challengeNow() // at rest
			r.put("ada", strings.Repeat("x", big))
			r.put("ada", "small")
			r.settle()
			p.challengeNow() // in the middle of a frame
			r.put("ada", "last")
			var got []string
			eventually(t, "all events", func() bool {
				for _, e := range p.events() {
					if e.Type == "challenge" && e.LastEventID != "" && !strings.HasPrefix(e.LastEventID, "v1:") {
						t.Errorf("a challenge changed the id to %q", e.LastEventID)
					}
					got = append(got, e.Type+" "+e.Data[:min(5, len(e.Data))])
				}
				r.later(lookEvery)
				return len(got) == 5
			})
			want := []string{`challenge {"met`, "message xxxxx", `challenge {"met`, "message small", "message last"}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A stream that waits for its feed keeps the id it came with.
func TestChallengeOfWaitingStream(t *testing.T) {
	i := newIssuer(t, auth.Config{Name: "n"}, nil).run()
	r := newRig(t, func(as *setup) { as.serving.Guard = i.guard })
	p := r.dial()
	p.send(req("GET /events?lastEventId=v1:0-5&access_token=" + i.token(600) + " HTTP/1.1"))
	eventually(t, "a stream", func() bool { r.turn(); return p.c.state == stateStream })
	p.challengeNow()
	events := p.events()
	if len(events) != 1 || events[0].Type != "challenge" || !strings.HasPrefix(events[0].LastEventID, "v1:0-5") {
		t.Errorf("%+v", events)
	}
}

// A token that ends behind all durations makes no deadline of the past.
func TestTokenWithoutEnd(t *testing.T) {
	i := newIssuer(t, auth.Config{Name: "n", Challenge: 30 * time.Second}, nil).run()
	r := newRig(t, func(as *setup) { as.serving.Guard = i.guard })
	r.open(1)
	p := r.dial()
	p.send(req("GET /events HTTP/1.1", bearer(i.token(250_000_000_000-time.Now().Unix()))))
	eventually(t, "a stream", func() bool { r.turn(); return p.c.state == stateStream })
	if due := time.Duration(p.c.due)*wheelTick - r.l.now; due < watchMax-time.Second || due > watchMax+time.Second {
		t.Errorf("looked at in %v", due)
	}
	r.later(watchMax + time.Second)
	if p.c.state != stateStream || len(p.events()) != 0 {
		t.Error("the stream was ended or challenged")
	}
}
