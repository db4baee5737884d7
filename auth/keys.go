package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// keysBytesMax bounds a file or an answer with keys: a hundred RSA keys with
	// their certificates.
	keysBytesMax = 1 << 20
	// keysMax bounds the keys of one issuer; those in use have two or three.
	keysMax = 100
	// triesMax bounds the keys that a token without a key id is tried with: each
	// costs a signature check.
	triesMax = 8
	// rsaBitsMin and rsaBitsMax bound RSA keys: below they can be broken (RFC
	// 7518 3.3), above a check takes milliseconds.
	rsaBitsMin, rsaBitsMax = 2048, 8192
)

// keySet is the keys of an issuer, read from one place. Fixed.
type keySet struct {
	find jwt.Keyfunc // by the header of a token
	n    int
}

// keyfunc returns the keys that may have signed a token, of those that fit its
// algorithm: an RSA key is never tried as anything else (RFC 8725 2.1).
func (s *keySet) keyfunc(token *jwt.Token) (any, error) {
	found, err := s.find(token)
	if errors.Is(err, jwkset.ErrKeyNotFound) {
		return nil, errUnknownKey
	}
	if err != nil {
		return nil, errAlgorithm
	}
	several, ok := found.(jwt.VerificationKeySet)
	if !ok {
		several.Keys = []jwt.VerificationKey{found}
	}
	alg := token.Method.Alg()
	several.Keys = slices.DeleteFunc(several.Keys, func(k jwt.VerificationKey) bool { return !fits(alg, k) })
	if n := len(several.Keys); n == 0 || n > triesMax {
		return nil, errUnknownKey
	}
	return several, nil
}

// fits reports whether a key is one of an algorithm (RFC 7518 3.1, RFC 8037 3.1).
func fits(alg string, key any) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return alg[0] == 'R' || alg[0] == 'P'
	case *ecdsa.PublicKey:
		return alg == "ES256" && k.Curve == elliptic.P256() ||
			alg == "ES384" && k.Curve == elliptic.P384() ||
			alg == "ES512" && k.Curve == elliptic.P521()
	case ed25519.PublicKey:
		return alg == "EdDSA"
	case []byte:
		return len(k) >= secretBytesMin(alg)
	}
	return false
}

// secretBytesMin is the least length of a secret (RFC 7518 3.2); that of other
// algorithms is more than any has.
func secretBytesMin(alg string) int {
	switch alg {
	case "HS256":
		return 32
	case "HS384":
		return 48
	case "HS512":
		return 64
	}
	return keysBytesMax + 1
}

// parseKeys reads the text of a file: PEM, a JWK or a JWK Set; for secret, a JWK
// of type oct or the secret itself.
func parseKeys(text []byte, secret bool) (*keySet, error) {
	trimmed := bytes.TrimSpace(text)
	switch {
	case bytes.HasPrefix(trimmed, []byte("{")):
		set, skipped, err := parseJWKs(trimmed, secret)
		if err == nil && len(skipped) > 0 {
			err = skipped[0] // an operator can mend a file
		}
		return set, err
	case bytes.Contains(trimmed, []byte("-----BEGIN ")):
		if secret {
			return nil, errors.New("a public key is no secret for HS algorithms")
		}
		return parsePEM(trimmed)
	case secret:
		key := bytes.TrimRight(text, "\r\n")
		return fixedKeys(key), checkKey(key)
	}
	return nil, errors.New("holds neither PEM nor a JSON Web Key")
}

// fixedKeys is the set of keys without ids: each fits every token.
func fixedKeys(keys ...jwt.VerificationKey) *keySet {
	return &keySet{n: len(keys), find: func(*jwt.Token) (any, error) {
		return jwt.VerificationKeySet{Keys: slices.Clone(keys)}, nil
	}}
}

// parsePEM reads public keys and certificates (RFC 7468 13 and 5).
func parsePEM(text []byte) (*keySet, error) {
	var keys []jwt.VerificationKey
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := parseBlock(block)
		if err == nil {
			err = checkKey(key)
		}
		if err != nil {
			return nil, err
		}
		if keys = append(keys, key); len(keys) > triesMax {
			return nil, fmt.Errorf("more than %d keys without ids; use a JWK Set", triesMax)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("holds no PEM block that is whole")
	}
	return fixedKeys(keys...), nil
}

func parseBlock(block *pem.Block) (any, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return cert.PublicKey, nil
	}
	return nil, fmt.Errorf("a PEM block of type %q; public keys and certificates are read", block.Type)
}

// parseJWKs reads a JWK or a JWK Set (RFC 7517). Keys that are not for
// signatures are passed over; skipped says why others are not used. It is an
// error if none is left.
func parseJWKs(text []byte, secret bool) (set *keySet, skipped []error, err error) {
	var doc struct {
		jwkset.JWKSMarshal
		jwkset.JWKMarshal
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, nil, errors.New("not a JSON Web Key or a set of them")
	}
	keys := doc.Keys
	if doc.KTY != "" {
		keys = append(keys, doc.JWKMarshal)
	}
	if len(keys) > keysMax {
		return nil, nil, fmt.Errorf("more than %d keys", keysMax)
	}
	store := jwkset.NewMemoryStorage()
	n, named := 0, false
	for i, k := range keys {
		if !forSignatures(&k) {
			continue
		}
		jwk, err := parseJWK(&k, secret)
		if err != nil {
			skipped = append(skipped, fmt.Errorf("key %d: %w", i, err))
			continue
		}
		n++
		named = named || k.KID != ""
		_ = store.KeyWrite(context.Background(), jwk) // memory can't fail
	}
	switch {
	case n == 0 && len(skipped) > 0:
		return nil, skipped, fmt.Errorf("holds no key to check signatures with: %w", skipped[0])
	case n == 0:
		return nil, nil, errors.New("holds no key to check signatures with")
	}
	kf, err := keyfunc.New(keyfunc.Options{Storage: store})
	if err != nil {
		return nil, skipped, err
	}
	find := kf.Keyfunc
	if !named {
		find = func(token *jwt.Token) (any, error) { return kf.Keyfunc(withoutKeyID(token)) }
	}
	return &keySet{find: find, n: n}, skipped, nil
}

// withoutKeyID is a token that may be signed by any key.
func withoutKeyID(token *jwt.Token) *jwt.Token {
	header := maps.Clone(token.Header)
	delete(header, jwkset.HeaderKID)
	return &jwt.Token{Header: header, Method: token.Method}
}

// forSignatures reports whether a key is not reserved for something else (RFC
// 7517 4.2, 4.3).
func forSignatures(k *jwkset.JWKMarshal) bool {
	return (k.USE == "" || k.USE == jwkset.UseSig) &&
		(len(k.KEYOPS) == 0 || slices.Contains(k.KEYOPS, jwkset.KeyOpsVerify) || slices.Contains(k.KEYOPS, jwkset.KeyOpsSign))
}

// parseJWK reads one key. Of it are taken the public values alone, or the secret:
// certificates in it would have to be checked, and an x5u fetched.
func parseJWK(k *jwkset.JWKMarshal, secret bool) (jwkset.JWK, error) {
	public := jwkset.JWKMarshal{KTY: k.KTY, CRV: k.CRV, X: k.X, Y: k.Y, N: k.N, E: k.E, ALG: k.ALG, KID: k.KID}
	if secret {
		public = jwkset.JWKMarshal{KTY: k.KTY, K: k.K, ALG: k.ALG, KID: k.KID}
	}
	switch {
	case secret != (k.KTY == jwkset.KtyOct):
		return jwkset.JWK{}, fmt.Errorf("of type %q is not for the guard's algorithms", k.KTY)
	case k.ALG.IANAProhibited():
		return jwkset.JWK{}, errors.New("its alg is not one for signatures")
	}
	jwk, err := jwkset.NewJWKFromMarshal(public, jwkset.JWKMarshalOptions{Private: secret}, jwkset.JWKValidateOptions{})
	if err != nil {
		return jwk, errors.New("it is not valid or of a kind that is not known")
	}
	return jwk, checkKey(jwk.Key())
}

// checkKey refuses keys that are too weak, or that nothing here can use.
func checkKey(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < rsaBitsMin || bits > rsaBitsMax {
			return fmt.Errorf("an RSA key of %d bits; %d to %d are accepted", bits, rsaBitsMin, rsaBitsMax)
		}
		return nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() || k.Curve == elliptic.P521() {
			return nil
		}
		return errors.New("an elliptic curve that no algorithm has")
	case ed25519.PublicKey:
		return nil
	case []byte:
		if len(k) < secretBytesMin("HS256") {
			return errors.New("a secret shorter than 32 bytes")
		}
		return nil
	}
	return fmt.Errorf("a key that no algorithm has: %T", key)
}
