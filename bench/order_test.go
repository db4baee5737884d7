package bench

import (
	"testing"
	"time"
)

func TestSequence(t *testing.T) {
	s := Sequence{Partitions: 3}
	for i, want := range []Payload{{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {0, 1, 0, 0}} {
		got := s.Next(time.Unix(0, 0))
		if got.Time = 0; got != want {
			t.Errorf("record %d: %+v, want %+v", i, got, want)
		}
	}
	s = Sequence{Partitions: 2, Users: 3}
	for i, want := range []Payload{{1, 0, 0, 1}, {0, 0, 0, 2}, {1, 0, 0, 3}, {1, 1, 0, 1}} {
		got := s.Next(time.Unix(0, 0))
		if got.Time = 0; got != want {
			t.Errorf("record %d: %+v, want %+v", i, got, want)
		}
	}
}
