package kafkatail

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
	"tailcast/hub"
)

// catcher is a source that keeps the sink of the feed that was opened last.
type catcher struct{ sink hub.Sink }

func (c *catcher) Tail(_ string, sink hub.Sink) { c.sink = sink }
func (c *catcher) End(string, hub.Sink)         {}

// TestPollWakesOnce: a poll that has a record for each of many feeds wakes a
// loop that reads all of them once, and one that reads none not at all.
func TestPollWakesOnce(t *testing.T) {
	const feeds = 200
	r, _, _ := fixture(t, nil, 0)
	var wakes, others int
	box, other := hub.NewMailbox(func() { wakes++ }), hub.NewMailbox(func() { others++ })
	h := hub.New(hub.Options{LogBytes: 1 << 20, LogBytesTotal: 1 << 30}, []*hub.Mailbox{box, other})
	poll := make(kgo.Fetches, 1)
	for i := range feeds {
		name, id := fmt.Sprint("t", i), frame.TopicID{byte(i + 1)}
		var c catcher
		f, err := h.Open(hub.Spec{Topics: []string{name}}, &c)
		if err != nil {
			t.Fatal(err)
		}
		c.sink.Open(id, nil)
		f.Reader(box)
		r.t.topics[name] = &topic{
			name: name, id: id, state: Tailing, opened: true,
			parts: []partition{{reading: true, start: -1, end: -1}},
			subs:  []subscription{{sink: c.sink, open: true, id: id}},
		}
		poll[0].Topics = append(poll[0].Topics, kgo.FetchTopic{
			Topic: name, TopicID: id, Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{{Value: []byte("x")}}}},
		})
	}
	for n := range 3 {
		r.apply(poll)
		if wakes != n+1 || others != 0 {
			t.Errorf("poll %d: %d wakes so far, and %d of the loop without feeds", n, wakes, others)
		}
		if got := len(box.Take(nil)); got != feeds {
			t.Errorf("poll %d: the loop has %d feeds, want %d", n, got, feeds)
		}
		for i := range poll[0].Topics {
			poll[0].Topics[i].Partitions[0].Records[0].Offset++
		}
	}
}
