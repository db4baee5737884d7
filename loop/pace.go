package loop

import (
	"sync"
	"time"
)

// paceBurst is how much of a second's connections may come at once.
const paceBurst = 100 * time.Millisecond

// pace spreads what happens over time: no more than a number a second, but for
// a burst after a rest. Safe from any goroutine.
type pace struct {
	each time.Duration // 0: no limit

	mu  sync.Mutex
	due time.Time // when the next would come if all came evenly
}

func newPace(perSecond int) *pace {
	p := &pace{}
	if perSecond > 0 {
		p.each = time.Second / time.Duration(perSecond)
	}
	return p
}

// next notes that one happened at now, and returns how long the next has to wait.
func (p *pace) next(now time.Time) time.Duration {
	if p.each == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if begin := now.Add(-paceBurst); p.due.Before(begin) {
		p.due = begin
	}
	p.due = p.due.Add(p.each)
	return p.due.Sub(now)
}
