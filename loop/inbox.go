package loop

import "sync"

// inbox is what others have for a loop that has not taken it. Safe from any
// goroutine; whoever puts things in bounds how many there are.
type inbox[T any] struct {
	mu   sync.Mutex
	list []T
}

// put adds one and wakes the loop for the first.
func (in *inbox[T]) put(x T, w *waker) {
	in.mu.Lock()
	in.list = append(in.list, x)
	first := len(in.list) == 1
	in.mu.Unlock()
	if first {
		w.wake()
	}
}

// take moves all behind those in dst.
func (in *inbox[T]) take(dst []T) []T {
	in.mu.Lock()
	defer in.mu.Unlock()
	dst = append(dst, in.list...)
	clear(in.list)
	in.list = in.list[:0]
	return dst
}
