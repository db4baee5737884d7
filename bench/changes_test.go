package bench

import (
	"testing"
	"time"
)

// TestChanges compares the records with what a table makes of them.
func TestChanges(t *testing.T) {
	const keys, changes = 1000, 20_000
	c := Changes{Keys: keys, Partitions: 3}
	state, seqs := map[int64]int64{}, map[int64]int64{}
	deletes, back := 0, 0
	for n := range int64(keys + changes) {
		p, deleted := c.Next(time.Unix(0, 7))
		if n < keys && (p.User != n+1 || deleted) {
			t.Fatalf("record %d is %+v, deleted %t; want one for each key", n, p, deleted)
		}
		if p.User < 1 || p.User > keys || p.Seq != seqs[p.User] || int64(p.Partition) != p.User%3 || p.Time != 7 {
			t.Fatalf("record %d is %+v, want number %d of its key", n, p, seqs[p.User])
		}
		seqs[p.User]++
		if _, there := state[p.User]; !there && !deleted && n >= keys {
			back++
		}
		state[p.User] = p.Seq
		if deleted {
			delete(state, p.User)
			deletes++
		}
	}
	if deletes < changes/6 || deletes > changes/4 || back < 100 {
		t.Errorf("%d deletions, %d keys came back", deletes, back)
	}
	again := Changes{Keys: keys, Partitions: 3}
	again.Skip(keys + changes)
	for key := range int64(keys + 1) {
		seq, there := state[key]
		if s := again.state[key]; s.has() != there || there && s.next() != seq+1 {
			t.Errorf("key %d: %#x, want record %d, there: %t", key, s, seq, there)
		}
	}
}

func TestChangesOfOneKey(t *testing.T) {
	c := Changes{Keys: 1, Partitions: 1}
	c.Skip(100)
	if n := c.state[1].next(); n != 100 {
		t.Errorf("%d records, want 100", n)
	}
}
