//go:build !race

package bench

import "testing"

func TestFeedAllocatesNothing(t *testing.T) {
	j := &judge{tally: &tally{verify: true, ids: true, measuring: true}, sample: true}
	s := &stream{out: j}
	if err := s.feed([]byte(testHead + chunk(record(0, 0)) + chunk(record(0, 1)))); err != nil {
		t.Fatal(err)
	}
	seq := int64(2)
	frames := make([][]byte, 1002)
	for i := range frames {
		frames[i] = []byte(chunk(record(0, seq+int64(i))))
	}
	i := 0
	allocs := testing.AllocsPerRun(1000, func() {
		f := frames[i]
		i++
		if s.feed(f[:30]) != nil || s.feed(f[30:]) != nil {
			t.Fatal("the stream is broken")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations an event, want none", allocs)
	}
	if n := j.tally.counts; n.Faults() != 0 || n.Events < 1000 {
		t.Errorf("%+v, want 1000 events and no fault: %q", n, j.tally.faults)
	}
}

func TestKeysAllocateNothing(t *testing.T) {
	const keys = 1002
	j := &judge{tally: &tally{verify: true, ids: true, measuring: true}, keys: make([]keyState, keys+1)}
	s := &stream{out: j}
	frames := [][]byte{[]byte(testHead)}
	for n := range int64(keys) {
		frames = append(frames, []byte(chunk(keyRecord(2*n, n+1, 0))+chunk(keyDelete(2*n+1, n+1))))
	}
	i := 0
	feed := func() {
		if s.feed(frames[i]) != nil {
			t.Fatal("the stream is broken")
		}
		i++
	}
	feed()
	feed()
	if allocs := testing.AllocsPerRun(1000, feed); allocs != 0 {
		t.Errorf("%v allocations for two events, want none", allocs)
	}
	if n := j.tally.counts; n.Faults() != 0 || n.Events < 1000 || n.Deletes < 1000 {
		t.Errorf("%+v, want 1000 events and no fault: %q", n, j.tally.faults)
	}
}
