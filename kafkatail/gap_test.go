package kafkatail

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A reader of few partitions fetches without a pause, one of very many with one
// that people do not notice.
func TestFetchGap(t *testing.T) {
	for n, want := range map[int]bool{1: false, 12: false, 100: false, gapFreePartitions: false, gapFreePartitions + 1: true, 100_000: true} {
		if gap := fetchGap(n); gap > 0 != want || gap > fetchGapMax {
			t.Errorf("%d partitions are fetched every %v", n, gap)
		}
	}
}

// TestManyTopics: of hundreds of topics that get a record each now and then,
// every record comes once and in order, in far fewer polls than records.
func TestManyTopics(t *testing.T) {
	const topics, rounds = 600, 4
	var names []string
	for i := range topics {
		names = append(names, fmt.Sprint("t", i))
	}
	c := newCluster(t, kfake.SeedTopics(1, names...))
	cl := c.client()
	tail := startTail(t, c.ListenAddrs())
	recs := make([]*recorder, topics)
	for i, name := range names {
		recs[i] = newRecorder(t)
		tail.Tail.Tail(name, recs[i])
	}
	for _, rec := range recs {
		waitOpen(t, rec)
	}
	before := tail.Status().Counters.Polls
	for range rounds {
		for _, name := range names {
			cl.Produce(t.Context(), &kgo.Record{Topic: name, Value: []byte("x")}, nil)
		}
		if err := cl.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, rec := range recs {
		wantOffsets(t, rec, 0, upTo(0, rounds))
	}
	if n := tail.Status().Counters.Polls - before; n > topics*rounds/4 {
		t.Errorf("%d polls for %d records", n, topics*rounds)
	}
}
