package frame

import (
	"bytes"
	"fmt"
	"testing"
)

// TestChunkHeadFits goes through the lengths at which the head gets another
// digit, with guesses that are right, too small and too large.
func TestChunkHeadFits(t *testing.T) {
	for _, edge := range []int{1, 16, 256, 4096, 65536} {
		for n := max(1, edge-2); n < edge+2; n++ {
			data := bytes.Repeat([]byte("ab"), n)[:n]
			want := fmt.Sprintf("before%x\r\n%s\r\n", n, data)
			for _, guess := range []int{0, 1, n / 16, n, n + 1, 20 * n} {
				for _, room := range []int{0, 3, 2*n + 64} {
					dst, c := beginChunk(append(make([]byte, 0, 6+room), "before"...), guess)
					dst = append(dst, data...)
					if got := c.end(dst); string(got) != want || c.head != len(fmt.Sprintf("%x\r\n", n)) {
						t.Fatalf("%d bytes, guess %d, room %d: got %.20q of head %d", n, guess, room, got, c.head)
					}
				}
			}
		}
	}
}

func TestLenStepsThroughFrames(t *testing.T) {
	var log []byte
	var want []int
	add := func(b []byte) { log, want = append(log, b...), append(want, len(b)) }
	for n := range 5 {
		frame, _, _ := encode(t, Format{}, &Record{Value: bytes.Repeat([]byte("x"), 1<<(4*n))})
		add(frame)
		add([]byte(Heartbeat))
	}
	add(AppendIDBlock(nil, []byte(testID)))
	for i, n := range want {
		if got := Len(log); got != n {
			t.Fatalf("frame %d: got %d, want %d", i, got, n)
		}
		log = log[n:]
	}
}
