//go:build !race

package frame

import (
	"fmt"
	"testing"
)

func noAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	f() // grows what is kept
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations", name, n)
	}
}

func TestEncodingAllocatesNothing(t *testing.T) {
	r := &Record{
		Topic: "events", Partition: 1, Offset: 7, Time: 1700000000000, Key: []byte("k\xff"), Value: []byte(`{"type":"ord\u0065r","x":"` + "\xff\r\n" + `"}`),
		Headers: []Header{{"h", []byte("order")}, {"i", []byte{0xFF}}},
	}
	tombstone := &Record{Key: []byte("k")}
	id := []byte(testID)
	var dst []byte
	for _, f := range []Format{
		{},
		{Binary: Base64},
		{Binary: Drop},
		{Envelope: true},
		{Envelope: true, Binary: Base64},
		{MaxEvent: 1},
		{Delete: DeleteSkip},
		{Event: EventName{Fixed: "order"}},
		{Event: EventName{Header: "h"}},
		{Event: EventName{JSON: "type"}},
	} {
		e := mustEncoder(t, f)
		noAllocs(t, fmt.Sprintf("%+v", f), func() {
			dst, _ = e.AppendEvent(dst[:0], id, r)
			dst, _ = e.AppendEvent(dst[:0], id, tombstone)
		})
	}
	lost := []Range{{"a", 0, 1, 2}, {"b", 0, -1, 3}}
	noAllocs(t, "notices", func() {
		dst = AppendPreamble(dst[:0], 2000, id)
		dst = AppendIDBlock(dst[:0], id)
		dst = AppendRetry(dst[:0], 2000)
		dst = AppendResync(dst[:0], id, Expired, lost)
	})
	frame, out := mustEncoder(t, Format{}).AppendEvent(nil, id, r)
	noAllocs(t, "reframed", func() {
		dst = AppendReframed(dst[:0], id, frame, out.Extents)
	})
}

func TestIDsAllocateNothing(t *testing.T) {
	for _, parts := range []int{1, 12, 100} {
		p := vector(parts, 95)
		var w IDWriter
		var dst []byte
		w.Set(vector(parts, 1<<40)) // as long as it gets here
		noAllocs(t, fmt.Sprintf("%d partitions, Set and Advance", parts), func() {
			w.Set(p)
			for next := int64(95); next < 105; next++ { // other lengths
				w.Advance(0, int32(parts-1), next)
				dst = w.Append(dst[:0])
			}
		})
		noAllocs(t, fmt.Sprintf("%d partitions, AppendID", parts), func() { dst = AppendID(dst[:0], p) })
	}
}

// TestBadIDsAllocateLittle: what an id costs is bounded by its length, not by
// what it announces.
func TestBadIDsAllocateLittle(t *testing.T) {
	for name, id := range map[string]string{
		"version":    "v9:0-5",
		"2^62 pairs": "v2." + rawURL([]byte{1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F, 0, 1}),
		"offset":     "v1:0-x",
	} {
		if n := testing.AllocsPerRun(100, func() { _, _ = ParseID([]byte(id)) }); n > 4 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
