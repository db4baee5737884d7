package auth

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// verifier checks the tokens of one issuer for one audience. Guards that differ
// in roles or sources alone share one, with its keys and its cache. Safe from
// any goroutine.
type verifier struct {
	algorithms []string
	leeway     time.Duration
	keys       *keyring
	claims     *jwt.Validator
	seen       cache
	now        func() time.Time
}

func newVerifier(spec *Spec, keys *keyring, now func() time.Time) *verifier {
	algorithms := spec.Algorithms
	if len(algorithms) == 0 {
		algorithms = publicAlgorithms
	}
	return &verifier{
		algorithms: algorithms, leeway: spec.Leeway, keys: keys, now: now,
		claims: jwt.NewValidator(
			jwt.WithIssuer(spec.Issuer), jwt.WithAudience(spec.Audience...), jwt.WithExpirationRequired(),
			jwt.WithLeeway(spec.Leeway), jwt.WithTimeFunc(now),
		),
	}
}

// known returns a token that was verified before and still is: it has not
// expired, and the issuer's keys are the same.
func (v *verifier) known(token []byte) *Token {
	t := v.seen.get(sha256.Sum256(token))
	if t == nil || t.verified != v.keys.current() || !v.now().Before(v.end(t)) {
		return nil
	}
	return t
}

// end is when a token's streams end.
func (v *verifier) end(t *Token) time.Time { return t.Expires.Add(v.leeway) }

// verify checks a token. It costs a signature check, or a few.
func (v *verifier) verify(token string) (*Token, *Refusal) {
	set := v.keys.current()
	if set == nil {
		return nil, errNoKeys
	}
	claims := &claimSet{}
	_, err := strictParser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if !slices.Contains(v.algorithms, t.Method.Alg()) {
			return nil, errAlgorithm
		}
		header, _, _ := strings.Cut(token, ".")
		if refusal := checkHeader(header); refusal != nil {
			return nil, refusal
		}
		return set.keyfunc(t)
	})
	if err != nil {
		return nil, parseRefusal(err)
	}
	if err := v.claims.Validate(claims); err != nil {
		return nil, claimRefusal(err, claims)
	}
	t, refusal := newToken(claims, set)
	if refusal == nil {
		v.seen.put(sha256.Sum256([]byte(token)), t)
	}
	return t, refusal
}

// strictParser leaves claims to the verifier's validator, and the algorithm to
// the function that finds the key.
var strictParser = jwt.NewParser(jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())

// parseRefusal is what an error of the parser means.
func parseRefusal(err error) *Refusal {
	var own *Refusal
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, jwt.ErrTokenMalformed):
		return errMalformed
	case errors.Is(err, jwt.ErrTokenUnverifiable):
		return errAlgorithm
	}
	return errSignature
}

// claimRefusal is what an error of the validator means.
func claimRefusal(err error, c *claimSet) *Refusal {
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return errExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return errNotYet
	case c.MapClaims["exp"] == nil:
		return errNoExpiry
	case errors.Is(err, jwt.ErrTokenInvalidIssuer), c.MapClaims["iss"] == nil:
		return errIssuer
	case errors.Is(err, jwt.ErrTokenInvalidAudience), errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return errAudience
	}
	return errClaims
}

// hasRoles reports whether the claim at path holds every one of roles: a text of
// words, as scope is (RFC 8693 4.2), or an array of texts.
func hasRoles(t *Token, path, roles []string) bool {
	var has []string
	switch claim := t.lookup(path).(type) {
	case string:
		has = strings.Fields(claim)
	case []any:
		for _, role := range claim {
			if text, ok := role.(string); ok {
				has = append(has, text)
			}
		}
	}
	return !slices.ContainsFunc(roles, func(role string) bool { return !slices.Contains(has, role) })
}
