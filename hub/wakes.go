package hub

import "slices"

// wakesHeld is how many marks a round gathers before it wakes without being over,
// so that the first feed of a large one does not wait for all the others: 256
// feeds of a loop are flushed in some 100 us.
const wakesHeld = 256

// Wakes gathers the loops that a round of flushes has news for, so that each is
// woken once and finds all of it. Woken by the first feed of the round, a loop
// that shares a processor with the one who flushes runs at once, serves one
// stream, sleeps, and is woken by the next feed.
//
// The zero value is ready. It belongs to one goroutine, which calls Wake behind
// every round, with no lock of a feed held. A nil *Wakes gathers nothing: loops
// are woken at once.
type Wakes struct {
	boxes []*Mailbox // that have marks; at most one entry a loop
	marks int        // in them, made since the last Wake
}

// Wake ends a round: loops with marks that they have not taken yet are woken.
func (w *Wakes) Wake() {
	for _, m := range w.boxes {
		m.wakeMarked()
	}
	clear(w.boxes)
	w.boxes, w.marks = w.boxes[:0], 0
}

// gather puts off the wake for a mark in m.
func (w *Wakes) gather(m *Mailbox) {
	if !slices.Contains(w.boxes, m) {
		w.boxes = append(w.boxes, m)
	}
	if w.marks++; w.marks >= wakesHeld {
		w.Wake()
	}
}
