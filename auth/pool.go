package auth

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"tailcast/internal/share"
)

const (
	// pendingBytesMax bounds what waits for a signature check, with what each
	// connection keeps for it: about 9,000 requests of browsers, a second for
	// one worker.
	pendingBytesMax = 32 << 20
	// addrBytesMax is the part of it that one address may have.
	addrBytesMax = pendingBytesMax / 4
	// parkedBytesMax is the part of it that may wait for new keys of an issuer, up
	// to five seconds: names of keys are easily made up, and must not take the
	// place of tokens by keys that are known. addrParkedMax is what of that one
	// address may have.
	parkedBytesMax = pendingBytesMax / 4
	addrParkedMax  = parkedBytesMax / 4
	// checkBytes is what a check costs beside its token and its request: the
	// parser that the connection holds for it, for the most part.
	checkBytes = 2 << 10
)

// Check is a token on its way through the workers. What it has come to is in
// Token and Refusal when done is called.
type Check struct {
	Token   *Token   // verified; nil if refused
	Refusal *Refusal // nil if not

	guard  *Guard
	token  string
	judge  judge // has the last word; may be nil
	done   func(*Check)
	gone   atomic.Bool
	parked bool // has waited for new keys; the worker's or the keyring's, who has it

	addr  netip.Addr
	bytes int
}

// judge returns what becomes of a token that is right, or was refused.
type judge func(*Token, *Refusal) *Refusal

// Abandon says that nobody waits for c any more: done may still be called.
func (c *Check) Abandon() { c.gone.Store(true) }

// pool is the checks that wait, a lane for each address. Workers serve the
// lanes in turn, so that an address with many holds up its own. Safe from any
// goroutine.
type pool struct {
	mu     sync.Mutex
	some   sync.Cond
	lanes  map[netip.Addr]*lane
	turn   []*lane // those with checks that wait
	bytes  int     // of all checks not finished
	parked int     // bytes of those among them that wait for new keys
	closed bool
}

// lane is the checks of one address.
type lane struct {
	addr   netip.Addr
	checks []*Check
	bytes  int // of its checks that are not finished: waiting, parked, in work
	parked int // of those that are parked
}

func newPool() *pool {
	p := &pool{lanes: map[netip.Addr]*lane{}}
	p.some.L = &p.mu
	return p
}

// laneOf is the address that limits count by: of IPv6 the network, which is as
// much as one client is given (RFC 6177).
func laneOf(addr netip.Addr) netip.Addr {
	if addr.Is6() && !addr.Is4In6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// put takes a check, or refuses it when there are too many already.
func (p *pool) put(c *Check) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[c.addr]
	if l == nil {
		l = &lane{addr: c.addr}
	}
	if p.closed || p.bytes+c.bytes > pendingBytesMax || l.bytes+c.bytes > addrBytesMax {
		return false
	}
	p.lanes[c.addr] = l
	p.bytes += c.bytes
	l.bytes += c.bytes
	p.queue(l, c)
	return true
}

// park counts a check, which was taken before, among those that wait for new
// keys; false when there are too many of them already.
func (p *pool) park(c *Check) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[c.addr]
	if p.parked+c.bytes > parkedBytesMax || l.parked+c.bytes > addrParkedMax {
		return false
	}
	p.parked += c.bytes
	l.parked += c.bytes
	c.parked = true
	return true
}

// again queues checks that were parked.
func (p *pool) again(checks []*Check) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range checks {
		l := p.lanes[c.addr]
		p.parked -= c.bytes
		l.parked -= c.bytes
		p.queue(l, c)
	}
}

// queue appends c to its lane. mu must be held.
func (p *pool) queue(l *lane, c *Check) {
	if l.checks = append(l.checks, c); len(l.checks) == 1 {
		p.turn = append(p.turn, l)
	}
	p.some.Signal()
}

// take waits for the next check; nil when the pool is closed.
func (p *pool) take() *Check {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.turn) == 0 && !p.closed {
		p.some.Wait()
	}
	if p.closed {
		return nil
	}
	l := p.turn[0]
	p.turn[0] = nil
	p.turn = p.turn[1:]
	c := l.checks[0]
	l.checks[0] = nil
	if l.checks = l.checks[1:]; len(l.checks) > 0 {
		p.turn = append(p.turn, l)
	}
	return c
}

// finish gives back what put counted.
func (p *pool) finish(c *Check) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= c.bytes
	l := p.lanes[c.addr]
	if l.bytes -= c.bytes; l.bytes == 0 {
		delete(p.lanes, c.addr)
	}
}

// close ends the workers; what waits is dropped.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.some.Broadcast()
}

// work serves checks until the pool is closed.
func (p *pool) work() {
	for c := p.take(); c != nil; c = p.take() {
		if c.gone.Load() || c.run() {
			p.finish(c)
			c.done(c)
		}
		share.GiveWay()
	}
}

// run checks c; false if it waits for new keys.
func (c *Check) run() bool {
	g := c.guard
	token, refusal := g.verifier.verify(c.token)
	if refusal == errUnknownKey || refusal == errNoKeys {
		keys := g.verifier.keys
		switch {
		case !c.parked && keys.isRemote() && g.node.pool.park(c):
			keys.park(c)
			return false
		case !c.parked && keys.isRemote():
			refusal = errBusy
		case keys.isFailing():
			refusal = errNoKeys // it may be a key we were not told of
		}
	}
	if c.settle(token, refusal); c.Refusal == nil {
		g.node.counts.verified()
	}
	return true
}

// settle fills in what c has come to.
func (c *Check) settle(token *Token, refusal *Refusal) {
	if refusal == nil {
		refusal = c.guard.permit(token)
	}
	if c.judge != nil {
		refusal = c.judge(token, refusal)
	}
	if c.Refusal = refusal; refusal != nil {
		c.guard.node.counts.refused(refusal)
		return
	}
	c.Token = token
}
