package bench

import (
	"testing"
	"time"
)

func TestFloorFrame(t *testing.T) {
	for _, size := range []int{0, 180, 190, 200, 245, 259, 261, 263, 300, 4000, 5000} {
		f := Floor{Size: 100, FrameBytes: size}
		for _, seq := range []int64{0, 9, 10, 123456} {
			frame := f.appendFrame(nil, seq, time.Unix(0, 7))
			if size > 0 && len(frame) != size {
				t.Errorf("FrameBytes %d, seq %d: %d bytes: %q", size, seq, len(frame), frame)
			}
			j := &judge{tally: &tally{verify: true, ids: true}}
			s := &stream{out: j}
			if err := s.feed([]byte(floorHead + string(frame))); err != nil {
				t.Fatal(err)
			}
			if n := j.tally.counts; n.Events != 1 || n.Faults() != 0 || j.marks[0].last != seq {
				t.Errorf("FrameBytes %d, seq %d: %+v: %q", size, seq, n, frame)
			}
		}
	}
}
