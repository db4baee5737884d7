package loop

import "time"

const (
	wheelTick  = 100 * time.Millisecond
	wheelSlots = 512 // 51.2 s a round; longer deadlines go round again
)

// wheel holds one deadline a connection, to the tick. Setting, moving and
// clearing one costs a few pointers; there is no timer per connection. Loop only.
type wheel struct {
	now   int64 // ticks since the loop began
	slots [wheelSlots]*conn
	n     int
}

// set gives c a deadline d from now, replacing the one it has.
func (w *wheel) set(c *conn, d time.Duration) {
	w.clear(c)
	c.due = w.now + max(1, int64((d+wheelTick-1)/wheelTick))
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

// advance calls expired for every connection whose deadline has come, with its
// deadline cleared. expired may give that connection a new one and must leave
// the deadlines of others alone.
func (w *wheel) advance(now int64, expired func(*conn)) {
	for w.now < now {
		w.now++
		slot := &w.slots[w.now%wheelSlots]
		var later *conn // of another round
		for c := *slot; c != nil; c = *slot {
			w.unlink(c)
			if c.due > w.now {
				c.wheelNext, later = later, c
				continue
			}
			c.due = 0
			w.n--
			expired(c)
		}
		for c := later; c != nil; {
			next := c.wheelNext
			w.link(c)
			c = next
		}
	}
}

func (w *wheel) link(c *conn) {
	slot := &w.slots[c.due%wheelSlots]
	c.wheelPrev, c.wheelNext = nil, *slot
	if *slot != nil {
		(*slot).wheelPrev = c
	}
	*slot = c
}

func (w *wheel) unlink(c *conn) {
	if c.wheelPrev != nil {
		c.wheelPrev.wheelNext = c.wheelNext
	} else {
		w.slots[c.due%wheelSlots] = c.wheelNext
	}
	if c.wheelNext != nil {
		c.wheelNext.wheelPrev = c.wheelPrev
	}
	c.wheelPrev, c.wheelNext = nil, nil
}
