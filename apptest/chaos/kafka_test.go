//go:build kafka

package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"tailcast/internal/kafkatest"
)

func TestKafkaChaos(t *testing.T) {
	k := newKafka(t)
	r := newRun(t, options{
		topic: "chaos", brokers: k.Addrs, parts: 3, grow: 6, clients: 60, rate: 300,
		duration: 20 * time.Second, offline: 8 * time.Second,
	})
	r.o.gateways, r.o.faults, r.o.tend = true, k.faults(r), k.tend
	k.create(r, 3, nil)
	r.play()
}

// kafka is three real brokers.
type kafka struct {
	*kafkatest.Cluster
	away int       // the broker that is killed; -1: none
	back time.Time // when it is to run again
}

func newKafka(t *testing.T) *kafka {
	t.Helper()
	return &kafka{Cluster: kafkatest.Start(t, kafkatest.Options{Brokers: 3}), away: -1}
}

func (k *kafka) create(r *run, replicas int16, configs map[string]*string) {
	r.t.Helper()
	if _, err := r.admin().CreateTopic(r.within(), int32(r.o.parts), replicas, configs, r.o.topic); err != nil {
		r.t.Fatal(err)
	}
}

// leader is the broker (from 0) that leads a partition; -1 while none does.
func (k *kafka) leader(r *run, partition int32) int {
	m, err := r.admin().Metadata(r.within(), r.o.topic)
	if err != nil || m.Topics[r.o.topic].Partitions[partition].Leader < 0 {
		return -1
	}
	return k.Index(m.Topics[r.o.topic].Partitions[partition].Leader)
}

// faults are what befalls real brokers. One at a time is away: two of three
// hold what is committed.
func (k *kafka) faults(r *run) []fault {
	return []fault{
		{"leader killed", 6, func(d *rand.Rand) {
			if i := k.leader(r, d.Int32N(r.parts.Load())); i >= 0 && k.away < 0 {
				k.Kill(i)
				k.away, k.back = i, time.Now().Add(time.Duration(d.IntN(6000))*time.Millisecond)
			}
		}},
		{"brokers restarted in turn", 1, func(*rand.Rand) {
			k.tend(true)
			for i := range k.Addrs {
				k.Stop(i)
				k.Restart(i)
			}
		}},
		{"preferred leaders elected", 2, func(*rand.Rand) {
			var all kadm.TopicsSet
			for p := range r.parts.Load() {
				all.Add(r.o.topic, p)
			}
			_, _ = r.admin().ElectLeaders(r.within(), kadm.ElectPreferredReplica, all) // as far as there are any
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
