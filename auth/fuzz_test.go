package auth

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"tailcast/http1"
)

// FuzzVerify: whatever is shown, a verdict comes, and only what the test signed
// is right.
func FuzzVerify(f *testing.F) {
	v := verifierOf(f, pemOf(f, public(keys().ed)), nil)
	right := sign(f, jwt.SigningMethodEdDSA, keys().ed, nil, good(nil))
	f.Add(right)
	f.Add("e30.e30.")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("eyJhbGciOiJFZERTQSIsImNyaXQiOltdfQ.e30.AA")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		got, refusal := v.verify(token)
		if (got == nil) == (refusal == nil) {
			t.Fatalf("token %v, refusal %v", got, refusal)
		}
		if got != nil && token != right {
			t.Fatalf("%q is right", token)
		}
	})
}

// FuzzPayload signs any header and payload: what is taken has the claims of the
// guard, and reads the same to a plain JSON reader.
func FuzzPayload(f *testing.F) {
	v := verifierOf(f, pemOf(f, public(keys().ed)), nil)
	const header = `{"alg":"EdDSA"}`
	payload, err := json.Marshal(good(nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header, string(payload))
	f.Add(header, `{"iss":"https://issuer.test","aud":["streams"],"exp":1.9000001e9,"nbf":0,"iat":-1}`)
	f.Add(header, `{"a":{"b":1,"b":2}}`)
	f.Add(`{"alg":"EdDSA","kid":"\ud800","crit":null}`, `[[[[]]]]`)
	f.Add(`{"alg":"EdDSA","alg":"none"}`, "null")
	f.Fuzz(func(t *testing.T, header, payload string) {
		token, refusal := v.verify(signRaw(t, jwt.SigningMethodEdDSA, keys().ed, header, payload))
		if refusal != nil {
			return
		}
		var plain map[string]any
		if err := json.Unmarshal([]byte(payload), &plain); err != nil {
			t.Fatal(err)
		}
		audience := plain["aud"]
		list, _ := audience.([]any)
		if plain["iss"] != "https://issuer.test" || audience != "streams" && !slices.Contains(list, "streams") || plain["exp"] == nil {
			t.Fatalf("took %q", payload)
		}
		if sub, _ := plain["sub"].(string); token.Subject != sub {
			t.Fatalf("subject %q of %q", token.Subject, payload)
		}
	})
}

// FuzzSources: what is taken for a token is one, and was in the request, where
// no other reader finds a second.
func FuzzSources(f *testing.F) {
	s := sources{order: []Source{Authorization, Query, Cookie}, cookie: "sid"}
	f.Add("Bearer a.b.c", "", "access_token=a", "sid=a")
	f.Add("Bearer a.b.c", "Basic x", "", "")
	f.Add("Basic a", "", "x=1&access%5ftoken=%41&&=", "sid=; sid=b;sid")
	f.Add("Basic a", "", "access_token=a&access%5Ftoken=b", "")
	f.Add("bearer  ", "", "access_token=a+b", " sid = a ; x")
	f.Fuzz(func(t *testing.T, header, again, query, cookie string) {
		fields := []string{"Authorization: " + header, "Cookie: " + cookie}
		if again != "" {
			fields = append(fields, "Authorization: "+again)
		}
		r, ok := tryRequest("GET", "/events?"+query, fields...)
		if !ok {
			return
		}
		token, refusal := s.token(r, nil)
		if (token == nil) == (refusal == nil) && refusal != errTokenChars && refusal != errTokenLong {
			t.Fatalf("%q with %v", token, refusal)
		}
		if refusal != nil {
			return
		}
		values, _ := url.ParseQuery(strings.NewReplacer("+", "%2B", ";", "%3B").Replace(query)) // it passes over what it can't read
		queried := values["access_token"]
		if checkToken(token) != nil || !strings.Contains(header, string(token)) && !strings.Contains(cookie, "sid="+string(token)) && !slices.Contains(queried, string(token)) {
			t.Fatalf("%q is not in %q %q %q", token, header, query, cookie)
		}
		scheme, _, _ := strings.Cut(strings.Trim(header, " \t"), " ")
		if again != "" || len(queried) > 1 || strings.EqualFold(scheme, "Bearer") && strings.Join(queried, "") != "" {
			t.Fatalf("took %q of %q and %q %q", token, header, again, queried)
		}
	})
}

// tryRequest parses a request of some header lines, if it is one.
func tryRequest(method, target string, fields ...string) (*http1.Request, bool) {
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: gw.test"}, fields...)
	if strings.ContainsAny(strings.Join(lines, ""), "\r\n") {
		return nil, false
	}
	var p http1.Parser
	r := new(http1.Request)
	_, err := p.Parse([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), r)
	return r, err == nil
}

// FuzzAnswer: an answer is taken for the challenge that it is, at its stream's
// path alone, and goes to a peer once, with its token unchanged.
func FuzzAnswer(f *testing.F) {
	var g *Guard
	node(f, Config{Name: "n-1", Peers: map[string]string{"n-2": "http://127.0.0.1:1"}}, func(n *Node) { g = guardOf(f, n, spec(f)) })
	token, refusal := checked(f, g, rs(f, nil))
	if refusal != nil {
		f.Fatal(refusal)
	}
	const right = "{right}" // stands for the challenge that is open
	f.Add(right, "/events", "", "Bearer a.b.c", "")
	f.Add(right, "/other", "", "Bearer a.b.c", "")
	f.Add(right+"=", "/events", "", "Basic x", "access_token=a")
	f.Add("n-2.AAAAAAAAAAAAAAAAAAAAAA", "/events", "", "Bearer a", "access_token=b")
	f.Add("n-2.AAAAAAAAAAAAAAAAAAAAAA", "/events", "1", "Bearer", "")
	f.Add("n-3.AAAAAAAAAAAAAAAAAAAAAA", "/events", "", "", "access_token=a&access_token=b")
	f.Add("n-1.AAAAAAAAAAAAAAAAAAAAAB", "", "", "bearer  a", "")
	f.Fuzz(func(t *testing.T, value, path, forwarded, header, query string) {
		lease := g.Lease(token, []byte("/events"))
		defer lease.Close()
		challenge := lease.Challenge()
		value = strings.ReplaceAll(value, right, challenge)
		fields := []string{"X-Challenge: " + value, "Authorization: " + header}
		if forwarded != "" {
			fields = append(fields, "X-Challenge-Forwarded: "+forwarded)
		}
		r, ok := tryRequest("POST", "/events?"+query, fields...)
		if !ok {
			return
		}
		a, refusal := g.Answer(r, []byte(path))
		ours := strings.Trim(value, " \t") == challenge && path == "/events"
		switch {
		case (a == nil) == (refusal == nil), ours != (a != nil && a.peer == nil):
			t.Fatalf("%q at %q: %+v, %v", value, path, a, refusal)
		case a == nil:
			return
		case a.peer != nil && (forwarded != "" || !strings.HasPrefix(a.value, "n-2.") || a.path != "/events"):
			t.Fatalf("%q goes on as %q to %q", value, a.value, a.path)
		}
		found, refusal := a.Find(r, nil)
		if refusal == nil && (checkToken(found) != nil || !strings.Contains(header+query, string(found))) && !strings.Contains(query, "%") {
			t.Fatalf("%q is not in %q %q", found, header, query)
		}
	})
}

// FuzzChallenge: what is read as a challenge is written the same.
func FuzzChallenge(f *testing.F) {
	f.Add([]byte("node-1.eu.AAAAAAAAAAAAAAAAAAAAAA"))
	f.Add([]byte("n.AAAAAAAAAAAAAAAAAAAAAB"))
	f.Add([]byte("."))
	f.Fuzz(func(t *testing.T, value []byte) {
		name, nonce, ok := parseChallenge(value)
		if ok && !bytes.Equal(value, []byte(challengeValue(name, nonce))) {
			t.Fatalf("%q is read as %q %x", value, name, nonce)
		}
	})
}

// FuzzKeys: no file of keys ends the process, and what is taken has keys.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(jwks(jwk(public(keys().ed), nil), jwk(public(keys().p256), nil))), false)
	f.Add([]byte(pemOf(f, public(keys().rsa))), false)
	f.Add([]byte(`{"kty":"oct","k":"AAAA"}`), true)
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`), false)
	f.Fuzz(func(t *testing.T, text []byte, secret bool) {
		set, err := parseKeys(text, secret)
		if err == nil && (set == nil || set.n == 0) {
			t.Fatalf("%q has no key", text)
		}
	})
}
