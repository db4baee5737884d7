package hub

// deque is a queue whose elements are found by their number, counted from the
// first ever pushed. It grows to what it held at most and never shrinks.
type deque[T any] struct {
	ring  []T    // a power of two
	first uint64 // number of the oldest element held
	n     int
}

func (d *deque[T]) len() int { return d.n }

// end is the number the next element will have.
func (d *deque[T]) end() uint64 { return d.first + uint64(d.n) }

// at returns element number i, which must be held.
func (d *deque[T]) at(i uint64) *T { return &d.ring[i&uint64(len(d.ring)-1)] }

func (d *deque[T]) front() *T { return d.at(d.first) }

// push adds v as the newest element and returns its number.
func (d *deque[T]) push(v T) uint64 {
	if d.n == len(d.ring) {
		d.grow()
	}
	i := d.end()
	d.n++
	*d.at(i) = v
	return i
}

// pop forgets the oldest element.
func (d *deque[T]) pop() {
	d.first++
	d.n--
}

// clear forgets every element; the next one's number stays what it would be.
func (d *deque[T]) clear() { d.first, d.n = d.end(), 0 }

func (d *deque[T]) grow() {
	ring := make([]T, max(64, 2*len(d.ring)))
	for i := d.first; i < d.end(); i++ {
		ring[i&uint64(len(ring)-1)] = *d.at(i)
	}
	d.ring = ring
}
