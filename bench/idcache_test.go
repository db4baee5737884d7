package bench

import (
	"fmt"
	"strings"
	"testing"
)

// TestIDCache shows that a remembered id says what it says when it is read, and
// that another of the same record does not pass for it.
func TestIDCache(t *testing.T) {
	id := func(first int) string {
		var b strings.Builder
		for p := range 20 {
			fmt.Fprintf(&b, ".%d-%d", p, first+p)
		}
		return "v1:" + b.String()[1:] + "~ab3f9"
	}
	var c idCache
	for _, text := range []string{id(100), id(100), id(200), id(100), "v1:0-5", id(100) + "x", id(300)} {
		for _, p := range []int32{0, 7} {
			wantOffset, wantOK := readID([]byte(text), p)
			for range 2 {
				if offset, ok := c.read([]byte(text), p, 41); offset != wantOffset || ok != wantOK {
					t.Errorf("%s, partition %d: %d, %t; want %d, %t", text, p, offset, ok, wantOffset, wantOK)
				}
			}
		}
	}
}
