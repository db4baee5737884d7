package kafkatail

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"tailcast/frame"
)

// A topic that does not exist opens with no id at once, and again once it is
// there: nothing written in between is lost.
func TestTopicMissingAtStart(t *testing.T) {
	c := newCluster(t)
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	if got := rec.opened(); got.id != (frame.TopicID{}) || len(got.parts) != 0 {
		t.Fatalf("opened at %v, want no id and no partitions", got)
	}
	waitState(t, tail, "a", Missing)
	if err := tail.Status().Ready(time.Now()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	hold := c.Fault(kfake.Fault{Keys: metadata, Topic: "a", Err: kerr.UnknownTopicOrPartition, Count: -1, When: isLooking})
	if err := c.CreateTopic("a", 2, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, c.client(kgo.AllowAutoTopicCreation()), "a", 0, 3)
	hold.Remove()
	wantOffsets(t, rec, 0, upTo(0, 3))
	got := rec.opened()
	if got.id != c.TopicInfo("a").TopicID || !slices.Equal(got.parts, []frame.Partition{{ID: 0}, {ID: 1}}) {
		t.Errorf("opened at %v, want both partitions from 0", got)
	}
}

// isLooking matches the tail's metadata requests, not those of a producer that
// may create topics.
func isLooking(req kmsg.Request) bool {
	m, ok := req.(*kmsg.MetadataRequest)
	return ok && !m.AllowAutoTopicCreation
}

// A topic that stays away is deleted; when it comes back it is another one,
// read from its beginning (cases C02, C04).
func TestTopicRecreated(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pause bool // the deletion is noticed before the topic is back
	}{{"at once", false}, {"after a while", true}} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(2, "a"), kfake.SeedTopics(1, "other"))
			tail := startTail(t, c.ListenAddrs())
			rec, other := tail.follow(t, "a"), tail.follow(t, "other")
			cl := c.client()
			produce(t, cl, "a", 0, 20)
			wantOffsets(t, rec, 0, upTo(0, 20))
			old := c.TopicInfo("a").TopicID

			if err := c.DeleteTopic("a"); err != nil {
				t.Fatal(err)
			}
			var late *recorder
			if tc.pause {
				waitState(t, tail, "a", Missing)
				late = tail.follow(t, "a") // finds no topic
				if got := late.opened(); got.id != (frame.TopicID{}) {
					t.Errorf("a sink of a deleted topic is opened at %v", got)
				}
			}
			if err := c.CreateTopic("a", 3, nil); err != nil {
				t.Fatal(err)
			}
			cl = c.client() // a producer does not follow a re-creation either
			produce(t, cl, "a", 0, 4)
			produce(t, cl, "a", 2, 2)
			wantOffsets(t, rec, 0, upTo(0, 4))
			wantOffsets(t, rec, 2, upTo(0, 2))
			got := rec.recreations()
			if len(got) != 1 || got[0].id != c.TopicInfo("a").TopicID || got[0].id == old || len(got[0].parts) != 3 {
				t.Errorf("re-created as %v", got)
			}
			if late != nil {
				wantOffsets(t, late, 0, upTo(0, 4))
				if n := len(late.recreations()); n != 0 {
					t.Errorf("a sink that knew no topic is told of %d re-creations", n)
				}
			}
			produce(t, cl, "other", 0, 1)
			wantOffsets(t, other, 0, upTo(0, 1))
			if n := tail.Status().Counters.Resyncs["recreated"]; n != 1 {
				t.Errorf("%d re-creations counted", n)
			}
		})
	}
}

// A broker that does not know a topic for a moment deletes nothing.
func TestTopicMissingForAMoment(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs(), func(c *Config) { c.Timing.Confirm = time.Minute })
	rec := tail.follow(t, "a")
	cl := c.client()
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	f := c.Fault(kfake.Fault{Keys: metadata, Topic: "a", Err: kerr.UnknownTopicOrPartition, Count: 6})
	if err := f.Wait(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 6))
	if s := tail.topicStatus("a"); s.State != Tailing {
		t.Errorf("the topic is %s", s.State)
	}
}

// A broker that lags behind shows a former incarnation; nothing goes back.
func TestFormerTopicIDIsIgnored(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	old := c.TopicInfo("a").TopicID
	if err := c.DeleteTopic("a"); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateTopic("a", 1, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the re-creation", func() (bool, any) { return len(rec.recreations()) == 1, "" })
	tail.mu.Lock()
	r := tail.reader
	tail.mu.Unlock()
	stale := &view{at: time.Now(), topics: map[string]topicMeta{"a": {id: old, leaders: []int32{0}}}}
	if err := r.do(t.Context(), func() { r.reconcile(stale) }); err != nil {
		t.Fatal(err)
	}
	produce(t, c.client(), "a", 0, 2)
	wantOffsets(t, rec, 0, upTo(0, 2))
	if n := len(rec.recreations()); n != 1 {
		t.Errorf("%d re-creations, want 1", n)
	}
}

// Partitions added to a topic are read from their beginning, whenever that is
// noticed (case C09).
func TestPartitionGrowth(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(2, "a"))
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	cl := c.client(kgo.AllowAutoTopicCreation())
	hold := c.Fault(kfake.Fault{Keys: metadata, Topic: "a", Err: kerr.LeaderNotAvailable, Count: -1, When: isLooking})
	addPartitions(t, cl, "a", 4)
	produce(t, cl, "a", 2, 3)
	produce(t, cl, "a", 3, 4)
	produce(t, cl, "a", 0, 1)
	hold.Remove()
	wantOffsets(t, rec, 2, upTo(0, 3))
	wantOffsets(t, rec, 3, upTo(0, 4))
	wantOffsets(t, rec, 0, upTo(0, 1))
	if got := rec.opened(); len(got.parts) != 2 {
		t.Errorf("opened with %d partitions", len(got.parts))
	}
}

// One partition without a leader keeps nobody waiting: it is opened as unknown
// and starts where it ends when a leader is there (case C41).
func TestLeaderlessPartition(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(3, "a"))
	cl := c.client()
	produce(t, cl, "a", 1, 4)
	none := c.Fault(kfake.Fault{Keys: metadata, Topic: "a", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	if got, want := rec.opened().parts, []frame.Partition{{ID: 0}, {ID: 1, Next: frame.Unknown}, {ID: 2}}; !slices.Equal(got, want) {
		t.Fatalf("opened at %v, want %v", got, want)
	}
	if err := tail.Status().Ready(time.Now()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	produce(t, cl, "a", 0, 2)
	produce(t, cl, "a", 2, 2)
	wantOffsets(t, rec, 0, upTo(0, 2))
	wantOffsets(t, rec, 2, upTo(0, 2))
	none.Remove()
	eventually(t, "the third partition's start", func() (bool, any) {
		n, _ := rec.position(1)
		return n == 4, n
	})
	produce(t, cl, "a", 1, 2)
	wantOffsets(t, rec, 1, upTo(4, 6))
}

// Offsets that can't be listed keep a topic from opening for a moment only.
func TestOpensWithoutListedOffsets(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(2, "a"))
	none := c.Fault(kfake.Fault{Keys: listOffsets, Topic: "a", Partitions: []int32{0}, Err: kerr.InvalidRequest, Count: -1})
	rec := startTail(t, c.ListenAddrs()).follow(t, "a")
	if got := rec.opened().parts; got[0].Next != frame.Unknown || got[1].Next != 0 {
		t.Errorf("opened at %v", got)
	}
	none.Remove()
	produce(t, c.client(), "a", 1, 1)
	wantOffsets(t, rec, 1, upTo(0, 1))
}

// One topic is denied, the other works; the denied one works once it is
// allowed (case C29).
func TestDeniedTopic(t *testing.T) {
	for _, tc := range []struct {
		name string
		key  kmsg.Key // what the ACL forbids: to see it, or to read it
	}{{"describe", kmsg.Metadata}, {"read", kmsg.Fetch}} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, kfake.SeedTopics(1, "a", "b"))
			cl := c.client()
			produce(t, cl, "a", 0, 1)
			produce(t, cl, "b", 0, 1)
			deny := c.Fault(kfake.Fault{Keys: []kmsg.Key{tc.key}, Topic: "b", Err: kerr.TopicAuthorizationFailed, Count: -1})
			tail := startTail(t, c.ListenAddrs())
			a, b := tail.follow(t, "a"), newRecorder(t)
			tail.Tail.Tail("b", b)
			waitState(t, tail, "b", Denied)
			if s := tail.topicStatus("b"); !strings.Contains(s.Error, "AUTHORIZATION") {
				t.Errorf("the reason is %q", s.Error)
			}
			if err := tail.Status().Ready(time.Now()); err != nil {
				t.Errorf("one denied topic makes the node unready: %v", err)
			}
			produce(t, cl, "a", 0, 3)
			wantOffsets(t, a, 0, upTo(1, 4))
			if err := deny.Wait(t.Context(), deny.Hits()+3); err != nil { // it is tried again
				t.Fatal(err)
			}
			if n := len(tail.log.lines("state=denied")); n != 1 {
				t.Errorf("the denial is logged %d times", n)
			}
			deny.Remove()
			waitState(t, tail, "b", Tailing)
			waitOpen(t, b)
			if from := b.opened().parts[0].Next; from != 1 { // it is not a topic that has just been made
				t.Errorf("opened at %d, want 1, the end", from)
			}
			produce(t, cl, "b", 0, 2)
			wantOffsets(t, b, 0, upTo(1, 3))
		})
	}
}

// Reading goes on where it was when an ACL is taken away and given back.
func TestDeniedWhileTailing(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	cl := c.client()
	tail := startTail(t, c.ListenAddrs())
	rec := tail.follow(t, "a")
	produce(t, cl, "a", 0, 2)
	wantOffsets(t, rec, 0, upTo(0, 2))
	deny := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata, kmsg.Fetch}, Topic: "a", Err: kerr.TopicAuthorizationFailed, Count: -1, When: func(r kmsg.Request) bool {
		return r.Key() == int16(kmsg.Fetch) || isLooking(r)
	}})
	waitState(t, tail, "a", Denied)
	late := tail.follow(t, "a")
	deny.Remove()
	waitState(t, tail, "a", Tailing)
	cl = c.client()
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 5))
	wantOffsets(t, late, 0, upTo(2, 5))
}

// A topic that the brokers answer for with an error is shown with it and tried
// on.
func TestFailingTopic(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	f := c.Fault(kfake.Fault{Keys: metadata, Topic: "a", Err: kerr.InvalidTopicException, Count: -1})
	tail := startTail(t, c.ListenAddrs())
	rec := newRecorder(t)
	tail.Tail.Tail("a", rec)
	waitState(t, tail, "a", Failing)
	if err := tail.Status().Ready(time.Now()); err == nil || !strings.Contains(err.Error(), "topic a") {
		t.Errorf("ready: %v", err)
	}
	f.Remove()
	waitOpen(t, rec)
	produce(t, c.client(), "a", 0, 1)
	wantOffsets(t, rec, 0, upTo(0, 1))
}

// One broker of three knows nothing of a topic, as one does that is cut off
// from the others: it is there nevertheless, and read from its end, whoever is
// asked first. So it is for a broker that knows nothing at all yet.
func TestTopicUnknownToOneBroker(t *testing.T) {
	for seed := range 3 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(1, "a"))
			produce(t, c.client(), "a", 0, 5)
			behind := c.Fault(kfake.Fault{Keys: metadata, Nodes: []int32{0}, Topic: "a", Err: kerr.UnknownTopicOrPartition, Count: -1})
			tail := startTail(t, c.ListenAddrs()[seed:seed+1], func(c *Config) { c.Timing.Confirm = time.Minute })
			ready := make(chan struct{})
			tail.Ask([]string{"a"}, func() { close(ready) })
			rec := tail.follow(t, "a")
			if got := rec.opened(); got.id != c.TopicInfo("a").TopicID || got.parts[0].Next != 5 {
				t.Errorf("opened at %v, want the topic's end", got)
			}
			<-ready
			if got := tail.Presence("a"); got != Present {
				t.Errorf("presence %d", got)
			}
			behind.Remove()
			produce(t, c.client(), "a", 0, 2)
			wantOffsets(t, rec, 0, upTo(5, 7))
		})
	}
}

// A broker that has just started may know nothing of its cluster: nothing it
// says of topics counts.
func TestBrokerThatKnowsNothingYet(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	produce(t, c.client(), "a", 0, 5)
	var asked atomic.Int64
	c.ControlKey(int16(kmsg.Metadata), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.MetadataRequest)
		if asked.Add(1) > 5 {
			return nil, nil, false
		}
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		for _, topic := range req.Topics {
			missing := kmsg.NewMetadataResponseTopic()
			missing.Topic, missing.ErrorCode = topic.Topic, kerr.UnknownTopicOrPartition.Code
			resp.Topics = append(resp.Topics, missing)
		}
		return resp, nil, true
	})
	rec := startTail(t, c.ListenAddrs()).follow(t, "a")
	if got := rec.opened(); got.id != c.TopicInfo("a").TopicID || got.parts[0].Next != 5 {
		t.Errorf("opened at %v, want the topic's end", got)
	}
}

// A topic is told from another of the same name also where brokers have no
// topic ids: not at all, but nothing breaks.
func TestBrokersWithoutTopicIDs(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V2_7_0()))
	rec := startTail(t, c.ListenAddrs()).follow(t, "a")
	if id := rec.opened().id; id == (frame.TopicID{}) || id == c.TopicInfo("a").TopicID {
		t.Errorf("id %x is not derived", id)
	}
	produce(t, c.client(kgo.DisableIdempotentWrite()), "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
}
