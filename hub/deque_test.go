package hub

import (
	"math/rand/v2"
	"testing"
)

// TestDeque holds a deque against a slice of everything ever pushed.
func TestDeque(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var d deque[int]
		var all []int
		first := 0
		for range 60 {
			switch rnd.IntN(9) {
			case 0, 1, 2, 3:
				for range rnd.IntN(500) {
					if i := d.push(len(all)); i != uint64(len(all)) {
						t.Fatalf("seed %d: element %d has number %d", seed, len(all), i)
					}
					all = append(all, len(all))
				}
			case 4, 5, 6, 7:
				for n := rnd.IntN(500); n > 0 && first < len(all); n-- {
					d.pop()
					first++
				}
			case 8:
				d.clear()
				first = len(all)
			}
			if d.len() != len(all)-first || d.end() != uint64(len(all)) || d.first != uint64(first) {
				t.Fatalf("seed %d: holds %d from %d to %d, want %d to %d", seed, d.len(), d.first, d.end(), first, len(all))
			}
			for i := first; i < len(all); i++ {
				if *d.at(uint64(i)) != all[i] {
					t.Fatalf("seed %d: number %d is %d", seed, i, *d.at(uint64(i)))
				}
			}
			if d.len() > 0 && *d.front() != all[first] {
				t.Fatalf("seed %d: the front is %d, want %d", seed, *d.front(), all[first])
			}
			if n := len(d.ring); n > max(dequeMin, 4*d.len()+4) {
				t.Fatalf("seed %d: a ring of %d for %d elements", seed, n, d.len())
			}
		}
	}
}
