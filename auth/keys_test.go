package auth

import (
	"crypto/x509"
	"encoding/pem"
	"strconv"
	"strings"
	"testing"
)

// Keys that are refused where they are read, and files that hold none.
func TestParseKeysRefuses(t *testing.T) {
	k := keys()
	private, err := x509.MarshalPKCS8PrivateKey(k.ed)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]map[string]any, keysMax+1)
	for i := range many {
		many[i] = jwk(public(k.ed), claims{"kid": strconv.Itoa(i)})
	}
	for _, tc := range []struct {
		name, text string
		secret     bool
		want       string
	}{
		{"nothing", "", false, "holds neither PEM nor a JSON Web Key"},
		{"a text", "hello", false, "holds neither PEM nor a JSON Web Key"},
		{"an RSA key that is weak", pemOf(t, public(k.weak)), false, "an RSA key of 1024 bits; 2048 to 8192 are accepted"},
		{"another curve", pemOf(t, public(k.p224)), false, "an elliptic curve that no algorithm has"},
		{"a private key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), false, `a PEM block of type "PRIVATE KEY"; public keys and certificates are read`},
		{"PEM cut short", pemOf(t, public(k.rsa))[:100], false, "holds no PEM block that is whole"},
		{"PEM of something else", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", false, "asn1"},
		{"PEM of too many keys", strings.Repeat(pemOf(t, public(k.ed)), triesMax+1), false, "more than 8 keys without ids; use a JWK Set"},
		{"a public key for a secret", pemOf(t, public(k.rsa)), true, "a public key is no secret for HS algorithms"},
		{"a short secret", strings.Repeat("a", 31), true, "a secret shorter than 32 bytes"},
		{"a short secret in a JWK", jwksOne(jwk([]byte("short"), nil)), true, "a secret shorter than 32 bytes"},
		{"a public JWK for a secret", jwksOne(jwk(public(k.rsa), nil)), true, `of type "RSA" is not for the guard's algorithms`},
		{"a secret JWK for public keys", jwksOne(jwk([]byte(strings.Repeat("a", 32)), nil)), false, `of type "oct" is not for the guard's algorithms`},
		{"a weak key in a set", jwks(jwk(public(k.rsa), nil), jwk(public(k.weak), nil)), false, "key 1: an RSA key of 1024 bits"},
		{"an empty set", jwks(), false, "holds no key to check signatures with"},
		{"a set for encryption", jwks(jwk(public(k.rsa), claims{"use": "enc"})), false, "holds no key to check signatures with"},
		{"a set for agreement", jwks(jwk(public(k.p256), claims{"key_ops": []string{"deriveKey"}})), false, "holds no key to check signatures with"},
		{"an unknown kind", `{"kty":"XYZ","kid":"a"}`, false, "it is not valid or of a kind that is not known"},
		{"a point off the curve", jwksOne(jwk(public(k.p256), claims{"x": jwk(public(k.p256), nil)["y"]})), false, "it is not valid or of a kind that is not known"},
		{"no number", `{"kty":"RSA","n":"","e":"AQAB"}`, false, "it is not valid or of a kind that is not known"},
		{"not JSON", "{", false, "not a JSON Web Key or a set of them"},
		{"too many keys", jwks(many...), false, "more than 100 keys"},
	} {
		_, err := parseKeys([]byte(tc.text), tc.secret)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	if _, err := openKeys(write(t, strings.Repeat(" ", keysBytesMax+1)), false, nil); err == nil || !strings.Contains(err.Error(), "longer than 1 MiB") {
		t.Errorf("a long file: %v", err)
	}
}

// A private JWK gives its public part, and what points elsewhere is not followed.
func TestParseKeysTakesPublicParts(t *testing.T) {
	key := jwk(public(keys().rsa), claims{"d": "AAAA", "p": "AAAA", "x5u": "http://127.0.0.1:1/", "x5c": []string{"AAAA"}, "x5t": "x"})
	if set, err := parseKeys([]byte(jwksOne(key)), false); err != nil || set.n != 1 {
		t.Error(err)
	}
}
