package apptest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// kafkaCases are the hard cases of Kafka tailing and replay that users of
// other systems met, and the tests that hold tailcast to the right answer.
// Those of this file see it from outside; where a broker must do what kfake
// can't from there, the tests are in the rooms.
var kafkaCases = []struct {
	id, what string
	tests    string // FOLDER.FUNCTION ...
}{
	{"C01", "the position is below the log start", "apptest.expired kafkatail.TestHistoryExpired"},
	{"C02", "an id of a former topic, beyond the new one's end", "apptest.topicRecreated apptest/chaos.TestRecreated apptest.beyondTheEnd"},
	{"C04", "the topic is re-created under open streams", "apptest.topicRecreated kafkatail.TestTopicRecreated apptest/chaos.TestRecreated"},
	{"C05", "an id that is ahead of this node", "apptest.ahead loop.TestPersonalStreamAhead kafkatail.TestShorterForAMoment"},
	{"C06", "retention overtakes a replay", "apptest/chaos.TestRetention kafkatail.TestHistoryExpired kafkatail.TestDeleteRecordsOvertakes"},
	{"C08", "an unclean election cuts the log", "apptest/chaos.unclean kafkatail.kafkaUncleanElection kafkatail.TestTruncatedInSilence"},
	{"C09", "partitions are added", "apptest.partitionGrowth kafkatail.TestPartitionGrowth apptest/chaos.TestChaos"},
	{"C12", "the last offset is a transaction's marker", "apptest.transactions kafkatail.TestTransactions kafkatail.TestHistoryTransactions"},
	{"C13", "aborted transactions", "apptest.transactions kafkatail.TestTransactions apptest/chaos.TestChaos"},
	{"C15", "a start while a transaction is open", "apptest.transactions kafkatail.TestOpenTransaction kafkatail.TestHistoryOpenTransaction"},
	{"C16", "offsets are missing, since the log is compacted", "apptest.compacted kafkatail.TestCompactionGaps kafkatail.TestHistoryCompacted"},
	{"C17", "the last offsets are missing", "kafkatail.TestEndWithoutRecordsIsNoStall kafkatail.TestHistoryEndsInAHole kafkatail.kafkaCompaction"},
	{"C18", "tombstones", "apptest.TestBytes apptest.snapshot apptest.forgottenDeletions kafkatail.TestRecordsAsTheyAre"},
	{"C19", "null and empty keys", "apptest.TestSSECases kafkatail.TestRecordsAsTheyAre"},
	{"C21", "a record above the fetch size", "apptest.oversized kafkatail.TestRecordAboveFetchSize kafkatail.TestHistoryRecordAboveFetchSize"},
	{"C22", "null, binary, duplicate and nameless headers", "apptest.TestBytes kafkatail.TestRecordsAsTheyAre"},
	{"C23", "timestamps that are none", "loop.TestObserve kafkatail.TestRecordsAsTheyAre"},
	{"C25", "all brokers are down at the start", "apptest.TestBrokerAwayAtStart kafkatail.TestBrokerAwayAtStart"},
	{"C26", "brokers restart, one or one after the other", "apptest/chaos.chaos kafkatail.TestBrokerAwayLater kafkatail.kafkaLeaderKilled"},
	{"C28", "a wrong password", "kafkatail.TestSASL kafkatail.kafkaPasswords"},
	{"C29", "one topic of several is denied", "kafkatail.TestDeniedTopic kafkatail.TestDeniedWhileTailing kafkatail.kafkaDenied"},
	{"C31", "malformed ids", "apptest.malformed frame.TestParseIDRefuses frame.FuzzParseID"},
	{"C32", "forged ids", "apptest.tooFar apptest.beyondTheEnd"},
	{"C33", "ids of another topic", "apptest.foreign hub.TestResume"},
	{"C35", "ids of a later version", "apptest.malformed frame.TestIDsAreReadForEver"},
	{"C36", "off by one", "apptest.exact hub.TestResumeFromEveryID"},
	{"C37", "an id covers what the client was sent, of every partition", "apptest/chaos.TestChaos loop.TestChurn"},
	{"C38", "records are written while a stream catches up", "apptest/chaos.TestChaos hub.TestAttachWhileAppending"},
	{"C41", "a partition without a leader", "kafkatail.TestLeaderlessPartition hub.TestPartitionWithoutLeader"},
	{"C43", "a restart under all clients", "apptest.resumeAfterKill apptest/chaos.TestChaos"},
	{"C44", "some partitions have expired", "apptest.expiredInPart apptest/chaos.TestRetention"},
}

// TestKafkaCasesHaveTests keeps the list true.
func TestKafkaCasesHaveTests(t *testing.T) {
	sources := map[string]string{} // by folder
	for _, c := range kafkaCases {
		for name := range strings.FieldsSeq(c.tests) {
			folder, function, _ := strings.Cut(name, ".")
			if _, ok := sources[folder]; !ok {
				sources[folder] = testSource(t, filepath.Join("..", folder))
			}
			if !strings.Contains(sources[folder], "\nfunc "+function+"(") && !strings.Contains(sources[folder], ") "+function+"(t *testing.T) {\n") {
				t.Errorf("%s (%s): there is no %s", c.id, c.what, name)
			}
		}
	}
}

func testSource(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d test files, %v", folder, len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// onlyHistory is a topic that is written before the gateway runs, so that it
// has none of it in memory.
type onlyHistory struct {
	topic      string
	partitions int32
	write      func(t *testing.T, b *broker, topic string)
	play       func(t *testing.T, g *cases, topic string)
}

// cases is a gateway with a route for each topic.
type cases struct {
	*testkit.Server
	b *broker
}

// replayMax is the gateway's --replay-max.
const replayMax = 1000

func TestKafkaCases(t *testing.T) {
	t.Parallel()
	b, running := fakeCluster(t)
	b.start()
	list := []onlyHistory{
		{"expired", 1, func(t *testing.T, b *broker, topic string) {
			b.produce(topic, 0, 600)
			b.deleteTo(topic, 0, 500)
		}, expired},
		{"expired-in-part", 2, func(t *testing.T, b *broker, topic string) {
			b.produce(topic, 0, 20)
			b.produce(topic, 1, 20)
			b.deleteTo(topic, 1, 15)
		}, expiredInPart},
		{"ahead", 1, func(t *testing.T, b *broker, topic string) { b.produce(topic, 0, 3) }, ahead},
		{"beyond", 1, func(t *testing.T, b *broker, topic string) { b.produce(topic, 0, 3) }, beyondTheEnd},
		{"compacted", 1, func(t *testing.T, b *broker, topic string) { b.compact(topic, running()) }, compacted},
		{"oversized", 1, func(t *testing.T, b *broker, topic string) {
			large := b.client(kgo.ProducerBatchMaxBytes(8<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
			for _, size := range []int{10, 5 << 20, 10} {
				sendBy(t, large, &kgo.Record{Topic: topic, Value: []byte(strings.Repeat("x", size))})
			}
		}, oversized},
		{"malformed", 1, func(t *testing.T, b *broker, topic string) { b.produce(topic, 0, 5) }, malformed},
		{"too-far", 1, func(t *testing.T, b *broker, topic string) { b.produce(topic, 0, replayMax+200) }, tooFar},
		{"foreign", 1, func(t *testing.T, b *broker, topic string) { b.produce(topic, 0, 50) }, foreign},
		{"exact", 2, func(t *testing.T, b *broker, topic string) { b.produce(topic, 0, 5) }, exact},
		{"all-expired", 1, func(t *testing.T, b *broker, topic string) {
			b.produce(topic, 0, 5)
			b.deleteTo(topic, 0, 5)
		}, allExpired},
	}
	configs := map[string]map[string]*string{
		"compacted": {"cleanup.policy": new("compact"), "delete.retention.ms": new("0")},
		"oversized": {"max.message.bytes": new("8388608")},
	}
	flags := []string{"--replay-max", strconv.Itoa(replayMax)}
	for _, c := range list {
		b.createWith(c.topic, c.partitions, configs[c.topic])
		c.write(t, b, c.topic)
		flags = append(flags, "--route", "/"+c.topic+"="+c.topic)
	}
	g := &cases{ready(t, b, flags...), b}
	for _, c := range list {
		t.Run(c.topic, func(t *testing.T) { t.Parallel(); c.play(t, g, c.topic) })
	}
}

// deleteTo raises the log start of a partition.
func (b *broker) deleteTo(topic string, partition int32, offset int64) {
	b.t.Helper()
	var del kadm.Offsets
	del.AddOffset(topic, partition, offset, -1)
	resp, err := b.admin().DeleteRecords(within(b.t), del)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		b.t.Fatalf("delete records of %s/%d: %v", topic, partition, err)
	}
}

func (b *broker) createWith(topic string, partitions int32, configs map[string]*string) {
	b.t.Helper()
	if _, err := b.admin().CreateTopic(within(b.t), partitions, 1, configs, topic); err != nil {
		b.t.Fatal(err)
	}
}

// compact writes a topic and leaves the offsets 0, 13, 15 and 17 of it.
func (b *broker) compact(topic string, c *kfake.Cluster) {
	b.t.Helper()
	record := func(key string) *kgo.Record { return &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(key)} }
	b.send(record("first")) // kfake begins the log at what is left
	for range 5 {
		for _, key := range []string{"a", "b", "c"} {
			b.send(record(key))
		}
	}
	b.send(&kgo.Record{Topic: topic, Key: []byte("b")}) // 16
	b.send(record("last"))
	c.Compact()
}

// tag is what ids of a topic end in.
func (g *cases) tag(t *testing.T, topic string) string {
	t.Helper()
	id := open(t, g.Server, "/"+topic).Stream.Parser.LastEventID()
	return id[strings.Index(id, "~"):]
}

// resume opens a stream with an id, which must be its first.
func (g *cases) resume(t *testing.T, topic, id string) *testkit.Conn {
	t.Helper()
	c := open(t, g.Server, "/"+topic, "Last-Event-ID: "+id)
	if want := "\nid: " + id + "\n\n"; !bytes.Contains(c.Raw, []byte(want)) {
		t.Fatalf("the stream does not begin at %s: %.300q", id, c.Raw)
	}
	return c
}

// wantLoss waits for a resync event with exactly this data, and where it goes on.
func wantLoss(t *testing.T, c *testkit.Conn, data, id string) {
	t.Helper()
	if e := c.Next(t, patience); e.Type != "resync" || e.Data != data || e.LastEventID != id {
		t.Fatalf("got event %+v, want resync %s with id %s", e, data, id)
	}
}

func expired(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	c := g.resume(t, topic, "v1:0-100"+tag)
	wantLoss(t, c, `{"reason":"expired","topics":{"expired":[{"partition":0,"from":101,"to":499}]}}`, "v1:0-499"+tag)
	wantRecords(t, c, 0, 500, 600)
}

// expiredInPart: the other partition is resumed without loss.
func expiredInPart(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	c := g.resume(t, topic, "v1:0-4.1-4"+tag)
	wantLoss(t, c, `{"reason":"expired","topics":{"expired-in-part":[{"partition":1,"from":5,"to":14}]}}`, "v1:0-4.1-14"+tag)
	wantAll(t, c, map[int32]int64{0: 5, 1: 15}, map[int32]int64{0: 20, 1: 20})
}

// allExpired: a log that starts where it ends holds nothing, and that is no
// loss for those who have read it.
func allExpired(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	all := g.resume(t, topic, "v1:0-4"+tag)
	some := g.resume(t, topic, "v1:0-2"+tag)
	wantLoss(t, some, `{"reason":"expired","topics":{"all-expired":[{"partition":0,"from":3,"to":4}]}}`, "v1:0-4"+tag)
	g.b.produce(topic, 0, 2)
	wantRecords(t, all, 0, 5, 7)
	wantRecords(t, some, 0, 5, 7)
}

// ahead: another node was further on. The stream waits and beats.
func ahead(t *testing.T, g *cases, topic string) {
	c := g.resume(t, topic, "v1:0-4"+g.tag(t, topic))
	c.Until(t, patience, "heartbeat", func() bool { return c.Stream.Parser.Comments > 0 })
	g.b.produce(topic, 0, 4)
	wantRecords(t, c, 0, 5, 7)
}

// beyondTheEnd: there is no such record, and after a while it is said so.
func beyondTheEnd(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	c := g.resume(t, topic, "v1:0-4611686018427387904"+tag)
	wantLoss(t, c, `{"reason":"truncated","topics":{"beyond":[{"partition":0,"from":3,"to":4611686018427387904}]}}`, "v1:0-2"+tag)
	g.b.produce(topic, 0, 1)
	wantRecords(t, c, 0, 3, 4)
}

// compacted: the next record is the one at or above the position, and nothing
// is said.
func compacted(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	for _, c := range []struct {
		after string
		want  []string
	}{
		{"v1:", []string{"first", "a", "c", "last"}},
		{"v1:0-0", []string{"a", "c", "last"}},
		{"v1:0-5", []string{"a", "c", "last"}},
		{"v1:0-13", []string{"c", "last"}},
		{"v1:0-16", []string{"last"}},
	} {
		conn := g.resume(t, topic, c.after+tag)
		for _, want := range c.want {
			if e := conn.Next(t, patience); e.Type != "message" || e.Data != want {
				t.Errorf("after %s: got event %+v, want %s", c.after, e, want)
			}
		}
	}
}

// oversized: the record is named, and those behind it come.
func oversized(t *testing.T, g *cases, topic string) {
	c := g.resume(t, topic, "v1:"+g.tag(t, topic))
	want := []string{"message xxxxxxxxxx", `skipped {"topic":"oversized","partition":0,"offset":1,"size":5242880}`, "message xxxxxxxxxx"}
	for i, want := range want {
		if e := c.Next(t, patience); e.Type+" "+e.Data != want {
			t.Errorf("record %d came as %.200q, want %s", i, e.Type+" "+e.Data, want)
		}
	}
}

// malformed: whatever is sent as an id, the stream opens, says so, and goes on
// at the end.
func malformed(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	latest := "v1:0-4" + tag
	for _, id := range []string{
		"x", "0", "0-3", "v1", "v1:0", "v1:0-", "v1:-3", "v1:0--1", "v1:0-+5", "v1:0-0x10", "v1:00-1", "v1:0-01", "v1:0-3,", "v1:0-3 ", " v1:0-3",
		"v1:0-9223372036854775807", "v1:0-9223372036854775808", "v1:0-18446744073709551616", "v1:0-1.0-2", "v1:1-1.0-1", "v1:0-٣",
		"v1:0-3" + tag + "x", "v1:0-3~", "v1:0-3~a", "v1:0-3\xff\x00", "v1:0-3\n", "v2.", "v2.!!!!", "v2.AAAA", "v3:0-3" + tag, "v10.AAAA",
		"v1:" + strings.Repeat("0-1.", 2000), // 8 kB
	} {
		c := open(t, g.Server, "/"+topic+"?lastEventId="+url.QueryEscape(id))
		if e := c.Next(t, patience); e.Type != "resync" || e.Data != `{"reason":"unknown","topics":{}}` || e.LastEventID != latest {
			t.Errorf("%.60q: got event %+v, want a resync to %s", id, e, latest)
		}
	}
}

// tooFar: a resume that lacks more than --replay-max is told so; one that lacks
// just that much is not.
func tooFar(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	near := g.resume(t, topic, "v1:0-199"+tag)
	wantRecords(t, near, 0, 200, replayMax+200)
	far := g.resume(t, topic, "v1:"+tag)
	got := int64(0)
	e := far.Next(t, patience)
	for ; e.Type == "message" && e.Data == valueOf(0, got, false); e = far.Next(t, patience) {
		got++
	}
	want := fmt.Sprintf(`{"reason":"too-far","topics":{"too-far":[{"partition":0,"from":%d,"to":1199}]}}`, got)
	if e.Type != "resync" || e.Data != want || got > replayMax {
		t.Errorf("after %d records came %+v, want %s", got, e, want)
	}
	g.b.produce(topic, 0, 1)
	wantRecords(t, far, 0, replayMax+200, replayMax+201)
}

// foreign: an id of one route on another is none of its own, though its
// offsets exist there.
func foreign(t *testing.T, g *cases, topic string) {
	c := open(t, g.Server, "/"+topic, "Last-Event-ID: v1:0-3"+g.tag(t, "exact"))
	wantLoss(t, c, `{"reason":"unknown","topics":{}}`, "v1:0-49"+g.tag(t, topic))
}

// exact: nothing comes twice and nothing is left out at the ends of a log.
func exact(t *testing.T, g *cases, topic string) {
	tag := g.tag(t, topic)
	conns := map[string]*testkit.Conn{}
	next := map[string]int64{"v1:": 0, "v1:0-0": 1, "v1:0-3": 4, "v1:0-4": 5}
	for id := range next {
		conns[id] = g.resume(t, topic, id+tag)
		wantRecords(t, conns[id], 0, next[id], 5)
	}
	g.b.produce(topic, 1, 2) // of which no id knows
	for id, c := range conns {
		wantRecords(t, c, 1, 0, 2)
		if got, want := c.Stream.Parser.LastEventID(), "v1:0-4.1-1"+tag; got != want {
			t.Errorf("the stream from %s is at %s, want %s", id, got, want)
		}
	}
}
