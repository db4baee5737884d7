package route

import (
	"errors"
	"strings"
)

// CORS says which pages of other origins may read a route's answers (Fetch
// Standard, 3.3). A nil *CORS allows none.
type CORS struct {
	any         bool                // "*": every page, without credentials
	exact       map[string]struct{} // origins as browsers send them; may hold "null"
	wild        []wildcard
	credentials bool
}

// wildcard is https://*.app.test:8443 cut at the star.
type wildcard struct {
	before string // "https://"
	after  string // ".app.test:8443"
}

// NewCORS returns the policy of a list of origins (CheckOrigin). credentials
// lets pages send cookies; it can't go with "*" or "null", which every site on
// the web can claim: each could then read the stream as its visitor.
func NewCORS(origins []string, credentials bool) (*CORS, error) {
	c := &CORS{exact: make(map[string]struct{}, len(origins)), credentials: credentials}
	for _, o := range origins {
		if err := CheckOrigin(o); err != nil {
			return nil, err
		}
		if credentials && (o == "*" || o == "null") {
			return nil, errors.New("credentials need listed origins: with " + o +
				" any site could read the stream with its visitor's cookies")
		}
		before, after, wild := strings.Cut(o, "*")
		switch {
		case o == "*":
			c.any = true
		case wild:
			c.wild = append(c.wild, wildcard{before, after})
		default:
			c.exact[o] = struct{}{}
		}
	}
	return c, nil
}

// Grant is the decision for one request. The zero Grant allows nothing and
// needs no header.
type Grant struct {
	// Origin is the value of Access-Control-Allow-Origin, nil when the page is
	// refused or sent no origin. It aliases the request's origin.
	Origin []byte
	// Credentials is whether cookies may go with the request.
	Credentials bool
	// Vary is whether another origin could get another answer, so that a cache
	// must keep them apart. True on refusals and without an origin too.
	Vary bool
}

var star = []byte("*")

// Decide returns what the page at origin may do. origin is the value of the
// request's only Origin line; nil when there is none or more than one. A page
// that is refused still gets the stream: its browser keeps it from reading.
func (c *CORS) Decide(origin []byte) Grant {
	switch {
	case c == nil:
		return Grant{}
	case c.any:
		return Grant{Origin: star}
	case c.allows(origin):
		return Grant{Origin: origin, Credentials: c.credentials, Vary: true}
	default:
		return Grant{Vary: len(c.exact)+len(c.wild) > 0}
	}
}

func (c *CORS) allows(origin []byte) bool {
	if _, ok := c.exact[string(origin)]; ok {
		return true
	}
	for i := range c.wild {
		if c.wild[i].matches(origin) {
			return true
		}
	}
	return false
}

func (w *wildcard) matches(origin []byte) bool {
	n := len(origin) - len(w.before) - len(w.after)
	return n > 0 &&
		string(origin[:len(w.before)]) == w.before &&
		string(origin[len(w.before)+n:]) == w.after &&
		isName(origin[len(w.before):len(w.before)+n])
}

// AppendFields appends the field lines of g for any answer but a preflight's,
// error answers included: without them a page can't tell a 404 from a broken
// network. Each line ends in CRLF; there may be none.
func (g Grant) AppendFields(dst []byte) []byte {
	if g.Origin != nil {
		dst = append(dst, "Access-Control-Allow-Origin: "...)
		dst = append(dst, g.Origin...)
		dst = append(dst, "\r\n"...)
		if g.Credentials {
			dst = append(dst, "Access-Control-Allow-Credentials: true\r\n"...)
		}
	}
	if g.Vary {
		dst = append(dst, "Vary: Origin\r\n"...)
	}
	return dst
}

// Methods is what a route answers to, for Allow fields: 204 and 405 answers
// carry it.
const Methods = "GET, HEAD, OPTIONS"

// FileMethods is Methods of the paths that no route has, where files are served.
const FileMethods = "GET, HEAD"

// GuardedMethods is Methods of a route with a guard, to which answers to its
// challenges are posted.
const GuardedMethods = Methods + ", POST"

// preflightFields is what a preflight is told besides its origin. It does not
// depend on what was asked for: the browser does the comparing. The headers are
// those of EventSource polyfills and fetch clients; "*" would not cover
// authorization and is void with credentials. 7200 s is where Chromium cuts the
// age (WebKit cuts at 600).
const (
	preflightFields = "Access-Control-Allow-Methods: " + Methods + "\r\n" +
		"Access-Control-Allow-Headers: last-event-id, authorization, cache-control, content-type\r\n" + preflightAge
	guardedPreflightFields = "Access-Control-Allow-Methods: " + GuardedMethods + "\r\n" +
		"Access-Control-Allow-Headers: last-event-id, authorization, cache-control, content-type, x-challenge\r\n" + preflightAge
	preflightAge = "Access-Control-Max-Age: 7200\r\n"
)

// AppendPreflightFields appends the field lines of g for the answer to a
// preflight: OPTIONS with Origin and Access-Control-Request-Method
// (IsPreflight). Status 204; no guard may ask it for credentials, for it
// carries none. guarded is whether the route has one.
func (g Grant) AppendPreflightFields(dst []byte, guarded bool) []byte {
	dst = g.AppendFields(dst)
	switch {
	case g.Origin == nil:
	case guarded:
		dst = append(dst, guardedPreflightFields...)
	default:
		dst = append(dst, preflightFields...)
	}
	return dst
}

// IsPreflight reports whether an OPTIONS request is a CORS preflight, from the
// values of its Origin and Access-Control-Request-Method. One that isn't asks
// what the route offers: 204 with Allow.
func IsPreflight(origin, requestMethod []byte) bool {
	return len(origin) > 0 && len(requestMethod) > 0
}
