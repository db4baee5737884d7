package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"time"
)

// Lease is the right of one stream to go on, from a token to the next. Its
// methods are safe from any goroutine; all of them take the node's lock of
// challenges, and none is called more than a few times in the life of a token.
type Lease struct {
	// Fixed by Guard.Lease.
	guard *Guard
	who   identity
	path  string // the stream's own, decoded

	// Guarded by challenges.mu.
	end      time.Time // when the stream ends
	ask      time.Time // when it is challenged; zero: not any more
	nonce    nonceHash // of the challenge that is open
	open     bool
	failures int // wrong answers to it
}

// identity stands for who a token is about and what the route gives it: equal
// ones get equal streams.
type identity [sha256.Size]byte

// identify hashes issuer, subject and the claims that the guard's route uses.
func (g *Guard) identify(t *Token) identity {
	h := sha256.New()
	part(h, []byte(t.Issuer))
	part(h, []byte(t.Subject))
	for _, path := range g.uses {
		text, _ := json.Marshal(t.lookup(path)) // what was decoded can be encoded, in one way
		part(h, text)
	}
	return identity(h.Sum(nil))
}

// part hashes text so that it can't run into the next.
func part(h hash.Hash, text []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(text)))
	h.Write(size[:])
	h.Write(text)
}

// Lease begins that of a stream at path, with the token it came with.
func (g *Guard) Lease(t *Token, path []byte) *Lease {
	s := &Lease{guard: g, who: g.identify(t), path: string(path), end: g.verifier.end(t)}
	s.plan(t)
	return s
}

// plan sets when the stream is challenged: a third of the token's lifetime
// before its end, and Config.Challenge before it at most. Without iat the
// lifetime is what is left of it.
func (l *Lease) plan(t *Token) {
	node := l.guard.node
	window := node.cfg.Challenge
	if window == 0 {
		return
	}
	begin := t.Issued
	if begin.IsZero() || !begin.Before(t.Expires) {
		begin = node.now()
	}
	l.ask = t.Expires.Add(-min(window, t.Expires.Sub(begin)/3))
}

// Next returns in how long something is due for the stream: a challenge, or
// else its end. What is not positive is due now; an end that is due is final.
func (l *Lease) Next() (in time.Duration, challenge bool) {
	node := l.guard.node
	node.challenges.mu.Lock()
	defer node.challenges.mu.Unlock()
	if !l.ask.IsZero() && l.ask.Before(l.end) {
		return l.ask.Sub(node.now()), true
	}
	if in = l.end.Sub(node.now()); in <= 0 {
		node.challenges.void(l) // an answer from now on would not be true
	}
	return in, false
}

// Close ends the lease: the answer to its challenge comes too late.
func (l *Lease) Close() {
	c := &l.guard.node.challenges
	c.mu.Lock()
	defer c.mu.Unlock()
	c.void(l)
}
