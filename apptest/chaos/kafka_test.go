//go:build kafka

package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/kafkatest"
	"tailcast/internal/testkit"
)

// TestKafka has three real brokers, and topics of its own for each case.
func TestKafka(t *testing.T) {
	k := &kafka{Cluster: kafkatest.Start(t, kafkatest.Options{Brokers: 3}), away: -1}
	t.Run("Chaos", k.chaos)
	t.Run("Several", k.several)
	t.Run("State", k.state)
	t.Run("Recreated", k.recreated)
	t.Run("UncleanElection", k.unclean)
}

func (k *kafka) chaos(t *testing.T) {
	r := newRun(t, options{
		topics: []topic{{"chaos", 3, 6}}, brokers: k.Addrs, clients: 60, rate: 300,
		duration: 15 * time.Second, offline: 8 * time.Second, gateways: true, tend: k.tend,
		kinds: mixed("chaos"),
	})
	r.o.faults = k.faults(r)
	k.create(r, 3, nil)
	r.play()
}

// several is chaos with several topics in a stream, one of which is made anew
// in the middle of it.
func (k *kafka) several(t *testing.T) {
	r := newRun(t, options{
		topics: abc, brokers: k.Addrs, clients: 60, rate: 300,
		duration: 16 * time.Second, offline: 5 * time.Second, gateways: true, tend: k.tend,
		kinds: severalByName,
	})
	r.o.faults = k.faults(r)
	k.create(r, 3, nil)
	r.recreated(1, 3, 3)
}

// state is TestState in front of brokers that compact the topic all the time,
// aborted transactions and all.
func (k *kafka) state(t *testing.T) {
	r := newRun(t, options{
		topics: []topic{{"state", 3, 3}}, brokers: k.Addrs, clients: 40, rate: 600, keys: 400, compacted: true,
		duration: 8 * time.Second, offline: 4 * time.Second, gateways: true, tend: k.tend,
		kinds: stateful,
	})
	r.o.faults = k.faults(r)
	k.create(r, 3, map[string]*string{
		"cleanup.policy": new("compact"), "segment.ms": new("200"), "min.cleanable.dirty.ratio": new("0.01"),
	})
	r.play()
}

func (k *kafka) recreated(t *testing.T) {
	r := newRun(t, options{
		topics: []topic{{"recreated", 3, 3}}, brokers: k.Addrs, clients: 40, rate: 300,
		duration: 8 * time.Second, offline: 3 * time.Second, gateways: true,
	})
	k.create(r, 3, nil)
	r.recreated(0, 2, 3)
}

// unclean has a replica lead that missed records which everybody has got: the
// log is cut, and written anew. Those who are connected are told, and get it
// from there; so are those who come with an id beyond its end.
func (k *kafka) unclean(t *testing.T) {
	r := newRun(t, options{
		topics: []topic{{"unclean", 1, 1}}, brokers: k.Addrs, clients: 24, rate: 200,
		duration: 6 * time.Second, steady: true, plainly: true,
	})
	k.create(r, 2, map[string]*string{"unclean.leader.election.enable": new("true"), "min.insync.replicas": new("1")})
	var cut lost
	r.o.judge = func(is told) error {
		if is.reason != "truncated" || !slices.Equal(is.lost, []lost{cut}) || is.after[0] != cut.from {
			return fmt.Errorf("want %+v to be truncated: %w", cut, none(is))
		}
		return nil
	}
	r.o.between = func() {
		lead := k.leader(r, 0)
		follower := k.follower(r, lead)
		k.Kill(follower)
		cut = k.writeAlone(r)
		r.await("every client has what will be cut", func() bool {
			return !slices.ContainsFunc(r.clients, func(c *client) bool { return c.at.Load() <= cut.to })
		})
		id := r.clients[0].id // it waits for records, so nobody writes this
		k.Kill(lead)
		k.Restart(follower)
		testkit.Eventually(t, patience, "leadership of the replica that missed them", func() bool {
			var unclean kadm.TopicsSet
			unclean.Add("unclean", 0)
			_, _ = r.admin().ElectLeaders(r.within(), kadm.ElectLiveReplica, unclean) // seen by who leads
			return k.leader(r, 0) == follower
		})
		for range 6 {
			r.late(id)
		}
		r.await("everybody is told", func() bool {
			return !slices.ContainsFunc(r.clients, func(c *client) bool { return c.resyncs.Load() == 0 })
		})
		k.Restart(lead)
		r.acked.forget(0)
		r.adm = nil
	}
	r.play()
	for _, c := range r.clients {
		if want := []string{"truncated"}; !slices.Equal(c.reasons, want) {
			t.Errorf("client %d was told %q, want %q\n%s", c.n, c.reasons, want, c.trace.String())
		}
	}
}

// writeAlone writes records that the leader alone holds, and says where they are.
func (k *kafka) writeAlone(r *run) lost {
	r.t.Helper()
	m := maker{run: r, name: "lost", draw: r.rand("lost")}
	recs := make([]*kgo.Record, 50)
	for i := range recs {
		recs[i] = m.next()
	}
	if err := r.client().ProduceSync(r.within(), recs...).FirstErr(); err != nil {
		r.t.Fatalf("write to the leader alone: %v", err)
	}
	return lost{0, recs[0].Offset, recs[len(recs)-1].Offset}
}

// kafka is three real brokers.
type kafka struct {
	*kafkatest.Cluster
	away int       // the broker that is killed; -1: none
	back time.Time // when it is to run again
}

func (k *kafka) create(r *run, replicas int16, configs map[string]*string) {
	r.t.Helper()
	for _, tp := range r.o.topics {
		if _, err := r.admin().CreateTopic(r.within(), int32(tp.parts), replicas, configs, tp.name); err != nil {
			r.t.Fatal(err)
		}
	}
	testkit.Eventually(r.t, patience, "leaders of all partitions", func() bool {
		return !slices.ContainsFunc(r.lanes(), func(l int) bool { return k.leader(r, l) < 0 })
	})
}

func (k *kafka) partition(r *run, lane int) (kadm.PartitionDetail, error) {
	name := r.o.topics[topicOf(lane)].name
	m, err := r.admin().Metadata(r.within(), name)
	if err != nil {
		return kadm.PartitionDetail{}, err
	}
	d, ok := m.Topics[name].Partitions[partitionOf(lane)]
	if !ok {
		return d, errors.New("no such partition")
	}
	return d, nil
}

// leader is the broker (from 0) that leads a lane; -1 while none does.
func (k *kafka) leader(r *run, lane int) int {
	d, err := k.partition(r, lane)
	if err != nil || d.Leader < 0 {
		return -1
	}
	return k.Index(d.Leader)
}

// follower is a replica of partition 0 that does not lead it.
func (k *kafka) follower(r *run, lead int) int {
	r.t.Helper()
	d, err := k.partition(r, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, node := range d.Replicas {
		if i := k.Index(node); i != lead {
			return i
		}
	}
	r.t.Fatalf("replicas %v, leader %d: no follower", d.Replicas, lead)
	return -1
}

// faults are what befalls real brokers. One at a time is away: two of three
// hold what is committed.
func (k *kafka) faults(r *run) []fault {
	return []fault{
		{"leader killed", 6, func(d *rand.Rand) bool {
			lanes := r.lanes()
			i := k.leader(r, lanes[d.IntN(len(lanes))])
			if i < 0 || k.away >= 0 {
				return false
			}
			k.Kill(i)
			k.away, k.back = i, time.Now().Add(time.Duration(d.IntN(6000))*time.Millisecond)
			return true
		}},
		{"brokers restarted in turn", 1, func(*rand.Rand) bool {
			k.tend(true)
			for i := range k.Addrs {
				k.Stop(i)
				k.Restart(i)
			}
			return true
		}},
		{"preferred leaders elected", 2, func(*rand.Rand) bool {
			var all kadm.TopicsSet
			for _, l := range r.lanes() {
				all.Add(r.o.topics[topicOf(l)].name, partitionOf(l))
			}
			_, _ = r.admin().ElectLeaders(r.within(), kadm.ElectPreferredReplica, all) // as far as there are any
			return true
		}},
	}
}

// tend starts the broker that is away, when it is time.
func (k *kafka) tend(all bool) {
	if k.away >= 0 && (all || time.Now().After(k.back)) {
		k.Restart(k.away)
		k.away = -1
	}
}
