package kafkatail

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestDeletionIsConfirmed: a topic that was there is deleted only if it stays
// away, and not if it is back in between.
func TestDeletionIsConfirmed(t *testing.T) {
	r, ft, _ := fixture(t, newRecorder(t), 0)
	tp, confirm := r.t.topics["a"], r.t.cfg.Timing.Confirm
	began := time.Unix(1000, 0)
	there := topicMeta{id: ft.TopicID, leaders: []int32{noLeader}}
	for _, look := range []struct {
		after time.Duration
		there bool
		want  State
	}{
		{0, false, Tailing},
		{confirm - 1, false, Tailing},
		{confirm, true, Tailing},
		{confirm + 1, false, Tailing},
		{2 * confirm, false, Tailing},
		{2*confirm + 1, false, Missing},
	} {
		if v := (&view{at: began.Add(look.after)}); look.there {
			r.topic(tp, there, v, &plan{})
		} else {
			r.missing(tp, v.at, &plan{})
		}
		if tp.state != look.want {
			t.Errorf("after %v: %s, want %s", look.after, tp.state, look.want)
		}
	}
}

// TestPurgeForgetsPauses: a partition that was left alone when its topic was let
// go is read at once when the topic is read again.
func TestPurgeForgetsPauses(t *testing.T) {
	r, _, _ := fixture(t, newRecorder(t), 0)
	var err error
	if r.cl, err = kgo.NewClient(); err != nil {
		t.Fatal(err)
	}
	defer r.cl.Close()
	r.paused = map[place]time.Time{}
	r.pause(place{"a", 0}, time.Hour)
	r.pause(place{"b", 0}, time.Hour)
	r.purge([]string{"a"})
	if left := r.cl.PauseFetchPartitions(nil); len(r.paused) != 1 || len(left) != 1 || left["b"] == nil {
		t.Errorf("%v is paused, and %v in the library", r.paused, left)
	}
}

// TestProbeLeadsOn: batches without records, over which a probe came, are no
// reason to stay before them; what a probe says of another place is.
func TestProbeLeadsOn(t *testing.T) {
	for _, tc := range []struct {
		probe probed
		want  int64
	}{
		{probed{from: 5, next: 9, end: 9}, 9},
		{probed{from: 4, next: 9, end: 9}, 5},
		{probed{from: 5, next: 9, end: 9, records: true}, 5},
		{probed{from: 5, next: 5, end: 9}, 5},
	} {
		rec := newRecorder(t)
		r, _, _ := fixture(t, rec, 0)
		tp := r.t.topics["a"]
		p := &tp.parts[0]
		p.next, p.end = 5, 9
		tp.subs = []subscription{{sink: rec}}
		tp.announce()
		tp.flush(nil)
		pl := place{"a", 0}
		r.observe(tp, p, pl, &view{at: time.Unix(1000, 0), probes: map[place]probed{pl: tc.probe}})
		if told, _ := rec.position(0); p.next != tc.want || told != tc.want || tp.unflushed != (tc.want > 5) {
			t.Errorf("%+v: at %d, sinks told %t", tc.probe, p.next, tp.unflushed)
		}
	}
}
