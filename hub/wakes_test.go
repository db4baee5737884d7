package hub

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tailcast/frame"
)

// TestRoundWakesOnce: whatever the number of feeds that a round flushes, a loop
// is woken once, when it ends, and has all of them then.
func TestRoundWakesOnce(t *testing.T) {
	const feeds = wakesHeld * 3 / 4
	var woken [3]int // times, by loop
	boxes := make([]*Mailbox, len(woken))
	for i := range boxes {
		boxes[i] = NewMailbox(func() { woken[i]++ })
	}
	h := New(testOptions, boxes)
	var sinks []Sink
	for i := range feeds {
		f, s := openFeed(t, h, Spec{Topics: []string{fmt.Sprint("t", i)}})
		s[0].Open(topicID(1), nil)
		sinks = append(sinks, s[0])
		f.Reader(boxes[0])
		if i%10 == 0 {
			f.Reader(boxes[1])
		}
	}
	var w Wakes
	for round := range 3 {
		for _, s := range sinks {
			s.Append(0, []frame.Record{record(0, int64(round))})
			s.Flush(&w)
		}
		if want := [...]int{round, round, 0}; woken != want {
			t.Fatalf("before the end of round %d: woken %v, want %v", round, woken, want)
		}
		w.Wake()
		if want := [...]int{round + 1, round + 1, 0}; woken != want {
			t.Fatalf("round %d: woken %v, want %v", round, woken, want)
		}
		for i, want := range []int{feeds, 1 + (feeds-1)/10, 0} {
			if got := len(boxes[i].Take(nil)); got != want {
				t.Errorf("round %d: loop %d has %d feeds, want %d", round, i, got, want)
			}
		}
	}
}

// wakesModel says what mailboxes and rounds do: marks that nobody has taken,
// and who has been woken for them.
type wakesModel struct {
	t       *testing.T
	boxes   []*Mailbox
	pending []map[*Reader]bool // marked and not taken, by loop
	woken   []int              // since the last Take, by loop
	rounds  []*Wakes           // the first is nil
	holds   []bool             // a mark was made in the round, which has not ended
}

func newWakesModel(t *testing.T, loops, rounds int) *wakesModel {
	m := &wakesModel{t: t, woken: make([]int, loops), rounds: make([]*Wakes, 1+rounds), holds: make([]bool, 1+rounds)}
	for i := range loops {
		m.pending = append(m.pending, map[*Reader]bool{})
		m.boxes = append(m.boxes, NewMailbox(func() {
			if m.woken[i]++; len(m.boxes[i].dirty) == 0 {
				t.Errorf("loop %d is woken for nothing", i)
			}
		}))
	}
	for i := range m.rounds[1:] {
		m.rounds[1+i] = &Wakes{}
	}
	return m
}

func (m *wakesModel) mark(loop, round int, r *Reader) {
	m.pending[loop][r] = true
	m.holds[round] = round > 0
	m.boxes[loop].mark(r, m.rounds[round])
}

func (m *wakesModel) take(loop int) {
	got := m.boxes[loop].Take(nil)
	for _, r := range got {
		if !m.pending[loop][r] {
			m.t.Errorf("loop %d has a reader that was not marked", loop)
		}
	}
	if len(got) != len(m.pending[loop]) {
		m.t.Errorf("loop %d has %d readers, want %d", loop, len(got), len(m.pending[loop]))
	}
	clear(m.pending[loop])
	m.woken[loop] = 0
}

func (m *wakesModel) end(round int) {
	m.rounds[round].Wake()
	m.holds[round] = false
}

func (m *wakesModel) check() {
	held := slices.Contains(m.holds, true)
	for i, n := range m.woken {
		switch marks := len(m.pending[i]); {
		case n > 1:
			m.t.Errorf("loop %d is woken %d times", i, n)
		case n == 0 && marks > 0 && !held:
			m.t.Errorf("loop %d has %d marks, and nobody wakes it", i, marks)
		case n == 0 && marks >= (len(m.rounds)-1)*wakesHeld:
			m.t.Errorf("loop %d is not woken for %d marks", i, marks)
		}
	}
}

// TestWakesModel: whoever marks, in rounds of several or at once, and whenever
// loops take: a loop that has marks is woken, once, when no round is left that
// could, and no later than for so many marks.
func TestWakesModel(t *testing.T) {
	const loops, rounds, readers, steps = 3, 2, 1000, 30_000
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		m := newWakesModel(t, loops, rounds)
		var all [loops][readers]Reader
		takes, ends := 1<<rnd.IntN(9), 1<<rnd.IntN(9) // of 10,000 steps: from a few marks a round to many more than are held
		for step := range steps {
			loop, round := rnd.IntN(loops), 1+rnd.IntN(rounds)
			switch n := rnd.IntN(10_000); {
			case n < takes:
				m.take(loop)
			case n < takes+ends:
				m.end(round)
			case n >= 9_990:
				m.mark(loop, 0, &all[loop][rnd.IntN(readers)])
			default:
				m.mark(loop, round, &all[loop][rnd.IntN(readers)])
			}
			if m.check(); t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}
