package hub

import (
	"sync"
	"sync/atomic"
)

// Mailbox is how feeds reach one event loop: the readers with something new,
// and one wake while there are any.
type Mailbox struct {
	wake func()

	turn atomic.Uint64 // odd inside a turn

	mu    sync.Mutex
	dirty []*Reader // at most one entry a feed
	woken bool      // wake was called, or is about to be, since dirty was taken
	owns  []*Own    // personal streams whose history is there; wake was called when there were none
	// Each of the two has a wake of its own: the loop takes one after the other,
	// and may have passed the first when something comes into it.
}

// NewMailbox returns the mailbox of one loop. wake makes the loop take a turn
// soon; it must not block and may be called from any goroutine.
func NewMailbox(wake func()) *Mailbox { return &Mailbox{wake: wake} }

// Enter begins a turn: bytes that Read returns stay valid until Leave. Loop only.
func (m *Mailbox) Enter() { m.turn.Add(1) }

// Leave ends a turn. Loop only.
func (m *Mailbox) Leave() { m.turn.Add(1) }

// Take appends the readers that have something new to dst and clears their
// marks: what is appended from now on marks and wakes again. Loop only.
func (m *Mailbox) Take(dst []*Reader) []*Reader {
	m.mu.Lock()
	n := len(dst)
	dst = append(dst, m.dirty...)
	clear(m.dirty)
	m.dirty = m.dirty[:0]
	m.woken = false
	m.mu.Unlock()
	for _, r := range dst[n:] {
		r.dirty.Store(false)
	}
	return dst
}

// mark puts r in the mailbox unless it is there, and sees to it that the loop
// is woken: at once, or with a round of w, which is the caller's, when that ends.
// Safe from any goroutine.
func (m *Mailbox) mark(r *Reader, w *Wakes) {
	if r.dirty.Load() || !r.dirty.CompareAndSwap(false, true) {
		return // whoever marked it sees to the wake
	}
	m.mu.Lock()
	m.dirty = append(m.dirty, r)
	asleep := !m.woken
	if w == nil {
		m.woken = true
	}
	m.mu.Unlock()
	switch {
	case !asleep:
	case w == nil:
		m.wake()
	default:
		w.gather(m)
	}
}

// wakeMarked wakes the loop for marks whose wakes were put off, unless it has
// taken them or was woken meanwhile. Safe from any goroutine.
func (m *Mailbox) wakeMarked() {
	m.mu.Lock()
	wake := len(m.dirty) > 0 && !m.woken
	m.woken = m.woken || wake
	m.mu.Unlock()
	if wake {
		m.wake()
	}
}

// own tells the loop that a personal stream can go on. Safe from any goroutine.
func (m *Mailbox) own(o *Own) {
	m.mu.Lock()
	first := len(m.owns) == 0
	m.owns = append(m.owns, o)
	m.mu.Unlock()
	if first {
		m.wake()
	}
}

// TakeOwn appends the personal streams that waited for history and can go on
// to dst; some may have ended meanwhile. Loop only.
func (m *Mailbox) TakeOwn(dst []*Own) []*Own {
	m.mu.Lock()
	defer m.mu.Unlock()
	dst = append(dst, m.owns...)
	clear(m.owns)
	m.owns = m.owns[:0]
	return dst
}
