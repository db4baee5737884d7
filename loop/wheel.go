package loop

import "time"

const (
	wheelTick  = 100 * time.Millisecond
	wheelSlots = 512 // 51.2 s a round; longer deadlines go round again
)

// wheel holds one deadline a connection, to the tick. Setting, moving and
// clearing one costs a few pointers; there is no timer per connection. Loop only.
type wheel struct {
	now   int64             // the tick that advance has come to
	slots [wheelSlots]*conn // those due behind now, by tick
	ripe  *conn             // those due at now or before it
	n     int               // all of them
}

// set gives c a deadline, as time since the loop began, replacing the one it
// has. It comes never before at, and a tick and a turn behind it at most.
func (w *wheel) set(c *conn, at time.Duration) {
	w.clear(c)
	c.due = max(w.now+1, int64((at+wheelTick-1)/wheelTick))
	w.link(c)
	w.n++
}

// clear takes c's deadline away, if it has one.
func (w *wheel) clear(c *conn) {
	if c.due == 0 {
		return
	}
	w.unlink(c)
	c.due = 0
	w.n--
}

// advance calls expired for connections whose deadline has come, with the
// deadline cleared, for most of them at a time; expired may set and clear any
// deadline. It reports whether there are more.
func (w *wheel) advance(now time.Duration, most int, expired func(*conn)) (more bool) {
	for tick := int64(now / wheelTick); w.now < tick; {
		w.now++
		slot := &w.slots[w.now%wheelSlots]
		c := *slot
		*slot = nil
		for c != nil {
			next := c.wheelNext
			w.link(c) // ripe, or back into the slot for another round
			c = next
		}
	}
	for ; w.ripe != nil && most > 0; most-- {
		c := w.ripe
		w.clear(c)
		expired(c)
	}
	return w.ripe != nil
}

// next is when advance has something to do, if n > 0.
func (w *wheel) next() time.Duration { return time.Duration(w.now+1) * wheelTick }

// list is the list that c belongs into by its deadline.
func (w *wheel) list(c *conn) **conn {
	if c.due <= w.now {
		return &w.ripe
	}
	return &w.slots[c.due%wheelSlots]
}

func (w *wheel) link(c *conn) {
	first := w.list(c)
	c.wheelPrev, c.wheelNext = nil, *first
	if *first != nil {
		(*first).wheelPrev = c
	}
	*first = c
}

func (w *wheel) unlink(c *conn) {
	if c.wheelPrev != nil {
		c.wheelPrev.wheelNext = c.wheelNext
	} else {
		*w.list(c) = c.wheelNext
	}
	if c.wheelNext != nil {
		c.wheelNext.wheelPrev = c.wheelPrev
	}
	c.wheelPrev, c.wheelNext = nil, nil
}
