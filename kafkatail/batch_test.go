package kafkatail

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestMillis: any timestamp that the library was given is told as it was.
func TestMillis(t *testing.T) {
	for _, want := range []int64{
		0, 1, -1, 999, 1796059213251,
		9223372036854, 9223372036855, // 2262, the last that fits, and the first that does not
		-9223372036854, -9223372036855,
		253402300799999,       // the end of the year 9999
		1796059213251000,      // microseconds by mistake
		9007199254740993,      // over 2^53
		1<<57 - 1, -(1 << 57), // as far as it goes
	} {
		rec := kgo.Record{Timestamp: time.Unix(0, want*1e6)} // as the library makes it
		if got := millis(&rec); got != want {
			t.Errorf("%d becomes %d", want, got)
		}
	}
	if got := millis(&kgo.Record{}); got >= 0 {
		t.Errorf("no timestamp becomes %d", got)
	}
}
