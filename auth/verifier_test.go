package auth

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// verifierOf returns the verifier of a file of keys.
func verifierOf(t testing.TB, text string, change func(*Spec)) *verifier {
	t.Helper()
	s := spec(t)
	s.Keys = write(t, text)
	if change != nil {
		change(&s)
	}
	n := NewNode(Config{})
	n.now = (&clock{at: began}).now
	return guardOf(t, n, s).verifier
}

// Every algorithm with a key of its kind, by PEM and by JWK.
func TestAlgorithms(t *testing.T) {
	k := keys()
	for alg, key := range map[string]any{
		"RS256": k.rsa, "RS384": k.rsa, "RS512": k.rsa, "PS256": k.rsa, "PS384": k.rsa, "PS512": k.rsa,
		"ES256": k.p256, "ES384": k.p384, "ES512": k.p521, "EdDSA": k.ed,
	} {
		pub := key.(interface{ Public() cryptoPublicKey }).Public()
		token := sign(t, jwt.GetSigningMethod(alg), key, claims{"kid": "k1"}, good(nil))
		for name, file := range map[string]string{
			"PEM": pemOf(t, pub), "JWK": jwksOne(jwk(pub, nil)), "JWK with alg": jwksOne(jwk(pub, claims{"alg": alg})),
			"JWK Set": jwks(jwk(pub, claims{"kid": "k1"})),
			"JWK Set with others": jwks(
				jwk(public(k.rsa2), claims{"kid": "k0"}), jwk(pub, claims{"kid": "k1", "use": "sig", "key_ops": []string{"verify"}}),
				jwk(public(k.weak), claims{"kid": "k3", "use": "enc"})),
		} {
			if _, refusal := verifierOf(t, file, nil).verify(token); refusal != nil {
				t.Errorf("%s by %s: %s", alg, name, refusal.Reason)
			}
		}
	}
}

func jwksOne(key map[string]any) string {
	text := jwks(key)
	return strings.TrimSuffix(strings.TrimPrefix(text, `{"keys":[`), `]}`)
}

// What a token is refused for, and what not. The key of all is k.rsa.
func TestVerify(t *testing.T) {
	k := keys()
	rs := func(header, payload claims) string { return sign(t, jwt.SigningMethodRS256, k.rsa, header, payload) }
	raw := func(header, payload string) string { return signRaw(t, jwt.SigningMethodRS256, k.rsa, header, payload) }
	const header = `{"alg":"RS256","typ":"JWT"}`
	payload := func(more string) string {
		return fmt.Sprintf(`{"iss":"https://issuer.test","aud":"streams","sub":"ada","exp":%d%s}`, began.Unix()+30, more)
	}
	whole := rs(nil, good(nil))
	parts := strings.Split(whole, ".")
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims(good(nil))).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	file := pemOf(t, public(k.rsa))
	v := verifierOf(t, file, nil)
	now := began.Unix()
	for _, tc := range []struct{ name, token, want string }{
		{"right", whole, ""},
		{"a kid that no PEM has", rs(claims{"kid": "x"}, good(nil)), ""},
		{"another typ", rs(claims{"typ": "at+jwt"}, good(nil)), ""},

		// Times. The leeway is a second.
		{"expired", rs(nil, good(claims{"exp": now - 1})), "has expired"},
		{"expired within the leeway", rs(nil, good(claims{"exp": now})), ""},
		{"no exp", rs(nil, good(claims{"exp": nil})), "has no exp claim"},
		{"exp is a text", rs(nil, good(claims{"exp": "1900000030"})), "has a claim that is not valid"},
		{"exp is null", raw(header, `{"iss":"https://issuer.test","aud":"streams","exp":null}`), "has no exp claim"},
		{"exp behind all years", raw(header, `{"iss":"https://issuer.test","aud":"streams","exp":1e12}`), "has a claim that is not valid"},
		{"exp before all time", raw(header, `{"iss":"https://issuer.test","aud":"streams","exp":-1e300}`), "has expired"},
		{"not yet", rs(nil, good(claims{"nbf": now + 2})), "is not valid yet"},
		{"not yet, within the leeway", rs(nil, good(claims{"nbf": now + 1})), ""},
		{"nbf is a list", rs(nil, good(claims{"nbf": []int{1}})), "has a claim that is not valid"},
		{"made long ago", rs(nil, good(claims{"iat": now - 1e6})), ""},
		{"made by a clock ahead", rs(nil, good(claims{"iat": now + 10})), ""},
		{"iat is a text", rs(nil, good(claims{"iat": "x"})), "has a claim that is not valid"},

		// Who and for whom.
		{"another issuer", rs(nil, good(claims{"iss": "https://issuer.test/"})), "is from another issuer"},
		{"no issuer", rs(nil, good(claims{"iss": nil})), "is from another issuer"},
		{"the issuer is a list", rs(nil, good(claims{"iss": []string{"https://issuer.test"}})), "has a claim that is not valid"},
		{"another audience", rs(nil, good(claims{"aud": "stream"})), "is for another audience"},
		{"no audience", rs(nil, good(claims{"aud": nil})), "is for another audience"},
		{"one audience of several", rs(nil, good(claims{"aud": []string{"other", "streams"}})), ""},
		{"no audience in a list", rs(nil, good(claims{"aud": []string{}})), "is for another audience"},
		{"an audience that is no text", rs(nil, good(claims{"aud": []any{"streams", 1}})), "has a claim that is not valid"},
		{"no subject", rs(nil, good(claims{"sub": nil})), ""},
		{"the subject is a number", rs(nil, good(claims{"sub": 7})), "has a claim that is not valid"},

		// Algorithms.
		{"alg none", none, "'s algorithm is not accepted"},
		{"alg None", raw(`{"alg":"None"}`, payload("")), "'s algorithm is not accepted"},
		{"no alg", raw(`{"typ":"JWT"}`, payload("")), "'s algorithm is not accepted"},
		{"alg is a list", raw(`{"alg":["RS256"]}`, payload("")), "'s algorithm is not accepted"},
		{"alg of lower case", raw(`{"alg":"rs256"}`, payload("")), "'s algorithm is not accepted"},
		{"the PEM as a secret", sign(t, jwt.SigningMethodHS256, []byte(file), nil, good(nil)), "'s algorithm is not accepted"},
		{"another of RSA", sign(t, jwt.SigningMethodPS512, k.rsa, nil, good(nil)), ""},
		{"says PS, is RS", raw(`{"alg":"PS256"}`, payload("")), "'s signature is not valid"},
		{"says ES, is RS", raw(`{"alg":"ES256"}`, payload("")), "'s key is not known"},
		{"says EdDSA, is RS", raw(`{"alg":"EdDSA"}`, payload("")), "'s key is not known"},

		// Signatures.
		{"another key", sign(t, jwt.SigningMethodRS256, k.rsa2, nil, good(nil)), "'s signature is not valid"},
		{"no signature", parts[0] + "." + parts[1] + ".", "'s signature is not valid"},
		{"a signature cut short", whole[:len(whole)-2], "'s signature is not valid"},
		{"another payload", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(payload(""))) + "." + parts[2], "'s signature is not valid"},
		{"a key of its own in the header", rs(claims{"jwk": jwk(public(k.rsa2), nil), "jku": "http://evil.test/"}, good(nil)), ""},

		// Form.
		{"nothing", "", "is malformed"},
		{"two parts", parts[0] + "." + parts[1], "is malformed"},
		{"four parts", whole + ".x", "is malformed"},
		{"five parts, as encrypted ones have", "a.b.c.d.e", "is malformed"},
		{"padding", parts[0] + "=." + parts[1] + "." + parts[2], "is malformed"},
		{"bits behind the end", "eyJhbGciOiJSUzI1NiJ." + parts[1] + "." + parts[2], "is malformed"},
		{"crit", rs(claims{"crit": []string{"exp"}, "exp": 1}, good(nil)), "'s header has extensions that are not understood"},
		{"crit, empty", rs(claims{"crit": []string{}}, good(nil)), "'s header has extensions that are not understood"},
		{"b64", rs(claims{"b64": false}, good(nil)), "'s header has extensions that are not understood"},
		{"kid is a number", rs(claims{"kid": 7}, good(nil)), "is malformed"},
		{"alg twice", raw(`{"alg":"none","alg":"RS256"}`, payload("")), "is malformed"},
		{"a claim twice", raw(header, payload(`,"sub":"bob"`)), "is malformed"},
		{"a claim twice, escaped", raw(header, payload(`,"s\u0075b":"bob"`)), "is malformed"},
		{"a claim twice, inside", raw(header, payload(`,"a":[{"b":1,"b":1}]`)), "is malformed"},
		{"names of other case are others", raw(header, payload(`,"SUB":"bob"`)), ""},
		{"the payload is null", raw(header, "null"), "has no exp claim"},
		{"the payload is a list", raw(header, "[]"), "is malformed"},
		{"the payload is two", raw(header, payload("")+payload("")), "is malformed"},
		{"the payload is not UTF-8", raw(header, payload(",\"a\":\"\xff\"")), "is malformed"},
		{"nested as deep as may be", raw(header, payload(`,"a":`+strings.Repeat("[", 15)+"1"+strings.Repeat("]", 15))), ""},
		{"nested deeper", raw(header, payload(`,"a":`+strings.Repeat("[", 16)+"1"+strings.Repeat("]", 16))), "is malformed"},
		{"nested garbage", raw(header, payload(`,"a":`+strings.Repeat(`{"a":`, 1200)+"1"+strings.Repeat("}", 1200))), "is malformed"},
	} {
		got, refusal := v.verify(tc.token)
		if got := reason(refusal); got != tc.want && got != "the token"+tc.want {
			t.Errorf("%s: %q, want %q", tc.name, reason(refusal), tc.want)
		}
		if (got == nil) != (refusal != nil) {
			t.Errorf("%s: token %v with %v", tc.name, got, refusal)
		}
	}
}

// A key is used for the algorithms of its kind, and of its alg if it has one.
func TestKeyConfusion(t *testing.T) {
	k := keys()
	secret := []byte(strings.Repeat("a secret of ours", 4))
	hs := func(s *Spec) { s.Algorithms = []string{"HS256", "HS512"} }
	signed := func(alg string, key any, kid string) string {
		return sign(t, jwt.GetSigningMethod(alg), key, claims{"kid": kid}, good(nil))
	}
	set := jwks(jwk(public(k.rsa), claims{"kid": "r", "alg": "RS256"}), jwk(public(k.p384), claims{"kid": "e"}), jwk(public(k.ed), claims{"kid": "d"}))
	for _, tc := range []struct {
		name, file string
		change     func(*Spec)
		token      string
		want       *Refusal
	}{
		{"the key's own alg", set, nil, signed("RS256", k.rsa, "r"), nil},
		{"not the key's alg", set, nil, signed("RS512", k.rsa, "r"), errAlgorithm},
		{"not the curve's alg", set, nil, signed("ES256", k.p256, "e"), errUnknownKey},
		{"the curve's alg", set, nil, signed("ES384", k.p384, "e"), nil},
		{"another key's id", set, nil, signed("EdDSA", k.ed, "r"), errAlgorithm},
		{"an unknown id", set, nil, signed("EdDSA", k.ed, "x"), errUnknownKey},
		{"no id", set, nil, sign(t, jwt.SigningMethodEdDSA, k.ed, nil, good(nil)), nil},
		{"an alg that the guard does not list", set, func(s *Spec) { s.Algorithms = []string{"EdDSA"} }, signed("RS256", k.rsa, "r"), errAlgorithm},
		{"HS unasked", pemOf(t, public(k.rsa)), nil, signed("HS256", secret, ""), errAlgorithm},
		{"HS by a file", string(secret), hs, signed("HS256", secret, ""), nil},
		{"HS by a file with a line end", string(secret[:40]) + "A\n", hs, signed("HS256", append(secret[:40:40], 'A'), ""), nil},
		{"HS by a JWK", jwksOne(jwk(secret, claims{"alg": "HS512"})), hs, signed("HS512", secret, ""), nil},
		{"HS, not the key's alg", jwksOne(jwk(secret, claims{"alg": "HS512"})), hs, signed("HS256", secret, ""), errUnknownKey},
		{"HS, another secret", string(secret), hs, signed("HS256", secret[1:], ""), errSignature},
		{"HS512 with a secret for HS256", string(secret[:32]) + "", hs, signed("HS512", secret[:32], ""), errUnknownKey},
		{"RS where HS is listed", string(secret), hs, signed("RS256", k.rsa, ""), errAlgorithm},
	} {
		if _, refusal := verifierOf(t, tc.file, tc.change).verify(tc.token); refusal != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, refusal, tc.want)
		}
	}
}

func TestRoles(t *testing.T) {
	for _, tc := range []struct {
		claim any
		path  string
		roles string
		want  bool
	}{
		{"read write", "scope", "read", true},
		{"read write", "scope", "write read", true},
		{"read write", "scope", "admin", false},
		{"read write", "scope", "rea", false},
		{"readwrite", "scope", "read", false},
		{[]any{"read", "write"}, "scope", "read write", true},
		{[]any{"read write"}, "scope", "read", false},
		{[]any{1, "read"}, "scope", "read", true},
		{nil, "scope", "", true},
		{nil, "scope", "read", false},
		{7, "scope", "7", false},
		{map[string]any{"roles": []any{"read"}}, "scope.roles", "read", true},
		{map[string]any{"roles": []any{"read"}}, "scope", "roles", false},
		{"read", "scope.roles", "read", false},
	} {
		token := &Token{Claims: claims{"scope": tc.claim}}
		if got := hasRoles(token, strings.Split(tc.path, "."), strings.Fields(tc.roles)); got != tc.want {
			t.Errorf("%v at %s has %q: %v", tc.claim, tc.path, tc.roles, got)
		}
	}
}

// TestKnownTokenExpires: a token that was verified is known without another
// check of its signature until it ends, and leeway behind it, and is refused
// from then on.
func TestKnownTokenExpires(t *testing.T) {
	var g *Guard
	n, at := node(t, Config{}, func(n *Node) { g = guardOf(t, n, spec(t)) })
	token := sign(t, jwt.SigningMethodRS256, keys().rsa, nil, good(nil))
	for _, step := range []struct {
		pass  time.Duration
		want  *Refusal
		known uint64
	}{
		{0, nil, 0}, {29 * time.Second, nil, 1}, {1500 * time.Millisecond, nil, 2}, {500 * time.Millisecond, errExpired, 2},
	} {
		at.pass(step.pass)
		if _, refusal := checked(t, g, token); refusal != step.want || n.Stats().Tokens["known"] != step.known {
			t.Errorf("after %v more: %q, known %d times, want %q and %d", step.pass, reason(refusal), n.Stats().Tokens["known"], reason(step.want), step.known)
		}
	}
}
