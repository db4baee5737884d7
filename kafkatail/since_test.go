package kafkatail

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
	"tailcast/hub"
)

// TestHistorySince: where records of a time begin, by partition; the end where
// there are none, which a time to come has everywhere.
func TestHistorySince(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(3, "a"))
	h := newHistorian(t, c)
	cl := c.client()
	for i := range 10 {
		send(t, cl, &kgo.Record{Topic: "a", Value: []byte("v"), Timestamp: time.UnixMilli(int64(1000 + 10*i))})
		if i < 5 {
			send(t, cl, &kgo.Record{Topic: "a", Partition: 2, Value: []byte("v"), Timestamp: time.UnixMilli(int64(1000 + 10*i))})
		}
	}
	for _, tc := range []struct {
		millis int64
		starts [3]int64
	}{
		{-1, [3]int64{0, 0, 0}},
		{0, [3]int64{0, 0, 0}},
		{1000, [3]int64{0, 0, 0}},
		{1031, [3]int64{4, 0, 4}},
		{1040, [3]int64{4, 0, 4}},
		{1041, [3]int64{5, 0, 5}},
		{1090, [3]int64{9, 0, 5}},
		{1091, [3]int64{10, 0, 5}},
		{time.Now().Add(time.Hour).UnixMilli(), [3]int64{10, 0, 5}},
	} {
		want := []hub.Bound{{Partition: 0, Start: tc.starts[0], End: 10}, {Partition: 1, Start: tc.starts[1], End: 0}, {Partition: 2, Start: tc.starts[2], End: 5}}
		got, err := h.Since(t.Context(), "a", h.id, tc.millis)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("since %d: %+v, %v, want %+v", tc.millis, got, err, want)
		}
	}
	if _, err := h.Since(t.Context(), "a", frame.TopicID{1}, 0); !errors.Is(err, hub.ErrRecreated) {
		t.Errorf("of another topic: %v", err)
	}
}
