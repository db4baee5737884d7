package loop

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRosterWalk walks a roster while connections come and go at random. Run a
// seed again with -run 'TestRosterWalk/seed=N'.
func TestRosterWalk(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			var r roster
			met := map[*conn]int{}
			for range rnd.IntN(40) {
				r.add(&conn{})
			}
			for range 8 {
				clear(met)
				r.rewind()
				walk(t, rnd, &r, met)
			}
		})
	}
}

// walk makes one walk and checks what a roster promises of it.
func walk(t *testing.T, rnd *rand.Rand, r *roster, met map[*conn]int) {
	t.Helper()
	there := map[*conn]bool{} // at the beginning, and not removed since
	for _, c := range r.conns {
		there[c] = true
	}
	for c := r.next(); c != nil; c = r.next() {
		met[c]++
		leaves := rnd.IntN(4) == 0
		if leaves {
			r.remove(c)
			delete(there, c)
		} else {
			r.pass()
		}
		switch n := rnd.IntN(10); {
		case n < 2 && len(met) < 300:
			r.add(&conn{})
		case n < 5 && r.len() > 0:
			gone := r.conns[rnd.IntN(r.len())]
			r.remove(gone)
			delete(there, gone)
			if gone.list != nil {
				t.Fatal("a connection that was removed names its list")
			}
		}
		for i, c := range r.conns {
			if c.list != r || int(c.pos) != i {
				t.Fatalf("place %d holds a connection that names %d", i, c.pos)
			}
		}
	}
	for c, n := range met {
		if n != 1 {
			t.Fatalf("%p was met %d times", c, n)
		}
	}
	for c := range there {
		if met[c] != 1 {
			t.Fatalf("%p was there all the time and not met", c)
		}
	}
}

func BenchmarkRosterRemove(b *testing.B) {
	var r roster
	conns := make([]conn, 10_000)
	for i := range conns {
		r.add(&conns[i])
	}
	r.met = len(conns) / 2
	i := 0
	for b.Loop() {
		c := &conns[i]
		r.remove(c)
		r.add(c)
		if i++; i == len(conns) {
			i, r.met = 0, len(conns)/2
		}
	}
}
