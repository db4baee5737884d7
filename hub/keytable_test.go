package hub

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestKeyTable puts, forgets and expires at random and holds the table against
// a map: what it holds, in which order, how much, and that most of its memory
// is not garbage. Some keys share a hash.
func TestKeyTable(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { keyTableAtRandom(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

type keyModel struct {
	offset int64
	rest   string
	at     int64
}

func keyTableAtRandom(t *testing.T, r *rand.Rand) {
	table := newKeyTable()
	if r.IntN(2) == 0 {
		table.hash = func(key []byte) uint64 { return uint64(len(key)) } // a few of them
	}
	want := map[string]keyModel{}
	keys := 1 + r.IntN(3000)
	offset, dropped := int64(0), int64(0)
	for step := range 20_000 {
		offset += 1 + r.Int64N(3)
		key := fmt.Sprint("k", r.IntN(keys))
		switch n := r.IntN(1000); {
		case n < 700:
			m := keyModel{offset, strings.Repeat("x", r.IntN(100)*r.IntN(2)), -1}
			if n < 2 {
				m.rest = strings.Repeat("y", keySegmentBytes+r.IntN(keySegmentBytes))
			}
			table.put(offset, []byte(key), []byte(m.rest), m.at)
			want[key] = m
		case n < 900:
			m := keyModel{offset, "gone", int64(step)}
			table.put(offset, []byte(key), []byte(m.rest), m.at)
			want[key] = m
		case n < 998:
			table.forget([]byte(key))
			delete(want, key)
		default:
			before := int64(step - r.IntN(5000))
			for key, m := range want {
				if m.at >= 0 && m.at < before {
					dropped = max(dropped, m.offset+1)
					delete(want, key)
				}
			}
			for most := 1 + r.IntN(3); table.expire(before, most); { // in one go it is the same
			}
		}
	}
	if table.dropped != dropped {
		t.Errorf("forgot tombstones before %d, want %d", table.dropped, dropped)
	}
	wantKeyTable(t, table, want, 0)
	wantKeyTable(t, table, want, offset/2)
	wantKeyTable(t, table, want, offset+1)
	wantThrift(t, table, want)
}

func wantKeyTable(t *testing.T, table *keyTable, want map[string]keyModel, from int64) {
	t.Helper()
	var order []string
	deletes := 0
	for key, m := range want {
		if m.offset >= from {
			order = append(order, key)
		}
		if m.at >= 0 {
			deletes++
		}
	}
	slices.SortFunc(order, func(a, b string) int { return int(want[a].offset - want[b].offset) })
	var got []string
	table.from(from, func(r *keyRecord) bool {
		if r.dead {
			return true
		}
		got = append(got, string(r.key))
		if m := want[string(r.key)]; m != (keyModel{r.offset, string(r.rest), r.at}) {
			t.Fatalf("key %s: %d, %.20q at %d, want %d, %.20q at %d", r.key, r.offset, r.rest, r.at, m.offset, m.rest, m.at)
		}
		return true
	})
	if !slices.Equal(got, order) {
		t.Fatalf("from %d: %d keys, want %d, or in another order", from, len(got), len(order))
	}
	if table.live != len(want) || table.deletes != deletes {
		t.Errorf("%d keys, %d deletes; want %d, %d", table.live, table.deletes, len(want), deletes)
	}
}

// wantThrift holds what the table has in memory against its records and its
// own account.
func wantThrift(t *testing.T, table *keyTable, want map[string]keyModel) {
	t.Helper()
	var records, held int64
	for key, m := range want {
		records += int64(len(key) + len(m.rest))
		if m.at >= 0 {
			records += 8
		}
	}
	for _, s := range table.segs {
		held += s.size()
	}
	if held != table.held {
		t.Errorf("holds %d bytes and counts %d", held, table.held)
	}
	if most := 3*(records+16*int64(len(want))) + 6*keySegmentBytes; held > most {
		t.Errorf("holds %d bytes for %d of %d records", held, records, len(want))
	}
	if n := int64(len(table.segs)); n > 8+8*records/keySegmentBytes+int64(len(want))/100 {
		t.Errorf("%d segments for %d bytes", n, records)
	}
}

// TestKeyTableIsScannedInSlices: a visit may end anywhere and go on behind.
func TestKeyTableIsScannedInSlices(t *testing.T) {
	table := newKeyTable()
	for o := range int64(5000) {
		table.put(o, fmt.Append(nil, o%700), make([]byte, 50), -1)
	}
	var got []int64
	for from := int64(0); ; {
		n := 0
		table.from(from, func(r *keyRecord) bool {
			if n == 7 {
				return false
			}
			n++
			from = r.offset + 1
			if !r.dead {
				got = append(got, r.offset)
			}
			return true
		})
		if n == 0 {
			break
		}
	}
	var want []int64
	for o := int64(4300); o < 5000; o++ {
		want = append(want, o)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func BenchmarkKeyTablePut(b *testing.B) {
	table := newKeyTable()
	keys := make([][]byte, 100_000)
	for i := range keys {
		keys[i] = fmt.Append(nil, "user-", i)
	}
	rest := make([]byte, 200)
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	offset := int64(0)
	for b.Loop() {
		offset++
		table.put(offset, keys[r.IntN(len(keys))], rest, -1)
	}
	b.ReportMetric(float64(table.bytes())/float64(max(1, table.live)), "B/key")
}

// TestKeyTableExpiresInSlices: a table with tombstones all over is not looked
// through at once, for a feed is locked meanwhile.
func TestKeyTableExpiresInSlices(t *testing.T) {
	table := newKeyTable()
	rest := make([]byte, keySegmentBytes/4)
	for o := range int64(30) {
		table.put(o, fmt.Append(nil, o), rest, o)
	}
	segments := len(table.segs)
	for n := 1; table.expire(1000, 2); n++ {
		if left := len(table.segs); left != segments-2*n {
			t.Fatalf("%d segments of %d are left after %d times two", left, segments, n)
		}
	}
	if table.live != 0 || table.dropped != 30 || segments < 7 {
		t.Errorf("%d of 30 are left, those before %d forgotten, in %d segments", table.live, table.dropped, segments)
	}
}
