package auth

import "sync/atomic"

// results are what tokens come to: the result label of tailcast_tokens_total.
var results = [...]string{
	"verified", "known", "missing", "request", "expired", "invalid", "forbidden", "busy", "no-keys",
}

// counts are a node's counters.
type counts struct {
	results    [len(results)]atomic.Uint64
	challenges atomic.Uint64
	renewed    atomic.Uint64
}

// refused counts a request whose token was refused.
func (c *counts) refused(r *Refusal) {
	c.results[resultOf(r)].Add(1)
}

// verified and known count tokens that are right, the latter ones by memory.
func (c *counts) verified() { c.results[0].Add(1) }
func (c *counts) known()    { c.results[1].Add(1) }

func resultOf(r *Refusal) int {
	switch {
	case r == errNoToken:
		return 2
	case r.Status == 400:
		return 3
	case r == errExpired:
		return 4
	case r.Status == 401:
		return 5
	case r == errNoKeys:
		return 8
	case r.Later:
		return 7
	}
	return 6
}

// Stats are the counts of a node since its start.
type Stats struct {
	Tokens     map[string]uint64 // by result
	Challenges uint64            // sent to streams
	Renewals   uint64            // of them, those answered rightly
}

// Stats returns the counts. Safe from any goroutine.
func (n *Node) Stats() Stats {
	s := Stats{Tokens: map[string]uint64{}, Challenges: n.counts.challenges.Load(), Renewals: n.counts.renewed.Load()}
	for i := range results {
		s.Tokens[results[i]] = n.counts.results[i].Load()
	}
	return s
}
