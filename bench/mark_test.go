package bench

import (
	"slices"
	"testing"
)

func TestMark(t *testing.T) {
	for _, tt := range []struct {
		name     string
		seqs     []int64
		verdicts []verdict
		missing  int64
	}{
		{"in order", []int64{5, 6, 7}, []verdict{inOrder, inOrder, inOrder}, 0},
		{"gap", []int64{0, 3, 4}, []verdict{inOrder, afterGap, inOrder}, 2},
		{"late from below", []int64{0, 3, 1, 2, 4}, []verdict{inOrder, afterGap, late, late, inOrder}, 0},
		{"late from above", []int64{0, 3, 2, 1, 4}, []verdict{inOrder, afterGap, late, late, inOrder}, 0},
		{"late twice", []int64{0, 3, 1, 1}, []verdict{inOrder, afterGap, late, duplicate}, 1},
		{"again", []int64{0, 1, 1, 0, 2}, []verdict{inOrder, inOrder, duplicate, duplicate, inOrder}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMark()
			var got []verdict
			var missing int64
			for _, seq := range tt.seqs {
				v, n := m.see(seq)
				got = append(got, v)
				missing += n
			}
			if !slices.Equal(got, tt.verdicts) || missing != tt.missing {
				t.Errorf("got %v, %d missing; want %v, %d", got, missing, tt.verdicts, tt.missing)
			}
			if m.first != tt.seqs[0] || m.last != slices.Max(tt.seqs) {
				t.Errorf("first %d, last %d", m.first, m.last)
			}
		})
	}
}
