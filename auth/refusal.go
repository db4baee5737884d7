package auth

// Refusal is why a request is not served. Refusals are fixed values, compared
// with ==, and hold nothing that the client sent: they end up in answers.
type Refusal struct { //nolint:errname // it is a verdict before it is an error
	Status int    // 400, 401, 403, 409 or 410; Later says what 503 means
	Reason string // one plain line for the body of the answer
	code   string // the error of RFC 6750 3.1; empty: the client showed no token
	Later  bool   // nothing is wrong with the request: the same one may be served soon
}

func (r *Refusal) Error() string { return r.Reason }

// Challenge is the value of the answer's WWW-Authenticate field (RFC 6750 3),
// empty if it has none.
func (r *Refusal) Challenge() string {
	switch {
	case r.code != "":
		return `Bearer error="` + r.code + `", error_description="` + r.Reason + `"`
	case r.Status == 401:
		return "Bearer"
	}
	return ""
}

// LacksClaim is the WWW-Authenticate field of an answer to a token that lacks a
// claim which the route uses; what it is called need not be told there.
const LacksClaim = `Bearer error="` + insufficientScope + `", error_description="the token lacks a claim that the stream needs"`

// The errors of RFC 6750 3.1.
const (
	invalidRequest    = "invalid_request"
	invalidToken      = "invalid_token"
	insufficientScope = "insufficient_scope"
)

// What is wrong with how a token was sent.
var (
	errNoToken    = &Refusal{Status: 401, Reason: "the stream needs a token"}
	errTwoTokens  = &Refusal{Status: 400, Reason: "the request has more than one token", code: invalidRequest}
	errBearer     = &Refusal{Status: 400, Reason: "the Authorization header is not Bearer and a token", code: invalidRequest}
	errTokenChars = &Refusal{Status: 400, Reason: "the token has a character that no token has", code: invalidRequest}
	errTokenLong  = &Refusal{Status: 400, Reason: "the token is longer than 8 KiB", code: invalidRequest}
)

// What is wrong with a token.
var (
	errMalformed  = &Refusal{Status: 401, Reason: "the token is malformed", code: invalidToken}
	errAlgorithm  = &Refusal{Status: 401, Reason: "the token's algorithm is not accepted", code: invalidToken}
	errCritical   = &Refusal{Status: 401, Reason: "the token's header has extensions that are not understood", code: invalidToken}
	errUnknownKey = &Refusal{Status: 401, Reason: "the token's key is not known", code: invalidToken}
	errSignature  = &Refusal{Status: 401, Reason: "the token's signature is not valid", code: invalidToken}
	errExpired    = &Refusal{Status: 401, Reason: "the token has expired", code: invalidToken}
	errNotYet     = &Refusal{Status: 401, Reason: "the token is not valid yet", code: invalidToken}
	errIssuer     = &Refusal{Status: 401, Reason: "the token is from another issuer", code: invalidToken}
	errAudience   = &Refusal{Status: 401, Reason: "the token is for another audience", code: invalidToken}
	errClaims     = &Refusal{Status: 401, Reason: "the token has a claim that is not valid", code: invalidToken}
	errNoExpiry   = &Refusal{Status: 401, Reason: "the token has no exp claim", code: invalidToken}
	errRoles      = &Refusal{Status: 403, Reason: "the token lacks a role that the stream needs", code: insufficientScope}
)

// ErrLate is a verdict that did not come in time.
var ErrLate = &Refusal{Status: 503, Reason: "the token was not checked in time", Later: true}

// What may be right a little later.
var (
	errBusy   = &Refusal{Status: 503, Reason: "too many tokens wait to be checked", Later: true}
	errNoKeys = &Refusal{Status: 503, Reason: "the keys of the issuer can't be read for now", Later: true}
)
