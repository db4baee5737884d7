package hub

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// newLog returns a log that up to two loops read.
func newLog(ceiling int64) (*log, []*Mailbox) {
	boxes := []*Mailbox{NewMailbox(func() {}), NewMailbox(func() {})}
	l := &log{}
	l.init(&pool{boxes: boxes}, ceiling)
	l.size = segmentBytes
	return l, boxes
}

// fill makes the bytes that belong at place: each eighth tells its own place,
// so that bytes of another place can't pass for them.
func fill(b []byte, place int64) []byte {
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(place)+uint64(i))
	}
	return b
}

// filled reports whether b is what fill makes. place and len(b) are multiples of 8.
func filled(b []byte, place int64) bool {
	for i := 0; i < len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:]) != uint64(place)+uint64(i) {
			return false
		}
	}
	return true
}

// add appends n bytes, a multiple of 8, and publishes them.
func (l *log) add(n int) {
	l.append(fill(make([]byte, n), l.end))
	l.publish()
}

// roll appends n segments full of frames.
func (l *log) roll(n int) {
	for range 8 * n {
		l.add(segmentBytes / 8)
	}
}

func TestReadStaysInOneSegment(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	l, _ := newLog(8 * segmentBytes)
	begins := map[int64]bool{0: true}
	for i := range 1000 {
		n := 8 * (1 + rnd.IntN(2000))
		if rnd.IntN(50) == 0 {
			n = segmentBytes - 8 + 8*rnd.IntN(3) // just below, at and above a segment
		}
		from := l.end
		l.add(n)
		begins[l.end] = true

		if i%100 == 0 {
			from = l.first
		}
		for place := from; ; {
			b, ok := l.read(place)
			if !ok || !filled(b, place) {
				t.Fatalf("read at %d: %d bytes, held %v, not those appended there", place, len(b), ok)
			}
			if len(b) == 0 {
				if place != l.end {
					t.Fatalf("nothing to read at %d, head %d", place, l.end)
				}
				break
			}
			if place += int64(len(b)); !begins[place] {
				t.Fatalf("a frame lies across the places around %d", place)
			}
		}
	}
}

func TestLogCeiling(t *testing.T) {
	const ceiling = 4 * segmentBytes
	rnd := rand.New(rand.NewPCG(2, 2))
	l, _ := newLog(ceiling)
	var most int64
	for range 3000 {
		n := 8 * (1 + rnd.IntN(3000))
		if rnd.IntN(100) == 0 {
			n = segmentBytes * (1 + rnd.IntN(6)) // up to more than the ceiling
		}
		l.add(n)
		var sum int64
		table := *l.table.Load()
		for _, s := range table {
			sum += int64(len(s.mem))
		}
		if sum != l.held || l.pool.held.Load() != sum {
			t.Fatalf("segments of %d bytes, but the log counts %d and the pool %d", sum, l.held, l.pool.held.Load())
		}
		if sum > ceiling && len(table) > 1 {
			t.Fatalf("%d bytes in %d segments, ceiling %d", sum, len(table), ceiling)
		}
		if l.first != table[0].start {
			t.Fatalf("first is %d, the oldest segment begins at %d", l.first, table[0].start)
		}
		most = max(most, sum)
	}
	if most <= ceiling {
		t.Fatal("no frame was larger than the ceiling")
	}
}

func TestBigFrameHasItsOwnSegment(t *testing.T) {
	l, _ := newLog(8 * segmentBytes)
	l.add(800)
	l.add(segmentBytes + 8)
	l.add(800)
	var sizes []int
	for _, s := range *l.table.Load() {
		sizes = append(sizes, len(s.mem))
	}
	if len(sizes) != 3 || sizes[0] != segmentBytes || sizes[1] != segmentBytes+8 || sizes[2] != segmentBytes {
		t.Fatalf("segments of %v bytes", sizes)
	}
	if b, ok := l.read(800); !ok || len(b) != segmentBytes+8 {
		t.Fatalf("read of the big frame: %d bytes, %v", len(b), ok)
	}
}

func TestReadOutsideTheLog(t *testing.T) {
	l, _ := newLog(2 * segmentBytes)
	if b, ok := l.read(0); !ok || len(b) != 0 {
		t.Fatalf("an empty log reads %q, %v", b, ok)
	}
	l.roll(5)
	l.add(80)
	l.append(make([]byte, 80)) // not published, nor is the segment behind it
	l.append(make([]byte, segmentBytes))
	head := l.head.Load()
	for _, c := range []struct {
		name  string
		place int64
		n     int
		ok    bool
	}{
		{"the first", 0, 0, false},
		{"just below the oldest", l.first - 8, 0, false},
		{"the oldest", l.first, 80, true},
		{"the last byte", head - 1, 1, true},
		{"the head", head, 0, true},
		{"not published", head + 8, 0, true},
		{"behind all", l.end, 0, true},
	} {
		if b, ok := l.read(c.place); ok != c.ok || len(b) != c.n {
			t.Errorf("%s: %d bytes, %v; want %d, %v", c.name, len(b), ok, c.n, c.ok)
		}
	}
}

func TestDropOldestKeepsTheNewest(t *testing.T) {
	l, _ := newLog(8 * segmentBytes)
	if l.dropOldest() {
		t.Fatal("an empty log gave up a segment")
	}
	l.roll(3)
	for left := 2; left > 0; left-- {
		if !l.dropOldest() || len(*l.table.Load()) != left || l.held != int64(left*segmentBytes) {
			t.Fatalf("held %d in %d segments, want %d segments", l.held, len(*l.table.Load()), left)
		}
	}
	if l.dropOldest() {
		t.Fatal("the segment written to was given up")
	}
}

// TestSegmentWaitsForTurns: what a turn has read stays as it is until the turn
// ends, and its segment is used again after that.
func TestSegmentWaitsForTurns(t *testing.T) {
	l, boxes := newLog(2 * segmentBytes)
	l.roll(1)
	boxes[0].Enter()
	b, _ := l.read(0)
	was := bytes.Clone(b)

	boxes[1].Enter() // another loop's turns make no difference
	l.roll(20)
	boxes[1].Leave()
	l.roll(20)
	if !bytes.Equal(b, was) {
		t.Fatal("bytes changed while a turn held them")
	}

	boxes[0].Leave()
	l.roll(20)
	if bytes.Equal(b, was) {
		t.Fatal("a segment that nobody reads is not used again")
	}
}

// TestSegmentOfAnEarlierTurn: a loop that is in a turn again can't be reading
// what left the log in the turn before.
func TestSegmentOfAnEarlierTurn(t *testing.T) {
	l, boxes := newLog(2 * segmentBytes)
	boxes[0].Enter()
	l.roll(4)
	left := l.pool.retired[0].seg
	boxes[0].Leave()
	boxes[0].Enter()
	l.roll(1)
	table := *l.table.Load()
	if table[len(table)-1] != left {
		t.Fatal("the segment was not used again")
	}
}

// TestSegmentsAreUsedAgain: a log at its ceiling needs no memory beside that of
// the segments on their way through the loops' turns.
func TestSegmentsAreUsedAgain(t *testing.T) {
	l, boxes := newLog(4 * segmentBytes)
	seen := map[*segment]bool{}
	for range 60 {
		boxes[0].Enter()
		l.roll(1)
		boxes[0].Leave()
		for _, s := range *l.table.Load() {
			seen[s] = true
		}
	}
	if len(seen) > 6 {
		t.Fatalf("60 rolls of a log of 4 segments used %d segments", len(seen))
	}
}

func TestPoolIsBounded(t *testing.T) {
	l, boxes := newLog(2 * segmentBytes)
	boxes[0].Enter() // nothing can be used again
	l.roll(freeSegmentsMax + 4)
	if n := len(l.pool.retired); n != freeSegmentsMax {
		t.Fatalf("%d segments wait, want %d", n, freeSegmentsMax)
	}
	boxes[0].Leave()
	for range freeSegmentsMax + 4 { // each takes one of those that wait, and leaves one of its own
		l.roll(1)
		l.add(2 * segmentBytes)
	}
	for _, r := range l.pool.retired {
		if len(r.seg.mem) != segmentBytes {
			t.Fatalf("a segment of %d bytes is kept", len(r.seg.mem))
		}
	}
	if n := len(l.pool.retired); n > freeSegmentsMax {
		t.Fatalf("%d segments wait", n)
	}
}

// TestReadersAgainstWriter: a writer at full speed rolls through a small log;
// two loops read what they find, and hold it for a while, unchanged.
func TestReadersAgainstWriter(t *testing.T) {
	const readsMin, rollsMax = 40, 20_000
	l, boxes := newLog(3 * segmentBytes)
	var written atomic.Bool
	var reads [2]atomic.Int64
	var wg sync.WaitGroup
	for i, box := range boxes {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 3))
			var place int64
			turn := func() bool {
				box.Enter()
				defer box.Leave()
				b, ok := l.read(place)
				if !ok {
					place = l.head.Load() // overwritten
					return true
				}
				if !filled(b, place) {
					t.Errorf("wrong bytes at %d", place)
					return false
				}
				if len(b) > 0 && rnd.IntN(8) == 0 { // hold on while the log rolls over it
					for !written.Load() && l.head.Load() < place+6*segmentBytes {
						runtime.Gosched()
					}
					if !filled(b, place) {
						t.Errorf("bytes at %d changed in a turn", place)
						return false
					}
				}
				if len(b) > 0 {
					reads[i].Add(1)
				}
				place += int64(len(b))
				return true
			}
			for !written.Load() || place < l.head.Load() {
				if !turn() {
					return
				}
			}
		})
	}
	rnd := rand.New(rand.NewPCG(9, 3))
	buf := make([]byte, segmentBytes+64)
	for l.end < rollsMax*segmentBytes && !t.Failed() && min(reads[0].Load(), reads[1].Load()) < readsMin {
		n := 8 * (1 + rnd.IntN(4000))
		if rnd.IntN(200) == 0 {
			n = len(buf)
		}
		l.append(fill(buf[:n], l.end))
		if rnd.IntN(3) == 0 {
			l.publish()
			// Give them a chance, not more: a reader that holds on waits for us.
			for sum, n := reads[0].Load()+reads[1].Load(), 0; n < 50 && sum == reads[0].Load()+reads[1].Load(); n++ {
				runtime.Gosched()
			}
		}
	}
	l.publish()
	written.Store(true)
	wg.Wait()
	if n := min(reads[0].Load(), reads[1].Load()); n < readsMin {
		t.Errorf("a loop read %d times while the log rolled %d times", n, l.end/segmentBytes)
	}
}
