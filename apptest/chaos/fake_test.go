package chaos

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestChaos(t *testing.T) {
	t.Parallel()
	f := newFake(t, topic{"chaos", 3, 6})
	r := newRun(t, options{
		topics: f.topics, brokers: f.ListenAddrs(), clients: 60, rate: 400,
		duration: 6 * time.Second, offline: 4 * time.Second, gateways: true, faults: f.faults(), tend: f.tend,
		kinds: mixed("chaos"),
	})
	r.play()
	f.report(r)
}

// abc are the topics of runs with several.
// There are so many partitions that
// ids of all three are soon of the second form.
var abc = []topic{{"a", 7, 8}, {"b", 2, 2}, {"c", 6, 8}}

// TestSeveral is TestChaos with several topics in a stream, and transactions
// across them.
func TestSeveral(t *testing.T) {
	t.Parallel()
	f := newFake(t, abc...)
	r := newRun(t, options{
		topics: f.topics, brokers: f.ListenAddrs(), clients: 60, rate: 400,
		duration: 6 * time.Second, offline: 4 * time.Second, gateways: true, faults: f.faults(), tend: f.tend,
		kinds: several,
	})
	r.play()
	f.report(r)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	f := newFake(t, topic{"retention", 3, 4})
	r := newRun(t, options{
		topics: f.topics, brokers: f.ListenAddrs(), clients: 40, rate: 800,
		duration: 6 * time.Second, offline: 5 * time.Second, gateways: true, tend: f.tend,
	})
	f.retention(r, 0)
}

// TestSeveralRetention has retention take records of two topics of three.
func TestSeveralRetention(t *testing.T) {
	t.Parallel()
	f := newFake(t, abc...)
	r := newRun(t, options{
		topics: f.topics, brokers: f.ListenAddrs(), clients: 40, rate: 800,
		duration: 6 * time.Second, offline: 5 * time.Second, gateways: true, tend: f.tend,
		kinds: several,
	})
	f.retention(r, 0, 2)
}

// retention plays a run in which records of some topics are deleted while
// clients are away: those that lacked them are told so, of exactly these
// records, and nobody else is.
func (f *fake) retention(r *run, topics ...int) {
	var deleted [lanesMax]atomic.Int64 // first offset that was never deleted
	r.o.follow = true
	r.o.judge = func(is told) error {
		if is.reason != "expired" || len(is.lost) == 0 || len(is.anew) > 0 {
			return none(is)
		}
		for _, l := range is.lost {
			if l.to >= deleted[l.lane].Load() {
				return fmt.Errorf("%s can't have expired: the log begins at %d, but %v", r.lane(l.lane), deleted[l.lane].Load(), is)
			}
		}
		return nil
	}
	r.o.faults = []fault{
		{"leaders shuffled", 2, func(*rand.Rand) bool { f.ShufflePartitionLeaders(); return true }},
		{"connections cut", 2, func(d *rand.Rand) bool { f.cut.Store(1 + d.Int64N(10)); return true }},
		{"records deleted", 8, func(d *rand.Rand) bool {
			read := r.ledger.behind()
			var del kadm.Offsets
			lanes := r.lanes()
			for _, l := range lanes {
				if to := read[l] - d.Int64N(int64(900/len(lanes))); to > deleted[l].Load() && slices.Contains(topics, topicOf(l)) {
					deleted[l].Store(to)
					del.AddOffset(r.o.topics[topicOf(l)].name, partitionOf(l), to, -1)
				}
			}
			if _, err := r.admin().DeleteRecords(r.within(), del); err != nil {
				r.count("deletions failed", 1)
				return false
			}
			return len(del) > 0
		}},
	}
	r.play()
	f.report(r)
}

func TestState(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.compacted(t, topic{"state", 3, 6})
	f.state(t, stateful)
}

// TestSeveralStates has snapshots of several topics, whole and by filters.
func TestSeveralStates(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.compacted(t, abc...)
	f.state(t, severalStates)
}

// state has clients of snapshot routes drop out in the middle of it and come
// back on either node: each ends with what the log says of every key.
func (f *fake) state(t *testing.T, kinds func(n int) kind) {
	r := newRun(t, options{
		topics: f.topics, brokers: f.ListenAddrs(), clients: 40, rate: 800, keys: 400, compacted: true,
		duration: 6 * time.Second, offline: 4 * time.Second, gateways: true, tend: f.tend,
		kinds: kinds, follow: true,
		plainly: true, // kfake's compaction takes aborted records for the last of their keys
		faults: []fault{ // the ledger reads along, and would see injected errors, too
			{"leaders shuffled", 3, func(*rand.Rand) bool { f.ShufflePartitionLeaders(); return true }},
			{"connections cut", 3, func(d *rand.Rand) bool { f.cut.Store(1 + d.Int64N(20)); return true }},
			{"topics compacted", 6, func(*rand.Rand) bool { f.Compact(); return true }},
		},
	})
	r.play()
	f.report(r)
}

func TestRecreated(t *testing.T) {
	t.Parallel()
	f := newFake(t, topic{"recreated", 3, 3})
	r := newRun(t, options{
		topics: f.topics, brokers: f.ListenAddrs(), clients: 40, rate: 300,
		duration: 6 * time.Second, offline: 3 * time.Second, gateways: true, tend: f.tend,
	})
	r.recreated(0, 2, 1)
	f.report(r)
}

// TestSeveralRecreated has one topic of three made anew.
func TestSeveralRecreated(t *testing.T) {
	t.Parallel()
	f := newFake(t, abc...)
	r := newRun(t, options{
		topics: f.topics, brokers: f.ListenAddrs(), clients: 40, rate: 300,
		duration: 6 * time.Second, offline: 3 * time.Second, gateways: true, tend: f.tend,
		kinds: severalByName,
	})
	r.recreated(1, 3, 1)
	f.report(r)
}

// fake is a cluster of three brokers in this process.
type fake struct {
	*kfake.Cluster
	topics []topic
	cut    atomic.Int64 // requests yet to be answered by the end of the connection
	cuts   atomic.Int64
	given  []given
}

// given is an injected error.
type given struct {
	what string
	*kfake.FaultHandle
}

func newFake(t *testing.T, topics ...topic) *fake {
	t.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(3)}
	for _, tp := range topics {
		opts = append(opts, kfake.SeedTopics(int32(tp.parts), tp.name))
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f := &fake{Cluster: c, topics: topics}
	for _, key := range []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetForLeaderEpoch, kmsg.Produce} {
		c.ControlKey(key.Int16(), f.control)
	}
	return f
}

// compacted makes topics that are compacted.
func (f *fake) compacted(t *testing.T, topics ...topic) {
	t.Helper()
	for _, tp := range topics {
		if err := f.CreateTopic(tp.name, int32(tp.parts), map[string]string{"cleanup.policy": "compact"}); err != nil {
			t.Fatal(err)
		}
	}
	f.topics = topics
}

var errCut = errors.New("cut")

// control ends connections while there are some to be cut.
func (f *fake) control(kmsg.Request) (kmsg.Response, error, bool) {
	f.KeepControl()
	if f.cut.Load() <= 0 || rand.IntN(2) == 0 {
		return nil, nil, false
	}
	f.cut.Add(-1)
	f.cuts.Add(1)
	return nil, errCut, true
}

// faulty are errors that brokers answer with and that pass.
var faulty = []struct {
	key  kmsg.Key
	errs []*kerr.Error
}{
	{kmsg.Fetch, []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InconsistentTopicID, kerr.FencedLeaderEpoch,
		kerr.UnknownLeaderEpoch, kerr.ReplicaNotAvailable, kerr.KafkaStorageError, kerr.OffsetNotAvailable, kerr.OffsetOutOfRange,
		kerr.CorruptMessage, kerr.UnknownServerError,
	}},
	{kmsg.ListOffsets, []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.OffsetNotAvailable, kerr.UnknownTopicOrPartition, kerr.UnknownServerError,
	}},
	{kmsg.Metadata, []*kerr.Error{kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition, kerr.UnknownServerError}},
}

// faults are what this cluster does to those who read.
func (f *fake) faults() []fault {
	return []fault{
		{"leaders shuffled", 6, func(*rand.Rand) bool { f.ShufflePartitionLeaders(); return true }},
		{"connections cut", 6, func(d *rand.Rand) bool { f.cut.Store(1 + d.Int64N(20)); return true }},
		{"errors injected", 12, func(d *rand.Rand) bool {
			kind := faulty[d.IntN(len(faulty))]
			err := kind.errs[d.IntN(len(kind.errs))]
			f.given = append(f.given, given{kind.key.Name() + " " + err.Message, f.Fault(kfake.Fault{
				Keys: []kmsg.Key{kind.key}, Topic: f.topics[d.IntN(len(f.topics))].name, Err: err, Count: 1 + d.IntN(8),
			})})
			return true
		}},
		{"coordinators moved", 2, func(*rand.Rand) bool { f.RehashCoordinators(); return true }},
	}
}

// tend takes back every fault that did not strike.
func (f *fake) tend(all bool) {
	if !all {
		return
	}
	f.cut.Store(0)
	for _, h := range f.given {
		h.Remove()
	}
}

func (f *fake) report(r *run) {
	hits := map[string]int{}
	for _, h := range f.given {
		hits[h.what] += h.Hits()
	}
	for _, what := range slices.Sorted(maps.Keys(hits)) {
		r.t.Logf("%8d  requests answered: %s", hits[what], what)
	}
	r.t.Logf("%8d  requests answered by the end of the connection", f.cuts.Load())
}
