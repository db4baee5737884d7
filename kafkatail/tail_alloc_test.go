//go:build !race

package kafkatail

import "testing"

// Taking records over costs no allocation of ours, headers or not.
func TestAppendAllocatesNothing(t *testing.T) {
	r, ft, refill := fixture(t, new(null), 1000)
	n := testing.AllocsPerRun(50, func() {
		refill()
		r.records(ft, &ft.Partitions[0])
		r.flush()
	})
	if n != 0 {
		t.Errorf("%v allocations per fetch", n)
	}
}
