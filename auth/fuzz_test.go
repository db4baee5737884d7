package auth

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
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

// FuzzSources: what is taken for a token is one, and was in the request.
func FuzzSources(f *testing.F) {
	s := sources{order: []Source{Authorization, Query, Cookie}, cookie: "sid"}
	f.Add("Bearer a.b.c", "access_token=a", "sid=a")
	f.Add("Basic a", "x=1&access%5ftoken=%41&&=", "sid=; sid=b;sid")
	f.Add("bearer  ", "access_token=a+b", " sid = a ; x")
	f.Fuzz(func(t *testing.T, header, query, cookie string) {
		if strings.ContainsAny(header+cookie, "\x00\r\n") || strings.ContainsAny(query, " #\r\n") || !printable(header+query+cookie) || len(header+query+cookie) > 4000 {
			return
		}
		r := request(t, "GET /events?"+query, "Authorization: "+header, "Cookie: "+cookie)
		token, refusal := s.token(r, nil)
		if (token == nil) == (refusal == nil) && refusal != errTokenChars && refusal != errTokenLong {
			t.Fatalf("%q with %v", token, refusal)
		}
		if refusal != nil {
			return
		}
		values, _ := url.ParseQuery(strings.ReplaceAll(query, "+", "%2B"))
		if !strings.Contains(header, string(token)) && !strings.Contains(cookie, "sid="+string(token)) && !slices.Contains(values["access_token"], string(token)) {
			t.Fatalf("%q is nowhere in %q %q %q", token, header, query, cookie)
		}
	})
}

func printable(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c >= 0x7F {
			return false
		}
	}
	return true
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
