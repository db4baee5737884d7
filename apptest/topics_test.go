package apptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

func TestTopicMissingAtStart(t *testing.T) {
	t.Parallel()
	topicMissingAtStart(t, started(t, 1, "other"), "missing")
}

// topicMissingAtStart has a stream of a topic that does not exist: it is open,
// and gets every record once there is one. Nobody but the producer makes it.
func topicMissingAtStart(t *testing.T, b *broker, topic string) {
	s := ready(t, b, "--route", "/events="+topic)
	c := open(t, s, "/events")
	if id := c.Stream.Parser.LastEventID(); len(id) != len("v1:~ab") {
		t.Errorf("id %s; want one without a topic id", id)
	}
	c.Until(t, patience, "heartbeat", func() bool { return c.Stream.Parser.Comments > 0 })
	if trouble := topicTrouble(t, s, topic); trouble != "missing" {
		t.Errorf("/status says %q of the topic, want missing", trouble)
	}
	b.create(topic, 2)
	b.produce(topic, 1, 3)
	b.produce(topic, 0, 2)
	wantAll(t, c, map[int32]int64{}, map[int32]int64{0: 2, 1: 3})
	if trouble := topicTrouble(t, s, topic); trouble != "" {
		t.Errorf("/status still says %q of the topic", trouble)
	}
	if n := s.Metric(t, `tailcast_resyncs_total{reason="recreated"}`); n != 0 {
		t.Errorf("%v resyncs of a topic that is new", n)
	}
	// What the client has now is resumed like any position.
	again := open(t, s, "/events", "Last-Event-ID: "+c.Stream.Parser.LastEventID())
	b.produce(topic, 0, 1)
	wantRecords(t, again, 0, 2, 3)
}

// wantAll waits until a stream that has brought some records of each partition
// has brought as many as are wanted, each in its turn.
func wantAll(t *testing.T, c *testkit.Conn, have, want map[int32]int64) {
	t.Helper()
	have = maps.Clone(have)
	for !maps.Equal(have, want) {
		e := c.Next(t, patience)
		var p int32
		if _, err := fmt.Sscanf(e.Data, "%d/", &p); err != nil || e.Type != "message" || e.Data != valueOf(p, have[p], false) {
			t.Fatalf("got event %+v, have %v of %v", e, have, want)
		}
		have[p]++
	}
}

// topicTrouble is what /status says is wrong with a topic.
func topicTrouble(t *testing.T, s *testkit.Server, topic string) string {
	t.Helper()
	var status struct {
		Kafka struct {
			Topics []struct{ Topic, Error string }
		}
	}
	if err := json.Unmarshal([]byte(s.Get(t, "/status")), &status); err != nil {
		t.Fatal(err)
	}
	for _, tp := range status.Kafka.Topics {
		if tp.Topic == topic {
			return tp.Error
		}
	}
	t.Fatalf("/status does not know %s", topic)
	return ""
}

func TestTopicRecreated(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		t.Run(fmt.Sprint("at once ", atOnce), func(t *testing.T) {
			t.Parallel()
			topicRecreated(t, started(t, 2, "again"), "again", atOnce)
		})
	}
}

// topicRecreated deletes a topic and makes another of its name: a connected
// stream is told so once and gets it from its beginning, and so is one that
// comes back with an id of the former topic.
func topicRecreated(t *testing.T, b *broker, topic string, atOnce bool) {
	s := ready(t, b, "--route", "/events="+topic)
	c := open(t, s, "/events")
	b.produce(topic, 0, 8)
	wantRecords(t, c, 0, 0, 8)
	former := c.Stream.Parser.LastEventID()
	b.remove(topic)
	if !atOnce {
		logged := fmt.Sprintf("topic=%s state=missing", topic)
		testkit.Eventually(t, patience, "notice of the deletion", func() bool { return strings.Contains(s.Stderr.String(), logged) })
	}
	b.create(topic, 1)
	b.produce(topic, 0, 4)
	wantResync(t, c.Next(t, patience), "recreated", topic, nil)
	wantRecords(t, c, 0, 0, 4)
	if c.Stream.Parser.LastEventID()[len("v1:0-3"):] == former[len("v1:0-7"):] {
		t.Errorf("the former topic's ids were %s, the new one's are %s", former, c.Stream.Parser.LastEventID())
	}
	back := testkit.Open(t, s.Addr, "/events", "Last-Event-ID: "+former)
	wantResync(t, back.Next(t, patience), "recreated", topic, map[int32]int64{})
	wantRecords(t, back, 0, 0, 4)
	b.produce(topic, 0, 1)
	wantRecords(t, back, 0, 4, 5)
	wantRecords(t, c, 0, 4, 5)
	if n := s.Metric(t, `tailcast_resyncs_total{reason="recreated"}`); n != 2 {
		t.Errorf("%v resyncs are counted, want 2", n)
	}
}

// wantResync checks a resync event and, unless at is nil, where it goes on.
func wantResync(t *testing.T, e ssetest.Event, reason, topic string, at map[int32]int64) {
	t.Helper()
	var notice struct {
		Reason string
		Topics map[string]json.RawMessage
	}
	if e.Type != "resync" || json.Unmarshal([]byte(e.Data), &notice) != nil || notice.Reason != reason {
		t.Fatalf("got event %+v, want a resync: %s", e, reason)
	}
	for name := range notice.Topics {
		if name != topic {
			t.Errorf("the resync %s is of %s, want %s", e.Data, name, topic)
		}
	}
	if got, err := offsetsOf(e.LastEventID); err != nil || at != nil && !maps.Equal(got, at) {
		t.Errorf("the resync goes on at %v, %v, want %v", got, err, at)
	}
}

func TestPartitionGrowth(t *testing.T) {
	t.Parallel()
	partitionGrowth(t, started(t, 1, "growth"), "growth")
}

// partitionGrowth adds partitions under the eyes of followers: their records
// come from the first one on, also to clients that resume from an id that does
// not know them.
func partitionGrowth(t *testing.T, b *broker, topic string) {
	s := ready(t, b, "--route", "/events="+topic)
	first := open(t, s, "/events")
	b.produce(topic, 0, 2)
	wantRecords(t, first, 0, 0, 2)
	early := first.Stream.Parser.LastEventID()
	b.grow(topic, 3)
	b.produce(topic, 2, 3) // before anybody has looked
	b.produce(topic, 1, 1)
	b.produce(topic, 0, 1)
	back := open(t, s, "/events", "Last-Event-ID: "+early)
	for _, c := range []*testkit.Conn{first, back} {
		wantAll(t, c, map[int32]int64{0: 2}, map[int32]int64{0: 3, 1: 1, 2: 3})
	}
	late := open(t, s, "/events", "Last-Event-ID: "+early)
	wantAll(t, late, map[int32]int64{0: 2}, map[int32]int64{0: 3, 1: 1, 2: 3})
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	transactions(t, started(t, 1, "tx"), "tx")
}

// transactions has streams see what is committed, when it is committed, and
// nothing else; ids move over the rest.
func transactions(t *testing.T, b *broker, topic string) {
	s := ready(t, b, "--route", "/events="+topic)
	c := open(t, s, "/events")
	tx := b.client(kgo.TransactionalID(topic))
	texts := func(kind string) (recs []*kgo.Record) {
		for i := range 3 {
			recs = append(recs, &kgo.Record{Topic: topic, Value: fmt.Append(nil, kind, i)})
		}
		return recs
	}
	begin := func(kind string) {
		t.Helper()
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		sendBy(t, tx, texts(kind)...)
	}
	end := func(how kgo.TransactionEndTry) {
		t.Helper()
		if err := tx.EndTransaction(within(t), how); err != nil {
			t.Fatal(err)
		}
	}
	want := func(c *testkit.Conn, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if e := c.Next(t, patience); e.Type != "message" || e.Data != text {
				t.Fatalf("got event %+v, want %q", e, text)
			}
		}
	}
	begin("committed ") // 0-2, marker 3
	end(kgo.TryCommit)
	begin("aborted ") // 4-6, marker 7
	end(kgo.TryAbort)
	b.send(&kgo.Record{Topic: topic, Value: []byte("plain")}) // 8
	want(c, "committed 0", "committed 1", "committed 2", "plain")
	if at, err := offsetsOf(c.Stream.Parser.LastEventID()); err != nil || at[0] != 8 {
		t.Errorf("the id is at %v, %v; want 8", at, err)
	}
	begin("late ") // 9-11
	b.send(&kgo.Record{Topic: topic, Value: []byte("held back")})
	began := open(t, s, "/events")
	if at, err := offsetsOf(began.Stream.Parser.LastEventID()); err != nil || at[0] > 8 {
		t.Errorf("a stream that comes while a transaction is open begins at %v, %v; want 8", at, err)
	}
	end(kgo.TryCommit)
	for _, c := range []*testkit.Conn{c, began} {
		want(c, "late 0", "late 1", "late 2", "held back")
	}
	begin("aborted ")
	end(kgo.TryAbort)
	b.send(&kgo.Record{Topic: topic, Value: []byte("last")})
	want(c, "last")
	testkit.Eventually(t, patience, "no lag", func() bool {
		return s.Metric(t, fmt.Sprintf(`tailcast_tail_lag_records{partition="0",topic=%q}`, topic)) == 0
	})
}
