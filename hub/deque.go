package hub

// dequeMin is the smallest ring of a deque that holds anything.
const dequeMin = 64

// deque is a queue whose elements are found by their number, counted from the
// first ever pushed. Its ring is at most four times what it holds, so that what
// one busy hour needed is not kept for ever, or dequeMin.
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
		d.resize(max(dequeMin, 2*len(d.ring)))
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
	if n := len(d.ring); d.n < n/4 && n > dequeMin {
		d.resize(n / 2)
	}
}

// clear forgets every element; the next one's number stays what it would be.
func (d *deque[T]) clear() { d.ring, d.first, d.n = nil, d.end(), 0 }

func (d *deque[T]) resize(n int) {
	ring := make([]T, n)
	for i := d.first; i < d.end(); i++ {
		ring[i&uint64(len(ring)-1)] = *d.at(i)
	}
	d.ring = ring
}
