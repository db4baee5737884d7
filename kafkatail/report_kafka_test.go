//go:build kafka

package kafkatail

import (
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"tailcast/internal/kafkatest"
)

// The group has what the tail has, its lag is what tools show, and what a topic
// held before it was re-created is not said of its successor.
func kafkaReport(t *testing.T, r *brokers) {
	r.create(t, "report", 2, nil)
	cl := r.client(t)
	produce(t, cl, "report", 0, 3)
	tail := r.tail(t, reporting(100*time.Millisecond))
	rec := tail.follow(t, "report")
	waitGroup(t, cl, "report", map[int32]int64{0: 3, 1: 0})
	produce(t, cl, "report", 1, 5)
	wantOffsets(t, rec, 1, upTo(0, 5))
	waitGroup(t, cl, "report", map[int32]int64{0: 3, 1: 5})
	lags, err := r.adm.Lag(within(t), group)
	if err != nil {
		t.Fatal(err)
	}
	if lag := lags[group]; lag.Error() != nil || lag.State != "Empty" || lag.Lag.Total() != 0 {
		t.Errorf("lag %+v", lag)
	}
	if _, err := r.adm.DeleteTopic(within(t), "report"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic to be created again", func() (bool, any) {
		_, err := r.adm.CreateTopic(within(t), 1, 1, nil, "report")
		return err == nil, err
	})
	cl = r.client(t)
	produce(t, cl, "report", 0, 1)
	wantOffsets(t, rec, 0, upTo(0, 1))
	tail.stop()
	if got, err := groupOffsets(t, cl, "report"); err != nil || !maps.Equal(got, map[int32]int64{0: 1}) {
		t.Errorf("the group has %v: %v", got, err)
	}
}

// ACLs forbid the group: streams go on, and once it is allowed it has it all.
func kafkaReportDenied(t *testing.T, r *brokers) {
	r.create(t, "report-denied", 1, nil)
	deny := kadm.NewACLs().Groups(group).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpRead).Deny("User:" + kafkatest.User).DenyHosts()
	if _, err := r.adm.CreateACLs(within(t), deny); err != nil {
		t.Fatal(err)
	}
	tail := r.tail(t, reporting(20*time.Millisecond), func(c *Config) {
		c.Brokers, c.SASL = r.SASLAddrs, SASL{"PLAIN", kafkatest.User, write(t, "password", kafkatest.Password)}
	})
	rec := tail.follow(t, "report-denied")
	cl := r.client(t)
	produce(t, cl, "report-denied", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	eventually(t, "the reason", func() (bool, any) {
		got := tail.log.lines("GROUP_AUTHORIZATION_FAILED")
		return len(got) == 1, got
	})
	if err := tail.Status().Ready(time.Now()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if _, err := r.adm.DeleteACLs(within(t), deny); err != nil {
		t.Fatal(err)
	}
	waitGroup(t, cl, "report-denied", map[int32]int64{0: 3})
	if got := tail.log.lines("--kafka-report-group"); len(got) != 1 {
		t.Errorf("logged %q", got)
	}
}

// The group's coordinator is killed: records go on, and the next one is found.
func kafkaCoordinatorKilled(t *testing.T, r *brokers) {
	r.create(t, "coordinator", 3, nil)
	cl := r.client(t)
	tail := r.tail(t, reporting(100*time.Millisecond))
	rec := tail.follow(t, "coordinator")
	waitGroup(t, cl, "coordinator", map[int32]int64{0: 0, 1: 0, 2: 0})
	found := r.adm.FindGroupCoordinators(within(t), group)[group]
	if found.Err != nil {
		t.Fatal(found.Err)
	}
	i := r.Index(found.NodeID)
	r.Kill(i)
	for p := range int32(3) {
		produce(t, cl, "coordinator", p, 2)
		wantOffsets(t, rec, p, upTo(0, 2))
	}
	waitGroup(t, cl, "coordinator", map[int32]int64{0: 2, 1: 2, 2: 2})
	wantLoss(t, rec)
	r.Restart(i)
}
