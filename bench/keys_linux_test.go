package bench

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestKeys shows that what a stream has of each key is compared with what it
// should have, and each difference counted as what it is. Key 1 has had three
// records, key 2 one, key 3 two, of which the last deleted it.
func TestKeys(t *testing.T) {
	want := &Changes{Keys: 3, state: []keyState{0, 3, 1, 2 | keyGone}}
	one, two := keyRecord(9, 1, 2), keyRecord(10, 2, 0)
	for _, tt := range []struct {
		name, in string
		want     Counts // what it says of keys, resyncs, and what can't be read
	}{
		{"right", one + two, Counts{}},
		{"right, by every record", keyRecord(1, 1, 0) + keyRecord(2, 1, 1) + keyRecord(3, 3, 0) + keyDelete(4, 3) + one + two, Counts{}},
		{"deleted and back", keyRecord(1, 1, 0) + keyDelete(2, 1) + one + two, Counts{}},
		{"deletions of what it never had", keyDelete(3, 3) + keyDelete(4, 3) + one + two, Counts{}},
		{"an older record", keyRecord(1, 1, 1) + two, Counts{Wrong: 1}},
		{"no record", one, Counts{Lacking: 1}},
		{"deleted, but there", keyDelete(4, 2) + one, Counts{Lacking: 1}},
		{"there, but deleted", keyRecord(1, 3, 0) + one + two, Counts{Undead: 1}},
		{"back from the dead", keyRecord(1, 3, 0) + keyDelete(2, 3) + keyRecord(3, 3, 0) + one + two, Counts{Stale: 1, Undead: 1}},
		{"the same again", one + keyRecord(10, 1, 2) + keyRecord(11, 2, 0), Counts{Stale: 1}},
		{"an older one behind a later", one + keyRecord(10, 1, 1) + keyRecord(11, 2, 0), Counts{Stale: 1, Wrong: 1}},
		{"another order of offsets", keyRecord(9, 2, 0) + keyRecord(9, 1, 2), Counts{BadIDs: 1}},
		{"a key that is none", one + two + keyRecord(11, 4, 0) + keyDelete(12, 4) + keyDelete(13, 0), Counts{Unreadable: 3}},
		{"a deletion without a key", one + two + "event: delete\ndata: x\n\n", Counts{Unreadable: 1}},
		{"a whole snapshot behind a resync", keyRecord(8, 3, 0) + "event: resync\nid: v1:\ndata: {}\n\n" + keyRecord(1, 1, 2) + keyRecord(2, 2, 0), Counts{Resyncs: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := serve(t, func(c net.Conn, _ string) {
				send(c, chunk(tt.in)+chunk(liveEvent)+chunk(": done\n"))
				idle(c)
			})
			cl := newClient(t, Config{URL: url, Conns: 2, Keys: 3})
			cl.mustOpen(t)
			cl.runUntilTrue(t, "last line", func() bool { return cl.tally.counts.Comments == 2 })
			cl.CompareKeys(want)
			got := cl.Result().Counts
			for _, n := range []*int64{&tt.want.Stale, &tt.want.Wrong, &tt.want.Lacking, &tt.want.Undead, &tt.want.BadIDs, &tt.want.Unreadable, &tt.want.Resyncs} {
				*n *= 2 // streams
			}
			got.Events, got.Deletes, got.Live, got.Bytes, got.Comments, got.Opened = 0, 0, 0, 0, 0, 0
			if got != tt.want || cl.Live() != 2 || len(cl.tally.faults) != int(got.Faults()) {
				t.Errorf("got %+v\nwant %+v\n%d live, faults %q", got, tt.want, cl.Live(), cl.tally.faults)
			}
		})
	}
}

// TestCutOnce has half of the streams drop out in the middle of a state, against
// a server that lets them go on right there, and one that begins again too late.
func TestCutOnce(t *testing.T) {
	const keys, streams = 2000, 10
	want := &Changes{Keys: keys, Partitions: 1}
	want.Skip(keys)
	for _, late := range []int64{0, 1} {
		url := serve(t, func(c net.Conn, lastID string) {
			seq := int64(0)
			if _, offset, ok := strings.Cut(strings.TrimSuffix(lastID, "~ab3f9"), "v1:0-"); ok {
				seq, _ = strconv.ParseInt(offset, 10, 64)
				seq += 1 + late
			}
			for ; seq < keys; seq++ {
				if !send(c, chunk(keyRecord(seq, seq+1, 0))) {
					return
				}
			}
			send(c, chunk(liveEvent))
			idle(c)
		})
		cl := newClient(t, Config{URL: url, Conns: streams, Keys: keys, CutOnce: streams / 2, CutBefore: keys / 2, RetryMax: time.Millisecond})
		cl.mustOpen(t)
		cl.runUntilTrue(t, "the end of every stream", func() bool { return cl.Live() == streams && cl.Short([]int64{keys}) == 0 })
		if n := cl.Short([]int64{keys + 1}); n != streams {
			t.Errorf("%d streams are short of one more record", n)
		}
		cl.CompareKeys(want)
		r := cl.Result()
		if n := r.Counts; n.Cut != streams/2 || n.Opened != streams+streams/2 || n.Lacking != late*streams/2 || n.Faults() != n.Lacking {
			t.Errorf("late by %d: %+v: %q", late, n, r.Faults)
		}
		if r.FirstMS.Samples != streams || r.LiveMS.Samples != streams || r.LiveMS.P50 < r.FirstMS.P50 {
			t.Errorf("first records %+v, live %+v", r.FirstMS, r.LiveMS)
		}
	}
}

func TestKeysConfig(t *testing.T) {
	for _, cfg := range []Config{
		{Conns: 1000, Keys: KeyStatesMax/1000 + 1},
		{Conns: 1, Keys: -1},
		{Conns: 1, CutOnce: 2, CutBefore: 1},
		{Conns: 1, CutOnce: 1},
	} {
		cfg.URL = "http://127.0.0.1:1/"
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}
