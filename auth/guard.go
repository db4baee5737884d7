// Package auth is the guard of routes: it finds the token of a request, checks
// it (JWT, RFC 7519, by the rules of RFC 8725), and renews the right of a stream
// to go on by a challenge. Signatures are checked by a few workers of its own, so
// that no event loop waits for one.
//
// It knows neither streams nor routes, writes to no socket of a browser, and
// puts nothing of a token into an error or a log line.
package auth

import (
	"net/netip"

	"tailcast/http1"
)

// Guard is what stands before the streams of a route. Fixed; safe from any
// goroutine.
type Guard struct {
	node     *Node
	verifier *verifier
	sources  sources
	path     []string // of the claim with the roles
	roles    []string
	uses     [][]string // paths of the claims that the route uses
}

// Find returns the token of a request, unchecked. It aliases r, or scratch,
// which needs room for the query.
func (g *Guard) Find(r *http1.Request, scratch []byte) ([]byte, *Refusal) {
	token, refusal := g.sources.token(r, scratch)
	if refusal != nil {
		g.node.counts.refused(refusal)
	}
	return token, refusal
}

// Check checks a token that came from addr, beside which the caller keeps bytes
// of memory until it is done. It returns nil and the verdict at once if the token
// is known or too many wait already; otherwise done is called with the result,
// once, from another goroutine, and must not block. token is borrowed.
func (g *Guard) Check(token []byte, addr netip.Addr, bytes int, done func(*Check)) (*Check, *Token, *Refusal) {
	return g.check(token, addr, bytes, nil, done)
}

func (g *Guard) check(token []byte, addr netip.Addr, bytes int, judge judge, done func(*Check)) (*Check, *Token, *Refusal) {
	c := &Check{guard: g, judge: judge, done: done, addr: laneOf(addr), bytes: checkBytes + len(token) + bytes}
	counts := &g.node.counts
	if t := g.verifier.known(token); t != nil {
		c.settle(t, nil)
		if c.Refusal == nil {
			counts.known()
		}
		return nil, c.Token, c.Refusal
	}
	c.token = string(token)
	if !g.node.pool.put(c) {
		counts.refused(errBusy)
		return nil, nil, errBusy
	}
	return c, nil, nil
}

// permit refuses a verified token that lacks a role.
func (g *Guard) permit(t *Token) *Refusal {
	if !hasRoles(t, g.path, g.roles) {
		return errRoles
	}
	return nil
}
