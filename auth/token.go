package auth

import (
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Token is a verified token. Fixed, and shared by all that show the same one.
type Token struct {
	Claims   map[string]any // as decoded; numbers are json.Number
	Issuer   string
	Subject  string    // empty if it has none
	Issued   time.Time // zero if it does not say
	Expires  time.Time // as the token says, without leeway
	verified *keySet   // what it was checked with
}

// claimSet reads claims strictly. It is what the jwt package is given to decode
// into, and to validate.
type claimSet struct{ jwt.MapClaims }

// UnmarshalJSON implements json.Unmarshaler.
func (c *claimSet) UnmarshalJSON(text []byte) (err error) {
	c.MapClaims, err = decodeObject(text)
	return err
}

// expiryMax is the end of the year 9999, behind which no claim is a time.
const expiryMax = 253402300799

// newToken takes what streams need from claims that were validated.
func newToken(c *claimSet, set *keySet) (*Token, *Refusal) {
	t := &Token{Claims: c.MapClaims, verified: set}
	var err error
	if t.Issuer, err = c.GetIssuer(); err != nil {
		return nil, errClaims
	}
	if t.Subject, err = c.GetSubject(); err != nil {
		return nil, errClaims
	}
	exp, err := c.GetExpirationTime()
	if err != nil || exp == nil || exp.Unix() < 0 || exp.Unix() > expiryMax {
		return nil, errClaims
	}
	t.Expires = exp.Time
	iat, err := c.GetIssuedAt()
	if err != nil {
		return nil, errClaims
	}
	if iat != nil {
		t.Issued = iat.Time
	}
	return t, nil
}

// lookup returns the claim at a path of names; nil if it is missing.
func (t *Token) lookup(path []string) any {
	var value any = t.Claims
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// checkHeader refuses headers that two readers could understand differently
// (RFC 7515 4: names are distinct; 4.1.11: crit lists what must be understood,
// and nothing is).
func checkHeader(segment string) *Refusal {
	text, err := strictParser.DecodeSegment(segment)
	if err != nil {
		return errMalformed
	}
	header, err := decodeObject(text)
	if err != nil {
		return errMalformed
	}
	if _, ok := header["crit"]; ok {
		return errCritical
	}
	if _, ok := header["b64"]; ok { // RFC 7797: without crit, so that readers differ
		return errCritical
	}
	switch header["kid"].(type) {
	case nil, string:
		return nil
	}
	return errMalformed
}
