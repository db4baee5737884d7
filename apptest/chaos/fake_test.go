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
	f := newFake(t, "chaos", 3)
	r := newRun(t, options{
		topic: "chaos", brokers: f.ListenAddrs(), parts: 3, grow: 6, clients: 60, rate: 400,
		duration: 6 * time.Second, offline: 4 * time.Second, gateways: true, faults: f.faults(), tend: f.tend,
		kinds: mixed("chaos"),
	})
	r.play()
	f.report(r)
}

// TestRetention deletes records while clients are away: those that lacked them
// are told so, of exactly these records, and nobody else is.
func TestRetention(t *testing.T) {
	t.Parallel()
	f := newFake(t, "retention", 3)
	var r *run
	var deleted [partsMax]atomic.Int64 // first offset that was never deleted
	r = newRun(t, options{
		topic: "retention", brokers: f.ListenAddrs(), parts: 3, grow: 4, clients: 40, rate: 800,
		duration: 6 * time.Second, offline: 5 * time.Second, gateways: true, follow: true,
		judge: func(reason string, said []lost, before, after vector) error {
			if reason != "expired" || len(said) == 0 {
				return none(reason, said, before, after)
			}
			for _, l := range said {
				if l.To >= deleted[l.Partition].Load() {
					return fmt.Errorf("%+v can't have expired: the log begins at %d", l, deleted[l.Partition].Load())
				}
			}
			return nil
		},
		faults: []fault{
			{"leaders shuffled", 2, func(*rand.Rand) bool { f.ShufflePartitionLeaders(); return true }},
			{"connections cut", 2, func(d *rand.Rand) bool { f.cut.Store(1 + d.Int64N(10)); return true }},
			{"records deleted", 8, func(d *rand.Rand) bool {
				read := r.ledger.behind()
				var del kadm.Offsets
				for p := range r.parts.Load() {
					if to := read[p] - d.Int64N(300); to > deleted[p].Load() {
						deleted[p].Store(to)
						del.AddOffset("retention", p, to, -1)
					}
				}
				if _, err := r.admin().DeleteRecords(r.within(), del); err != nil {
					r.count("deletions failed", 1)
					return false
				}
				return len(del) > 0
			}},
		},
		tend: f.tend,
	})
	r.play()
	f.report(r)
}

// TestState has clients of a snapshot route drop out in the middle of it and
// come back on either node: each ends with what the log says of every key.
func TestState(t *testing.T) {
	t.Parallel()
	f := newFake(t, "", 0)
	if err := f.CreateTopic("state", 3, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	f.topic = "state"
	r := newRun(t, options{
		topic: "state", brokers: f.ListenAddrs(), parts: 3, grow: 6, clients: 40, rate: 800, keys: 400, compacted: true,
		duration: 6 * time.Second, offline: 4 * time.Second, gateways: true, tend: f.tend,
		kinds: stateful, follow: true,
		plainly: true, // kfake's compaction takes aborted records for the last of their keys
		faults: []fault{ // the ledger reads along, and would see injected errors, too
			{"leaders shuffled", 3, func(*rand.Rand) bool { f.ShufflePartitionLeaders(); return true }},
			{"connections cut", 3, func(d *rand.Rand) bool { f.cut.Store(1 + d.Int64N(20)); return true }},
			{"topic compacted", 6, func(*rand.Rand) bool { f.Compact(); return true }},
		},
	})
	r.play()
	f.report(r)
}

func TestRecreated(t *testing.T) {
	t.Parallel()
	f := newFake(t, "recreated", 3)
	r := newRun(t, options{
		topic: "recreated", brokers: f.ListenAddrs(), parts: 3, grow: 3, clients: 40, rate: 300,
		duration: 6 * time.Second, offline: 3 * time.Second, gateways: true, tend: f.tend,
	})
	r.recreated(2, 1)
	f.report(r)
}

// fake is a cluster of three brokers in this process.
type fake struct {
	*kfake.Cluster
	topic string
	cut   atomic.Int64 // requests yet to be answered by the end of the connection
	cuts  atomic.Int64
	given []given
}

// given is an injected error.
type given struct {
	what string
	*kfake.FaultHandle
}

func newFake(t *testing.T, topic string, parts int32) *fake {
	t.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(3)}
	if topic != "" {
		opts = append(opts, kfake.SeedTopics(parts, topic))
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f := &fake{Cluster: c, topic: topic}
	for _, key := range []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetForLeaderEpoch, kmsg.Produce} {
		c.ControlKey(key.Int16(), f.control)
	}
	return f
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
				Keys: []kmsg.Key{kind.key}, Topic: f.topic, Err: err, Count: 1 + d.IntN(8),
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
