package auth

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	// forwardsMax bounds the answers that are on their way to peers: what is
	// more is to be tried again.
	forwardsMax = 64
	// forwardMax bounds one: the peer has to check a token, and no more.
	forwardMax = 5 * time.Second
)

var (
	errPeerAway = &Refusal{Status: 503, Reason: "the stream's node does not answer", Later: true}
	errPeerBusy = &Refusal{Status: 503, Reason: "too many answers are on their way to other nodes", Later: true}
)

// peer is another node.
type peer struct{ url string }

// Check is Guard.Check for the token of an answer: if nothing is refused, the
// stream has been renewed when the verdict is there.
func (a *Answer) Check(token []byte, addr netip.Addr, bytes int, done func(*Check)) (*Check, *Token, *Refusal) {
	if a.peer == nil {
		return a.guard.check(token, addr, bytes, a.judge, done)
	}
	text := string(token)
	c, t, refusal := a.guard.check(token, addr, bytes, nil, func(c *Check) { a.forward(c, text, done) })
	if t == nil {
		return c, nil, refusal
	}
	c = &Check{Token: t}
	a.forward(c, text, done)
	return c, nil, nil
}

// forward hands an answer with a token that is right to the node whose challenge
// it is, and passes on what that says.
func (a *Answer) forward(c *Check, token string, done func(*Check)) {
	n := a.guard.node
	switch {
	case c.Refusal != nil || c.gone.Load():
		done(c)
	case !n.begin():
		c.Token, c.Refusal = nil, errPeerBusy
		done(c)
	default:
		go func() {
			defer n.finish()
			if c.Refusal = a.send(n.ctx, token); c.Refusal != nil {
				c.Token = nil
			}
			done(c)
		}()
	}
}

func (a *Answer) send(ctx context.Context, token string) *Refusal {
	ctx, cancel := context.WithTimeout(ctx, forwardMax)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(a.peer.url, "/")+a.path, http.NoBody)
	if err != nil {
		return errPeerAway
	}
	req.Host = a.host
	req.Header.Set("Content-Type", ChallengeType)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set(challengeField, a.value)
	req.Header.Set(forwardedField, a.guard.node.cfg.Name)
	res, err := a.guard.node.client.Do(req)
	if err != nil {
		return errPeerAway
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // so that the connection can be used again
	switch res.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusUnauthorized:
		return errPeerToken
	case http.StatusForbidden:
		return errOther
	case http.StatusGone:
		return errAnswered
	}
	return errPeerAway
}

// errPeerToken says that a peer refuses a token that is right here: its clock
// or its keys differ.
var errPeerToken = &Refusal{Status: 401, Reason: "the stream's node does not accept the token", code: invalidToken}
