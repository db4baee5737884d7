package auth

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// BenchmarkVerify is what a worker does for a token, BenchmarkKnown what the loop
// does for one that was verified before.
func BenchmarkVerify(b *testing.B) {
	k := keys()
	for _, tc := range []struct {
		alg    string
		key    any
		public any
	}{{"RS256", k.rsa, public(k.rsa)}, {"ES256", k.p256, public(k.p256)}, {"EdDSA", k.ed, public(k.ed)}} {
		b.Run(tc.alg, func(b *testing.B) {
			v := verifierOf(b, pemOf(b, tc.public), nil)
			token := sign(b, jwt.GetSigningMethod(tc.alg), tc.key, nil, good(nil))
			for b.Loop() {
				if _, refusal := v.verify(token); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}

func BenchmarkKnown(b *testing.B) {
	v := verifierOf(b, pemOf(b, public(keys().rsa)), nil)
	token := sign(b, jwt.SigningMethodRS256, keys().rsa, nil, good(nil))
	if _, refusal := v.verify(token); refusal != nil {
		b.Fatal(refusal)
	}
	for b.Loop() {
		if v.known([]byte(token)) == nil {
			b.Fatal("forgotten")
		}
	}
}
