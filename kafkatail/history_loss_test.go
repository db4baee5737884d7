package kafkatail

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/hub"
)

// Retention passed the offset: the answer says where the log begins, and
// nothing below it is told though its batch is still there (case C01).
func TestHistoryExpired(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	h := newHistorian(t, c)
	cl := c.client(kgo.ManualFlushing())
	for range 4 {
		var recs []*kgo.Record
		for range 5 {
			recs = append(recs, &kgo.Record{Topic: "a", Value: []byte("x")})
		}
		oneBatch(t, cl, recs...)
	}
	if err := c.DeleteRecords("a", 0, 12); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 10, 11} {
		_, recs, err := h.read(0, from)
		var expired *hub.ExpiredError
		if !errors.As(err, &expired) || expired.Start != 12 || len(recs) > 0 {
			t.Errorf("from %d: %v, %v", from, recs, err)
		}
	}
	span, recs, err := h.read(0, 13)
	if err != nil || span.Start != 12 {
		t.Errorf("read %+v, %v", span, err)
	}
	wantRead(t, recs, upTo(12, 20))
	wantBounds(t, h, hub.Bound{Start: 12, End: 20})
	if err := c.DeleteRecords("a", 0, 20); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.read(0, 13); err == nil || !strings.Contains(err.Error(), "begins at offset 20") {
		t.Errorf("of a log that is empty: %v", err)
	}
	if span, _, err := h.read(0, 20); err != nil || span.Next != 20 {
		t.Errorf("at the end of a log that is empty: %+v, %v", span, err)
	}
}

// At the end, and beyond it, there is nothing yet (cases C05, C36).
func TestHistoryBeyondTheEnd(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(2, "a"))
	h := newHistorian(t, c)
	produce(t, c.client(), "a", 0, 3)
	for _, tc := range []struct {
		partition int32
		from      int64
	}{{0, 3}, {0, 4}, {0, 1 << 62}, {1, 0}, {1, 1}} {
		span, recs, err := h.read(tc.partition, tc.from)
		if want := (hub.Span{Start: tc.from, Next: tc.from}); err != nil || span != want || len(recs) > 0 {
			t.Errorf("partition %d from %d: %+v, %v", tc.partition, tc.from, span, err)
		}
	}
}

// A topic of the same name is not the one that was asked for (case C02).
func TestHistoryRecreated(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	h := newHistorian(t, c)
	produce(t, c.client(), "a", 0, 5)
	wantRead(t, h.all(0, 0), upTo(0, 5)) // leaders and ids are known
	wantBounds(t, h, hub.Bound{End: 5})
	if err := c.DeleteTopic("a"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.read(0, 0); err == nil || errors.Is(err, hub.ErrRecreated) {
		t.Errorf("of a topic that is missing: %v", err)
	}
	if err := c.CreateTopic("a", 1, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, c.client(), "a", 0, 9)
	if _, recs, err := h.read(0, 0); !errors.Is(err, hub.ErrRecreated) || len(recs) > 0 {
		t.Errorf("read: %v, %d records", err, len(recs))
	}
	eventually(t, "bounds of what is there now", func() (bool, any) { // they may be a second old
		_, err := h.Bounds(t.Context(), "a", h.id)
		return errors.Is(err, hub.ErrRecreated), err
	})
	h.id = c.TopicInfo("a").TopicID
	wantRead(t, h.all(0, 0), upTo(0, 9))
	wantBounds(t, h, hub.Bound{End: 9})
}

// A broker that still shows a former incarnation is asked again.
func TestHistoryFromABrokerThatLagsBehind(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	produce(t, c.client(), "a", 0, 3)
	h := newHistorian(t, c)
	brokers := c.metadataBrokers()
	stale := func() {
		c.ControlKey(int16(kmsg.Metadata), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			resp := kreq.(*kmsg.MetadataRequest).ResponseKind().(*kmsg.MetadataResponse)
			resp.ClusterID, resp.ControllerID, resp.Brokers = new("c"), 0, brokers
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic, topic.TopicID = new("a"), [16]byte{1}
			resp.Topics = append(resp.Topics, topic)
			return resp, nil, true
		})
	}
	stale()
	wantRead(t, h.all(0, 0), upTo(0, 3))
	stale()
	wantBounds(t, h, hub.Bound{End: 3})
}

// A batch that would decompress without bounds is an expired range, as for a
// live stream; what is before and behind it is told.
func TestHistoryBatchTooLarge(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	h := newHistorian(t, c, func(c *Config) { c.decompressBytesMax = 64 << 10 })
	for _, codec := range codecs[1:] {
		cl := c.client(kgo.ProducerBatchCompression(codec), kgo.ManualFlushing())
		from := c.PartitionInfo("a", 0).HighWatermark
		oneBatch(t, cl, &kgo.Record{Topic: "a", Value: []byte("before")})
		oneBatch(t, cl, &kgo.Record{Topic: "a", Value: make([]byte, 900<<10)}, &kgo.Record{Topic: "a", Value: []byte("with it")})
		oneBatch(t, cl, &kgo.Record{Topic: "a", Value: []byte("after")})
		span, recs, err := h.read(0, from)
		if err != nil || span.Next != from+1 {
			t.Errorf("before it: %+v, %v", span, err)
		}
		wantRead(t, recs, []int64{from})
		for _, at := range []int64{from + 1, from + 2} {
			_, _, err = h.read(0, at)
			var expired *hub.ExpiredError
			if !errors.As(err, &expired) || expired.Start != from+3 {
				t.Errorf("from %d: %v", at, err)
			}
		}
		wantRead(t, h.all(0, from+3), []int64{from + 3})
	}
}
