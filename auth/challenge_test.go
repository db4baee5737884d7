package auth

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func rs(t testing.TB, change claims) string {
	return sign(t, jwt.SigningMethodRS256, keys().rsa, nil, good(change))
}

// leased returns a guard, and a stream's lease by a token with changes.
func leased(t testing.TB, cfg Config, change claims, uses ...[]string) (*Node, *clock, *Guard, *Lease) {
	t.Helper()
	var g *Guard
	n, at := node(t, cfg, func(n *Node) { g = guardOf(t, n, spec(t), uses...) })
	token, refusal := checked(t, g, rs(t, change))
	if refusal != nil {
		t.Fatal(refusal)
	}
	return n, at, g, g.Lease(token, []byte("/events"))
}

// When a stream is challenged and when it ends, in seconds since it opened. The
// leeway is a second.
func TestLeaseTimes(t *testing.T) {
	now := began.Unix()
	for _, tc := range []struct {
		name      string
		challenge time.Duration
		claims    claims
		ask, end  float64 // 0: never
	}{
		{"30 s without iat", 30 * time.Second, nil, 20, 31},
		{"30 s with iat", 30 * time.Second, claims{"iat": now}, 20, 31},
		{"an hour", 30 * time.Second, claims{"exp": now + 3600, "iat": now}, 3570, 3601},
		{"an hour without iat", 30 * time.Second, claims{"exp": now + 3600}, 3570, 3601},
		{"the end of an hour", 30 * time.Second, claims{"exp": now + 10, "iat": now - 3590}, -20, 11},
		{"the end of 30 s", 30 * time.Second, claims{"exp": now + 5, "iat": now - 25}, -5, 6},
		{"made in the future", 30 * time.Second, claims{"iat": now + 1000}, 20, 31},
		{"another window", 5 * time.Second, nil, 25, 31},
		{"never", -1, nil, 0, 31},
	} {
		n, at, _, l := leased(t, Config{Challenge: max(tc.challenge, 1)}, tc.claims)
		if tc.challenge < 0 {
			n.cfg.Challenge = 0
			l.ask = time.Time{}
			l.plan(&Token{Expires: l.end})
		}
		in, ask := l.Next()
		if ask != (tc.ask != 0) || ask && in.Seconds() != tc.ask {
			t.Errorf("%s: next in %v, challenge %v", tc.name, in, ask)
		}
		if ask {
			at.pass(max(in, 0))
			l.Challenge()
			in, ask = l.Next()
		}
		if end := at.now().Sub(began) + in; ask || end.Seconds() != tc.end {
			t.Errorf("%s: ends at %v, challenge %v", tc.name, end, ask)
		}
	}
}

// answered posts a token for a challenge and returns the status.
func answered(t testing.TB, g *Guard, path, challenge, token string, fields ...string) int {
	t.Helper()
	r := request(t, "POST "+path, append(fields, "X-Challenge: "+challenge, "Authorization: Bearer "+token)...)
	a, refusal := g.Answer(r, []byte(path))
	if refusal != nil {
		return refusal.Status
	}
	found, refusal := a.Find(r, nil)
	if refusal != nil {
		return refusal.Status
	}
	done := make(chan *Check, 1)
	c, known, refusal := a.Check(found, netip.MustParseAddr("10.0.0.1"), 0, func(c *Check) { done <- c })
	if c != nil {
		select {
		case c = <-done:
			known, refusal = c.Token, c.Refusal
		case <-time.After(20 * time.Second):
			t.Fatal("no verdict")
		}
	}
	switch {
	case refusal != nil:
		return refusal.Status
	case known == nil:
		t.Fatal("neither token nor refusal")
	}
	return 204
}

// The right answer gives the later of both ends; anything else changes nothing.
func TestAnswers(t *testing.T) {
	now := began.Unix()
	tenant := [][]string{{"org", "tenant"}, {"groups"}}
	own := claims{"org": claims{"tenant": "a", "x": 1}, "groups": []any{"g", 1}, "big": int64(1 << 60)}
	with := func(change claims) claims {
		c := claims{"exp": now + 90}
		for _, m := range []claims{own, change} {
			maps.Copy(c, m)
		}
		return c
	}
	for _, tc := range []struct {
		name   string
		change claims
		status int
		end    float64 // seconds after began
	}{
		{"the same, later", nil, 204, 91},
		{"the same, earlier", claims{"exp": now + 25}, 204, 31},
		{"claims the route does not use", claims{"big": 7, "org": claims{"x": 2, "tenant": "a"}, "jti": "x"}, 204, 91},
		{"another subject", claims{"sub": "bob"}, 403, 31},
		{"no subject", claims{"sub": nil}, 403, 31},
		{"another claim", claims{"org": claims{"tenant": "b"}}, 403, 31},
		{"a claim of another type", claims{"groups": []any{"g", "1"}}, 403, 31},
		{"another order", claims{"groups": []any{1, "g"}}, 403, 31},
		{"no claim", claims{"org": nil}, 403, 31},
		{"another issuer", claims{"iss": "x"}, 401, 31},
		{"expired", claims{"exp": now - 100}, 401, 31},
	} {
		n, at, g, l := leased(t, Config{}, own, tenant...)
		at.pass(20 * time.Second)
		challenge := l.Challenge()
		if got := answered(t, g, "/events", challenge, rs(t, with(tc.change))); got != tc.status {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.status)
		}
		if end := l.end.Sub(began).Seconds(); end != tc.end {
			t.Errorf("%s: ends after %v s, want %v", tc.name, end, tc.end)
		}
		if open := len(n.challenges.open); (open == 0) != (tc.status == 204) {
			t.Errorf("%s: %d challenges are open", tc.name, open)
		}
		l.Close()
		if len(n.challenges.open) != 0 {
			t.Errorf("%s: a challenge is open behind the stream", tc.name)
		}
	}
}

// A challenge ends with its right answer, its fifth wrong one, the next, and its
// stream. Its nonce is nowhere but in it.
func TestChallengeEnds(t *testing.T) {
	n, at, g, l := leased(t, Config{Name: "node-1.eu"}, nil)
	next := rs(t, claims{"exp": began.Unix() + 60})
	first := l.Challenge()
	name, nonce, _ := strings.Cut(first, "eu.")
	raw, err := base64.RawURLEncoding.DecodeString(nonce)
	if name != "node-1." || err != nil || len(raw) != nonceBytes {
		t.Fatalf("challenge %q", first)
	}
	if text := fmt.Sprintf("%+v %+v", n.challenges.open, *l); strings.Contains(text, nonce) || strings.Contains(text, fmt.Sprintf("%v", raw)) {
		t.Error("the nonce is kept")
	}
	for i, bad := range []string{"", "x", ".", "node-1.eu.", "node-1.eu." + nonce[1:], first + "A", "node-1.eu." + nonce[:21] + "/", "no de." + nonce, strings.Repeat("n", 65) + "." + nonce, first + "=="} {
		if got := answered(t, g, "/events", bad, next); got != 400 {
			t.Errorf("bad challenge %d: %d", i, got)
		}
	}
	if got := answered(t, g, "/other", first, next); got != 410 {
		t.Errorf("another path: %d", got)
	}
	if other := *g; answered(t, &other, "/events", first, next) != 410 { // of another host
		t.Error("the same path, of another route")
	}
	second := l.Challenge()
	if second == first {
		t.Error("two equal nonces")
	}
	if got := answered(t, g, "/events", first, next); got != 410 {
		t.Errorf("after the next: %d", got)
	}
	for i := range failuresMax {
		if got := answered(t, g, "/events", second, rs(t, claims{"sub": strconv.Itoa(i)})); got != 403 {
			t.Errorf("wrong answer %d: %d", i, got)
		}
	}
	if got := answered(t, g, "/events", second, next); got != 410 {
		t.Errorf("after five wrong answers: %d", got)
	}
	third := l.Challenge()
	at.pass(31 * time.Second)
	if in, ask := l.Next(); in > 0 || ask {
		t.Errorf("at the end: %v, %v", in, ask)
	}
	if got := answered(t, g, "/events", third, next); got != 410 {
		t.Errorf("after the end: %d", got)
	}
}

// peers returns two nodes; requests to them arrive as a loop would hand them on.
// b knows a, and a does not know b.
func peers(t *testing.T) (a, b *Guard, at *clock) {
	t.Helper()
	s := spec(t)
	_, at = node(t, Config{Name: "a"}, func(n *Node) { a = guardOf(t, n, s) })
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "gw.test" || r.Header.Get("Content-Type") != ChallengeType || r.URL.RawQuery != "" {
			t.Errorf("forwarded: %+v", r)
		}
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.WriteHeader(answered(t, a, r.URL.Path, r.Header.Get("X-Challenge"), token, "X-Challenge-Forwarded: "+r.Header.Get("X-Challenge-Forwarded")))
	}))
	t.Cleanup(srv.Close)
	node(t, Config{Name: "b", Peers: map[string]string{"a": srv.URL, "away": "http://" + closed(t)}}, func(n *Node) { b = guardOf(t, n, s) })
	return a, b, at
}

// closed is an address that refuses connections.
func closed(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// An answer at another node is sent on to the one that the challenge names, if it
// is known, with a token that is right, and once.
func TestPeers(t *testing.T) {
	a, b, _ := peers(t)
	token, refusal := checked(t, a, rs(t, nil))
	if refusal != nil {
		t.Fatal(refusal)
	}
	l := a.Lease(token, []byte("/events"))
	challenge := l.Challenge()
	nonce := strings.TrimPrefix(challenge, "a")
	next := rs(t, claims{"exp": began.Unix() + 60})
	for _, tc := range []struct {
		name, challenge, token string
		fields                 []string
		want                   int
	}{
		{"a bad token", challenge, next + "AAAA", nil, 401},
		{"another subject", challenge, rs(t, claims{"sub": "bob"}), nil, 403},
		{"no such node", "c" + nonce, next, nil, 409},
		{"a node that is away", "away" + nonce, next, nil, 503},
		{"sent on already", challenge, next, []string{"X-Challenge-Forwarded: c"}, 410},
		{"right", challenge, next, nil, 204},
		{"right, once more", challenge, next, nil, 410},
	} {
		if got := answered(t, b, "/events", tc.challenge, tc.token, tc.fields...); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	if end := l.end.Sub(began).Seconds(); end != 61 {
		t.Errorf("ends after %v s", end)
	}
	if got := answered(t, a, "/events", "b"+nonce, next); got != 409 {
		t.Errorf("a does not know b: %d", got)
	}
}
