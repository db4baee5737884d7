package auth

import (
	"bytes"

	"tailcast/http1"
)

// Source is a place of a request that may hold a token.
type Source string

// The sources. Authorization is the Bearer scheme of RFC 6750 2.1, Query the
// access_token of 2.3, which is what an EventSource can send to another origin.
const (
	Authorization Source = "authorization"
	Query         Source = "query"
	Cookie        Source = "cookie"
)

// tokenBytesMax bounds a token: half of the longest request head. Tokens with
// hundreds of group claims stay below it.
const tokenBytesMax = 8 << 10

// sources are where a guard looks for a token.
type sources struct {
	order  []Source
	cookie string // name
}

// token returns the token of r: that of the first source in the order that has
// one. It aliases r, or scratch, into which a query's escapes are decoded.
//
// Two tokens in one source are refused, and so are one in the Authorization
// header and one in the query (RFC 6750 2: one method a request), since two
// readers may choose differently. A cookie goes along by itself, so it
// counts by the order alone.
func (s *sources) token(r *http1.Request, scratch []byte) ([]byte, *Refusal) {
	var found []byte
	explicit := 0
	for _, from := range s.order {
		token, refusal := s.in(from, r, scratch)
		if refusal != nil {
			return nil, refusal
		}
		if token == nil {
			continue
		}
		if from != Cookie {
			explicit++
		}
		if found == nil {
			found = token
		}
	}
	switch {
	case explicit > 1:
		return nil, errTwoTokens
	case found == nil:
		return nil, errNoToken
	}
	return found, checkToken(found)
}

// in returns the token of one source; nil if it has none.
func (s *sources) in(from Source, r *http1.Request, scratch []byte) ([]byte, *Refusal) {
	switch from {
	case Authorization:
		return bearer(r)
	case Query:
		return queried(r.Query, scratch)
	default:
		return s.fromCookie(r)
	}
}

// bearer reads the Authorization header. Other schemes than Bearer are none of
// ours: a proxy's Basic, say.
func bearer(r *http1.Request) ([]byte, *Refusal) {
	value := r.Value(http1.Authorization)
	scheme, token, _ := bytes.Cut(value, []byte(" "))
	switch {
	case r.Repeated(http1.Authorization):
		return nil, errTwoTokens
	case !bytes.EqualFold(scheme, []byte("Bearer")): // RFC 9110 11.1
		return nil, nil
	case len(bytes.Trim(token, " ")) == 0:
		return nil, errBearer
	}
	return bytes.Trim(token, " "), nil
}

// queried reads the query, whose names may be escaped too.
func queried(query, scratch []byte) ([]byte, *Refusal) {
	count := 0
	for p := http1.NewPairs(query, scratch); p.Next(); {
		if string(p.Name) == accessToken {
			count++
		}
	}
	if count > 1 {
		return nil, errTwoTokens
	}
	for p := http1.NewPairs(query, scratch); count > 0 && p.Next(); {
		if string(p.Name) == accessToken && len(p.Value) > 0 {
			return p.Value, nil // the scratch is not used again
		}
	}
	return nil, nil
}

const accessToken = "access_token"

// fromCookie reads the cookie of the guard's name (RFC 6265 5.4).
func (s *sources) fromCookie(r *http1.Request) ([]byte, *Refusal) {
	var token []byte
	if r.Value(http1.Cookie) == nil {
		return nil, nil
	}
	for name, value := range r.Fields() {
		if !bytes.EqualFold(name, []byte("cookie")) {
			continue
		}
		for len(value) > 0 {
			var pair []byte
			pair, value, _ = bytes.Cut(value, []byte(";"))
			key, text, _ := bytes.Cut(bytes.TrimLeft(pair, " \t"), []byte("="))
			switch {
			case string(key) != s.cookie || len(text) == 0:
			case token != nil:
				return nil, errTwoTokens
			default:
				token = text
			}
		}
	}
	return token, nil
}

// checkToken refuses what can't be a token (RFC 7515 3.1: base64url and dots).
func checkToken(token []byte) *Refusal {
	if len(token) > tokenBytesMax {
		return errTokenLong
	}
	for _, c := range token {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return errTokenChars
		}
	}
	return nil
}
