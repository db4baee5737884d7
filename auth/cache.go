package auth

import (
	"crypto/sha256"
	"sync"
)

// cacheMax bounds the tokens that a verifier remembers, twice over: those of a
// crowd that comes back at once with the tokens it had. One takes about 2 KB,
// and only what the issuer signed is kept.
const cacheMax = 8192

// cache remembers verified tokens by their hash, the latest cacheMax at least.
// It keeps two generations, and forgets the older when the younger is full:
// what is in use is moved over. Safe from any goroutine.
type cache struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]*Token
}

func (c *cache) get(hash [sha256.Size]byte) *Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.young[hash]
	if t == nil {
		if t = c.old[hash]; t != nil {
			c.add(hash, t)
		}
	}
	return t
}

func (c *cache) put(hash [sha256.Size]byte, t *Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(hash, t)
}

// add puts t into the younger generation. mu must be held.
func (c *cache) add(hash [sha256.Size]byte, t *Token) {
	if len(c.young) >= cacheMax || c.young == nil {
		c.young, c.old = make(map[[sha256.Size]byte]*Token), c.young
	}
	c.young[hash] = t
}
