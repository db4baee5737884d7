package kafkatail

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A topic whose last sink has ended is read no longer, and read from its end
// when it gets another one, with nothing twice and nothing missing after that.
func TestEndOfATopic(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a", "b"))
	cl := c.client()
	tail := startTail(t, c.ListenAddrs())
	other := tail.follow(t, "b")
	for round := range int64(5) {
		from := round * 6
		one, two := tail.follow(t, "a"), tail.follow(t, "a")
		produce(t, cl, "a", 0, 2)
		wantOffsets(t, one, 0, upTo(from, from+2))
		wantOffsets(t, two, 0, upTo(from, from+2))
		tail.End("a", one)
		produce(t, cl, "a", 0, 2)
		wantOffsets(t, two, 0, upTo(from, from+4))
		tail.End("a", two)
		eventually(t, "the topic to be let go", func() (bool, any) {
			s := tail.Status()
			return len(s.Topics) == 1, s.Topics
		})
		produce(t, cl, "a", 0, 2)
		produce(t, cl, "b", 0, 1)
		wantOffsets(t, other, 0, upTo(0, round+1))
		if n := two.count(); n != 4 {
			t.Errorf("a sink that ended got %d records", n)
		}
	}
	if n := tail.Status().Counters.Records; n != 25 {
		t.Errorf("%d records are counted, want 25", n)
	}
}

// A sink that ends and one that comes in the same moment change nothing for the
// topic.
func TestEndAndTailAtOnce(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	cl := c.client()
	tail := startTail(t, c.ListenAddrs())
	old := tail.follow(t, "a")
	for i := range int64(20) {
		next := newRecorder(t)
		if i%2 == 0 {
			tail.Tail.Tail("a", next)
			tail.End("a", old)
		} else {
			tail.End("a", old)
			tail.Tail.Tail("a", next)
		}
		waitOpen(t, next)
		produce(t, cl, "a", 0, 1)
		wantOffsets(t, next, 0, upTo(i, i+1))
		old = next
	}
}

// What opens is looked at by itself: thousands of topics that are read already
// are not asked about for it.
func TestLookAtWhatOpens(t *testing.T) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprint("t", i))
	}
	c := newCluster(t, kfake.SeedTopics(1, names...))
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.Timing.Look = time.Minute })
	for _, name := range names[:29] {
		tail.Tail.Tail(name, newRecorder(t))
	}
	for _, name := range names[:29] {
		waitState(t, tail, name, Tailing)
	}
	var asked atomic.Int64
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked.Add(int64(len(req.(*kmsg.ListOffsetsRequest).Topics)))
		return nil, nil, false
	})
	tail.follow(t, names[29])
	if n := asked.Load(); n == 0 || n > 10 {
		t.Errorf("offsets of %d topics are listed for one that opens", n)
	}
}

func TestPresence(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a", "b"))
	denyMetadata(c, "secret")
	tail := startTail(t, c.ListenAddrs())
	ask := func(names ...string) {
		t.Helper()
		ready := make(chan struct{})
		tail.Ask(names, func() { close(ready) })
		select {
		case <-ready:
		case <-time.After(patience):
			t.Fatal("no answer")
		}
	}
	if got := tail.Presence("a"); got != Unasked {
		t.Errorf("presence %d of what nobody asked about", got)
	}
	ask("a", "nope", "secret")
	for name, want := range map[string]Presence{"a": Present, "nope": Absent, "secret": Forbidden, "b": Unasked} {
		if got := tail.Presence(name); got != want {
			t.Errorf("presence of %s: %d, want %d", name, got, want)
		}
	}
	ask("a", "b")
	if got := tail.Presence("b"); got != Present {
		t.Errorf("presence %d of b", got)
	}
	eventually(t, "what is absent to be asked about again", func() (bool, any) {
		got := tail.Presence("nope")
		return got == Unasked, got
	})
	c.Close()
	eventually(t, "the brokers to be away", func() (bool, any) {
		ask("later")
		got := tail.Presence("later")
		return got == Away, got
	})
}

// denyMetadata has the brokers deny a topic.
func denyMetadata(c *cluster, name string) {
	brokers := c.metadataBrokers()
	c.ControlKey(int16(kmsg.Metadata), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.MetadataRequest)
		if !slices.ContainsFunc(req.Topics, func(t kmsg.MetadataRequestTopic) bool { return t.Topic != nil && *t.Topic == name }) {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		resp.Brokers = brokers
		for _, asked := range req.Topics {
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic = asked.Topic
			switch info := c.TopicInfo(*asked.Topic); {
			case *asked.Topic == name:
				topic.ErrorCode = kerr.TopicAuthorizationFailed.Code
			case info == nil:
				topic.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				topic.TopicID = info.TopicID
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
}
