package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"

	"tailcast/http1"
)

const (
	// nonceBytes is the length of a nonce: not to be guessed in the life of a
	// token by any number of clients.
	nonceBytes = 16
	// failuresMax is how many wrong answers make a challenge void.
	failuresMax = 5
)

// ChallengeType is the content type of an answer to a challenge.
const ChallengeType = "application/x-challenge-response"

// IsAnswer reports whether a Content-Type is that of an answer to a challenge,
// in any case and with any parameters (RFC 9110 8.3.1).
func IsAnswer(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte(";"))
	return bytes.EqualFold(bytes.TrimRight(kind, " \t"), []byte(ChallengeType))
}

// The fields of an answer: the challenge it answers, and the mark of one that a
// peer sent on, which is sent on no further.
const (
	challengeField = "X-Challenge"
	forwardedField = "X-Challenge-Forwarded"
)

// What is wrong with an answer to a challenge.
var (
	errAnswer    = &Refusal{Status: 400, Reason: "the X-Challenge header is not that of a challenge"}
	errAnswered  = &Refusal{Status: 410, Reason: "the challenge is not known: it was answered, or its stream has ended"}
	errElsewhere = &Refusal{Status: 409, Reason: `{"renew":"reconnect"}`}
	errOther     = &Refusal{Status: 403, Reason: "the token is not for what the stream is for", code: insufficientScope}
)

// IsElsewhere reports whether the challenge can't be answered here: the client
// is to open its stream anew. Reason is JSON then.
func (r *Refusal) IsElsewhere() bool { return r == errElsewhere }

// nonceHash is what is kept of a nonce.
type nonceHash [sha256.Size]byte

// challenges are those that wait for an answer, one a stream at most.
type challenges struct {
	mu   sync.Mutex
	open map[nonceHash]*Lease
}

// void ends the challenge of s. mu must be held.
func (c *challenges) void(s *Lease) {
	if s.open {
		delete(c.open, s.nonce)
		s.open = false
	}
}

// Challenge makes the stream's next challenge and returns what answers it: the
// value of the X-Challenge header, which is for this stream's client alone.
func (l *Lease) Challenge() string {
	var nonce [nonceBytes]byte
	_, _ = rand.Read(nonce[:]) // never fails
	node := l.guard.node
	c := &node.challenges
	c.mu.Lock()
	defer c.mu.Unlock()
	c.void(l)
	l.nonce, l.open, l.failures = sha256.Sum256(nonce[:]), true, 0
	l.ask = l.end // once before each end
	c.open[l.nonce] = l
	node.counts.challenges.Add(1)
	return challengeValue(node.cfg.Name, nonce)
}

// challengeValue is NODE.NONCE.
func challengeValue(name string, nonce [nonceBytes]byte) string {
	return name + "." + base64.RawURLEncoding.EncodeToString(nonce[:])
}

// Answer is a client's answer to a challenge.
type Answer struct {
	guard *Guard
	nonce nonceHash
	peer  *peer // whose challenge it is; nil: ours
	value string
	host  string // of the request, for a peer
	path  string // as sent, for a peer
}

// Answer reads the answer that r is to a challenge of a stream at path, decoded,
// of the guard's route. It finds out where the challenge is from and, if that is
// here, whether it is open; the token is still to be checked.
func (g *Guard) Answer(r *http1.Request, path []byte) (*Answer, *Refusal) {
	value := r.Field(challengeField)
	name, nonce, ok := parseChallenge(value)
	if !ok {
		return nil, errAnswer
	}
	a := &Answer{guard: g, nonce: sha256.Sum256(nonce[:])}
	if name != g.node.cfg.Name {
		a.peer = g.node.peers[name]
		switch {
		case r.Field(forwardedField) != nil:
			return nil, errAnswered
		case a.peer == nil:
			return nil, errElsewhere
		}
		a.value, a.host, a.path = string(value), string(r.Host), string(r.Path)
		return a, nil
	}
	c := &g.node.challenges
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.open[a.nonce]; s == nil || s.path != string(path) || s.guard != g {
		return nil, errAnswered
	}
	return a, nil
}

// parseChallenge reads NODE.NONCE.
func parseChallenge(value []byte) (name string, nonce [nonceBytes]byte, ok bool) {
	dot := bytes.LastIndexByte(value, '.')
	encoding := base64.RawURLEncoding.Strict()
	if dot < 0 || CheckName(string(value[:dot])) != nil || len(value)-dot-1 != encoding.EncodedLen(nonceBytes) {
		return "", nonce, false
	}
	n, err := encoding.Decode(nonce[:], value[dot+1:])
	return string(value[:dot]), nonce, err == nil && n == nonceBytes
}

// Find is Guard.Find for the token of an answer. It may always come in the
// Authorization header, whatever stands in the stream's own query.
func (a *Answer) Find(r *http1.Request, scratch []byte) ([]byte, *Refusal) {
	token, refusal := bearer(r)
	switch {
	case refusal != nil:
		return nil, refusal
	case token != nil:
		return token, checkToken(token)
	}
	return a.guard.Find(r, scratch)
}

// judge gives the stream the time of a token that was checked, or counts a
// failure.
func (a *Answer) judge(t *Token, refusal *Refusal) *Refusal {
	node := a.guard.node
	c := &node.challenges
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.open[a.nonce]
	switch {
	case s == nil:
		return errAnswered
	case refusal == nil && a.guard.identify(t) != s.who:
		refusal = errOther
	}
	switch {
	case refusal == nil:
		c.void(s)
		if end := a.guard.verifier.end(t); end.After(s.end) {
			s.end = end
			s.plan(t)
		}
		node.counts.renewed.Add(1)
	case !refusal.Later:
		if s.failures++; s.failures == failuresMax {
			c.void(s)
		}
	}
	return refusal
}
