package kafkatail

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

const group = "gateway-a"

var commits = []kmsg.Key{kmsg.OffsetCommit}

// reporting has a tail report so often.
func reporting(every time.Duration) func(*Config) {
	return func(c *Config) { c.ReportGroup, c.Timing.Report = group, every }
}

// groupOffsets returns what the group has of a topic, by partition.
func groupOffsets(t testing.TB, cl *kgo.Client, topic string) (map[int32]int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
	got := map[int32]int64{}
	for p, o := range all[topic] {
		got[p] = o.At
	}
	return got, err
}

func waitGroup(t testing.TB, cl *kgo.Client, topic string, want map[int32]int64) {
	t.Helper()
	eventually(t, "the group's offsets", func() (bool, any) {
		got, err := groupOffsets(t, cl, topic)
		return maps.Equal(got, want), []any{got, err}
	})
}

// sent are the commits that brokers got: what they say of each partition.
type sent struct {
	mu   sync.Mutex
	reqs []map[place]int64
}

// watchCommits must be called before anything is committed.
func watchCommits(c *cluster) *sent {
	s := new(sent)
	c.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		says := map[place]int64{}
		for _, topic := range r.(*kmsg.OffsetCommitRequest).Topics {
			for _, p := range topic.Partitions {
				says[place{topic.Topic, p.Partition}] = p.Offset // without its name from version 10 on
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reqs = append(s.reqs, says)
		return nil, nil, false
	})
	return s
}

func (s *sent) all() []map[place]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[place]int64(nil), s.reqs...)
}

// A group shows where the tail is: at first of all partitions, then of those that
// moved, and nobody hears of it while nothing moves.
func TestReport(t *testing.T) {
	c := newCluster(t, kfake.MaxVersions(kversion.V4_1_0()), kfake.SeedTopics(3, "a"), kfake.SeedTopics(1, "idle"))
	cl := c.client()
	produce(t, cl, "a", 0, 5)
	s := watchCommits(c)
	tail := startTail(t, c.ListenAddrs(), reporting(20*time.Millisecond))
	rec := tail.follow(t, "a")
	tail.follow(t, "idle")
	waitGroup(t, cl, "a", map[int32]int64{0: 5, 1: 0, 2: 0})
	waitGroup(t, cl, "idle", map[int32]int64{0: 0})
	before := len(s.all())
	for n := range int64(3) {
		produce(t, cl, "a", 1, 1)
		waitGroup(t, cl, "a", map[int32]int64{0: 5, 1: n + 1, 2: 0})
	}
	wantOffsets(t, rec, 1, upTo(0, 3))
	tail.stop()
	late := s.all()[before:]
	if len(late) != 3 {
		t.Errorf("%d commits for 3 records that came one after the other", len(late))
	}
	for i, says := range late {
		if want := (map[place]int64{{"a", 1}: int64(i + 1)}); !maps.Equal(says, want) {
			t.Errorf("commit %d says %v, want %v", i, says, want)
		}
	}
}

// What moved since the last commit is committed on the way out.
func TestReportOnTheWayOut(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(2, "a"))
	cl := c.client()
	tail := startTail(t, c.ListenAddrs(), reporting(time.Hour))
	rec := tail.follow(t, "a")
	produce(t, cl, "a", 1, 4)
	wantOffsets(t, rec, 1, upTo(0, 4))
	if got, err := groupOffsets(t, cl, "a"); !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatalf("the group has %v, and error %v, before anything is due", got, err)
	}
	tail.stop()
	if got, err := groupOffsets(t, cl, "a"); err != nil || !maps.Equal(got, map[int32]int64{0: 0, 1: 4}) {
		t.Errorf("the group has %v: %v", got, err)
	}
}

// Whatever brokers say to a commit, streams get their records, the node is
// ready, one line is logged, and when the reason is gone the group has it all.
func TestReportRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault kfake.Fault
		quiet bool // nothing to tell an operator
	}{
		{name: "group denied", fault: kfake.Fault{Keys: commits, Err: kerr.GroupAuthorizationFailed}},
		{name: "one topic denied", fault: kfake.Fault{Keys: commits, Topic: "b", Err: kerr.TopicAuthorizationFailed}},
		{name: "members", fault: kfake.Fault{Keys: commits, Err: kerr.UnknownMemberID}},
		{name: "coordinator moves", fault: kfake.Fault{Keys: commits, Err: kerr.NotCoordinator}},
		{name: "no coordinator", fault: kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Err: kerr.CoordinatorNotAvailable}},
		{name: "search denied", fault: kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Err: kerr.GroupAuthorizationFailed}},
		{name: "replicas late", fault: kfake.Fault{Keys: commits, Err: kerr.RequestTimedOut}},
		{name: "topic gone", fault: kfake.Fault{Keys: commits, Err: kerr.UnknownTopicOrPartition}, quiet: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a", "b"))
			tc.fault.Count = -1
			f := c.Fault(tc.fault)
			cl := c.client()
			tail := startTail(t, c.ListenAddrs(), reporting(time.Millisecond))
			a, b := tail.follow(t, "a"), tail.follow(t, "b")
			for n := range int64(3) {
				hits := f.Hits()
				produce(t, cl, "a", 0, 1)
				produce(t, cl, "b", 0, 1)
				wantOffsets(t, a, 0, upTo(0, n+1))
				wantOffsets(t, b, 0, upTo(0, n+1))
				eventually(t, "another try", func() (bool, any) { return f.Hits() > hits, hits })
			}
			s := tail.Status()
			if err := s.Ready(time.Now()); err != nil || s.Counters.Failed > 0 || s.Counters.Rebuilds > 0 {
				t.Errorf("ready: %v; status %+v", err, s)
			}
			lines := 1
			if tc.quiet {
				lines = 0
			}
			eventually(t, "the line", func() (bool, any) {
				got := tail.log.lines("--kafka-report-group")
				return len(got) == lines, got
			})
			f.Remove()
			waitGroup(t, cl, "a", map[int32]int64{0: 3})
			waitGroup(t, cl, "b", map[int32]int64{0: 3})
			if got := tail.log.lines("--kafka-report-group"); len(got) != lines {
				t.Errorf("logged %q", got)
			}
		})
	}
}

// Connections are cut over commits, again and again.
func TestReportCut(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	cl := c.client()
	cuts := make(chan struct{}, 100)
	c.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		if len(cuts) == cap(cuts) {
			return nil, nil, false
		}
		c.KeepControl()
		cuts <- struct{}{}
		return nil, errors.New("cut"), true
	})
	tail := startTail(t, c.ListenAddrs(), reporting(5*time.Millisecond))
	rec := tail.follow(t, "a")
	for n := range int64(5) {
		cut := len(cuts)
		produce(t, cl, "a", 0, 1)
		wantOffsets(t, rec, 0, upTo(0, n+1))
		eventually(t, "another cut", func() (bool, any) { return len(cuts) > cut, cut })
	}
	if s := tail.Status(); !s.Connected || s.Counters.Failed > 0 || s.Counters.Rebuilds > 0 {
		t.Errorf("status %+v", s)
	}
}

// A broker does not answer a commit: records go on, history and its bounds are
// asked of the same broker meanwhile, and the end waits for a moment only.
func TestReportUnanswered(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a"))
	cl := c.client()
	asked, answer := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.DropControl()
		close(asked)
		c.SleepControl(func() { <-answer })
		return nil, nil, false
	})
	tail := startTail(t, c.ListenAddrs(), reporting(5*time.Millisecond), func(c *Config) { c.Timing.Request = patience })
	rec := tail.follow(t, "a")
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("nothing is committed")
	}
	produce(t, cl, "a", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	bounds, err := tail.History().Bounds(t.Context(), "a", c.TopicInfo("a").TopicID)
	if err != nil || len(bounds) != 1 || bounds[0].End != 3 {
		t.Errorf("bounds %+v: %v", bounds, err)
	}
	began := time.Now()
	tail.stop()
	if d := time.Since(began); d > reportLastMax+patience/2 {
		t.Errorf("Run took %v to end", d)
	}
	close(answer)
	eventually(t, "the broker to go on", func() (bool, any) {
		_, err := groupOffsets(t, cl, "a")
		return err == nil, err
	})
}

// A topic that is re-created is committed anew, from its beginning: what was true
// of the old one is not said of the new one, to brokers that go by its id or by
// its name.
func TestReportRecreated(t *testing.T) {
	for _, tc := range []struct {
		name     string
		versions *kversion.Versions
	}{{"by id", kversion.Stable()}, {"by name", kversion.V4_1_0()}} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, kfake.MaxVersions(tc.versions), kfake.SeedTopics(1, "a"))
			s := watchCommits(c)
			tail := startTail(t, c.ListenAddrs(), reporting(5*time.Millisecond))
			rec := tail.follow(t, "a")
			cl := c.client()
			produce(t, cl, "a", 0, 20)
			wantOffsets(t, rec, 0, upTo(0, 20))
			waitGroup(t, cl, "a", map[int32]int64{0: 20})
			if err := c.DeleteTopic("a"); err != nil {
				t.Fatal(err)
			}
			waitState(t, tail, "a", Missing)
			before := len(s.all())
			if err := c.CreateTopic("a", 2, nil); err != nil {
				t.Fatal(err)
			}
			cl = c.client()
			produce(t, cl, "a", 0, 4)
			wantOffsets(t, rec, 0, upTo(0, 4))
			waitGroup(t, cl, "a", map[int32]int64{0: 4, 1: 0})
			for _, says := range s.all()[before:] {
				for at, offset := range says {
					if offset > 4 {
						t.Errorf("of the new topic's %v %d is committed", at, offset)
					}
				}
			}
		})
	}
}

// Brokers forget what is old, so what does not move is committed again some day;
// and a commit is bounded, however many partitions there are.
func TestReportWhole(t *testing.T) {
	const partitions = reportPartitionsMax + 500
	c := newCluster(t, kfake.SeedTopics(partitions, "a"))
	s := watchCommits(c)
	tail := startTail(t, c.ListenAddrs(), reporting(time.Hour))
	tail.follow(t, "a")
	waitState(t, tail, "a", Tailing)
	r, err := tail.newReporter()
	if err != nil {
		t.Fatal(err)
	}
	defer r.cl.Close()
	now := time.Now()
	if n := len(r.moved(now)); n != partitions {
		t.Fatalf("%d positions are due at first, want %d", n, partitions)
	}
	r.report(t.Context(), patience)
	var sizes []int
	for _, says := range s.all() {
		sizes = append(sizes, len(says))
	}
	if !slices.Equal(sizes, []int{reportPartitionsMax, 500}) {
		t.Errorf("commits of %v positions", sizes)
	}
	for _, tc := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 0}, {reportWhole + time.Minute, partitions}, {reportWhole + 2*time.Minute, 0}} {
		if n := len(r.moved(now.Add(tc.after))); n != tc.want {
			t.Errorf("%d positions are due after %v, want %d", n, tc.after, tc.want)
		}
	}
}

// A report that fails is tried less and less often.
func TestReportWait(t *testing.T) {
	r := reporter{t: &Tail{cfg: Config{}.defaults()}}
	for failed, least := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		r.failed = failed
		if d := r.wait(); d < least || d > 2*least {
			t.Errorf("after %d failures it waits %v, want %v to %v", failed, d, least, 2*least)
		}
	}
	r.failed = 1000
	if d := r.wait(); d > 2*reportFailedMax {
		t.Errorf("it waits %v", d)
	}
}
