//go:build kafka

package kafkatail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
	"tailcast/internal/kafkatest"
)

// A broker in its own process, on a busy machine, is given more time.
func init() { patience = 90 * time.Second }

// brokers are a cluster of real ones, with what tests ask of it.
type brokers struct {
	*kafkatest.Cluster
	adm *kadm.Client
	ask *lister
}

func start(t *testing.T, o kafkatest.Options) *brokers {
	t.Helper()
	c := kafkatest.Start(t, o)
	r := &brokers{Cluster: c}
	cl := r.client(t)
	r.adm, r.ask = kadm.NewClient(cl), &lister{cl: cl, timeout: patience}
	return r
}

func (r *brokers) client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	return newClient(t, append([]kgo.Opt{kgo.SeedBrokers(r.Addrs...)}, opts...)...)
}

func (r *brokers) create(t testing.TB, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	_, err := r.adm.CreateTopic(within(t), partitions, -1, configs, topic)
	if err != nil {
		t.Fatalf("create %s: %v", topic, err)
	}
}

// within is a context for one request of a test.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// tail starts a tail with intervals for real brokers.
func (r *brokers) tail(t testing.TB, change ...func(*Config)) *running {
	t.Helper()
	return startTail(t, r.Addrs, append([]func(*Config){func(c *Config) {
		c.Timing.Stalled = 20 * time.Second
		c.Timing.Confirm = time.Second
	}}, change...)...)
}

// One broker, one topic a case.
func TestKafka(t *testing.T) {
	r := start(t, kafkatest.Options{SASL: true, Props: map[string]string{
		"authorizer.class.name":          "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                    "User:ANONYMOUS",
		"allow.everyone.if.no.acl.found": "true",
	}})
	for _, tc := range []struct {
		name string
		f    func(*testing.T, *brokers)
	}{
		{"live", kafkaLive},
		{"codecs", kafkaCodecs},
		{"transactions", kafkaTransactions},
		{"growth", kafkaGrowth},
		{"missing", kafkaMissing},
		{"recreated", kafkaRecreated},
		{"delete records", kafkaDeleteRecords},
		{"compaction", kafkaCompaction},
		{"passwords", kafkaPasswords},
		{"denied", kafkaDenied},
		{"history", kafkaHistory},
		{"history large", kafkaHistoryLarge},
		{"history transactions", kafkaHistoryTransactions},
		{"history expired", kafkaHistoryExpired},
		{"history recreated", kafkaHistoryRecreated},
		{"history compacted", kafkaHistoryCompacted},
		{"warmup", kafkaWarmup},
		{"report", kafkaReport},
		{"report denied", kafkaReportDenied},
		{"killed", kafkaKilled}, // last: the others need not wait for it
	} {
		t.Run(tc.name, func(t *testing.T) { tc.f(t, r) })
	}
}

func kafkaLive(t *testing.T, r *brokers) {
	r.create(t, "live", 2, nil)
	cl := r.client(t)
	produce(t, cl, "live", 0, 5)
	tail := r.tail(t)
	rec := tail.follow(t, "live")
	if got, want := rec.opened().parts, []frame.Partition{{ID: 0, Next: 5}, {ID: 1, Next: 0}}; !slices.Equal(got, want) {
		t.Fatalf("opened at %v, want %v", got, want)
	}
	send(t, cl, &kgo.Record{Topic: "live", Key: []byte("k"), Headers: []kgo.RecordHeader{{Key: "h"}, {Key: "h", Value: []byte{0xff, 0}}}})
	produce(t, cl, "live", 0, 2)
	produce(t, cl, "live", 1, 2)
	wantOffsets(t, rec, 0, upTo(5, 8))
	wantOffsets(t, rec, 1, upTo(0, 2))
	got := rec.recs[0][0]
	if got.value != nil || len(got.headers) != 2 || got.headers[0].Value != nil || string(got.headers[1].Value) != "\xff\x00" || got.time <= 0 {
		t.Errorf("tombstone with headers came as %+v", got)
	}
	late := tail.follow(t, "live")
	produce(t, cl, "live", 0, 1)
	wantOffsets(t, late, 0, []int64{8})
	eventually(t, "no lag", func() (bool, any) {
		s := tail.topicStatus("live")
		return s.Lag == 0 && s.Partitions[0].End == 9, s
	})
}

func kafkaCodecs(t *testing.T, r *brokers) {
	r.create(t, "codecs", 1, nil)
	rec := r.tail(t).follow(t, "codecs")
	var n int64
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		cl := r.client(t, kgo.ProducerBatchCompression(codec))
		var recs []*kgo.Record
		for i := range 300 {
			recs = append(recs, &kgo.Record{Topic: "codecs", Value: fmt.Appendf(nil, "%d %s", n+int64(i), strings.Repeat("x", i))})
		}
		send(t, cl, recs...)
		n += int64(len(recs))
	}
	wantOffsets(t, rec, 0, upTo(0, n))
	for i, v := range rec.values(0) {
		if !strings.HasPrefix(v, fmt.Sprint(i, " ")) {
			t.Fatalf("record %d is %q", i, v)
		}
	}
}

func kafkaTransactions(t *testing.T, r *brokers) {
	r.create(t, "tx", 1, nil)
	tail := r.tail(t)
	rec := tail.follow(t, "tx")
	cl, tx := r.client(t), r.client(t, kgo.TransactionalID("tx"))
	transaction(t, tx, "tx", 3, kgo.TryCommit) // 0-2, marker 3
	transaction(t, tx, "tx", 3, kgo.TryAbort)  // 4-6, marker 7
	transaction(t, tx, "tx", 3, kgo.TryCommit) // 8-10, marker 11
	transaction(t, tx, "tx", 2, kgo.TryAbort)  // 12-13, marker 14
	want := []int64{0, 1, 2, 8, 9, 10}
	wantOffsets(t, rec, 0, want)
	eventually(t, "the position to pass the last marker", func() (bool, any) {
		n, _ := rec.position(0)
		return n == 15, n
	})
	begin(t, tx, "tx", 2)      // 15-16
	produce(t, cl, "tx", 0, 1) // 17, held back by them
	late := r.tail(t).follow(t, "tx")
	if got := late.opened().parts[0].Next; got != 15 {
		t.Errorf("a start while a transaction is open is at %d, want 15", got)
	}
	if got := rec.offsets(0); !slices.Equal(got, want) {
		t.Errorf("an open transaction is seen: %v", got)
	}
	if err := tx.EndTransaction(within(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, rec, 0, append(want, 15, 16, 17))
	wantOffsets(t, late, 0, []int64{15, 16, 17})
	wantLoss(t, rec)
}

func kafkaGrowth(t *testing.T, r *brokers) {
	r.create(t, "growth", 1, nil)
	rec := r.tail(t, func(c *Config) { c.Timing.Look = 2 * time.Second }).follow(t, "growth")
	cl := r.client(t)
	addPartitions(t, cl, "growth", 3)
	produce(t, cl, "growth", 2, 4) // before the next look
	produce(t, cl, "growth", 0, 1)
	wantOffsets(t, rec, 2, upTo(0, 4))
	wantOffsets(t, rec, 0, upTo(0, 1))
}

func kafkaMissing(t *testing.T, r *brokers) {
	rec := r.tail(t).follow(t, "missing")
	if got := rec.opened(); got.id != (frame.TopicID{}) {
		t.Fatalf("opened at %v", got)
	}
	r.create(t, "missing", 2, nil)
	produce(t, r.client(t), "missing", 1, 3)
	wantOffsets(t, rec, 1, upTo(0, 3))
}

func kafkaRecreated(t *testing.T, r *brokers) {
	for _, pause := range []bool{false, true} {
		topic := fmt.Sprint("recreated-", pause)
		r.create(t, topic, 2, nil)
		tail := r.tail(t)
		rec := tail.follow(t, topic)
		cl := r.client(t)
		produce(t, cl, topic, 0, 20)
		wantOffsets(t, rec, 0, upTo(0, 20))
		if _, err := r.adm.DeleteTopic(within(t), topic); err != nil {
			t.Fatal(err)
		}
		if pause {
			waitState(t, tail, topic, Missing)
		}
		eventually(t, "the topic to be created again", func() (bool, any) {
			_, err := r.adm.CreateTopic(within(t), 1, 1, nil, topic)
			return err == nil, err
		})
		produce(t, r.client(t), topic, 0, 4)
		wantOffsets(t, rec, 0, upTo(0, 4))
		if got := rec.recreations(); len(got) != 1 || len(got[0].parts) != 1 || got[0].id == rec.opened().id {
			t.Errorf("re-created as %v", got)
		}
	}
}

func kafkaDeleteRecords(t *testing.T, r *brokers) {
	r.create(t, "expire", 1, nil)
	tail := r.tail(t)
	rec := tail.follow(t, "expire")
	cl := r.client(t)
	produce(t, cl, "expire", 0, 3)
	wantOffsets(t, rec, 0, upTo(0, 3))
	// Keep the reader away while records come and go.
	onReader(t, tail, func(r *reader) { r.cl.PauseFetchTopics("expire") })
	produce(t, cl, "expire", 0, 20)
	var del kadm.Offsets
	del.AddOffset("expire", 0, 15, -1)
	if _, err := r.adm.DeleteRecords(within(t), del); err != nil {
		t.Fatal(err)
	}
	onReader(t, tail, func(r *reader) { // what a fetch under way had brought is void
		r.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{"expire": {0: {Epoch: -1, Offset: 3}}})
		r.cl.ResumeFetchTopics("expire")
	})
	eventually(t, "the end", func() (bool, any) {
		n, _ := rec.position(0)
		return n == 23, n
	})
	wantOffsets(t, rec, 0, append(upTo(0, 3), upTo(15, 23)...))
	wantLoss(t, rec, loss{frame.Expired, []frame.Range{{Topic: "expire", Partition: 0, From: 3, To: 14}}, []frame.Partition{{ID: 0, Next: 15}}})
}

func onReader(t testing.TB, tail *running, f func(*reader)) {
	t.Helper()
	tail.mu.Lock()
	r := tail.reader
	tail.mu.Unlock()
	done := make(chan struct{})
	r.commands <- func() { defer close(done); f(r) }
	r.interrupt()
	<-done
}

func kafkaCompaction(t *testing.T, r *brokers) {
	tail := r.tail(t)
	rec := tail.follow(t, "compacted") // missing, so it is read whole
	onReader(t, tail, func(r *reader) { r.cl.PauseFetchTopics("compacted") })
	r.create(t, "compacted", 1, map[string]*string{
		"cleanup.policy": new("compact"), "segment.ms": new("200"), "min.cleanable.dirty.ratio": new("0.01"), "delete.retention.ms": new("0"),
	})
	cl := r.client(t)
	for range 5 {
		produce(t, cl, "compacted", 0, 3)
	}
	send(t, cl, &kgo.Record{Topic: "compacted", Key: []byte("k1")}) // a tombstone
	// The cleaner leaves the active segment alone: records make new ones.
	eventually(t, "the log to be compacted", func() (bool, any) {
		send(t, cl, &kgo.Record{Topic: "compacted", Key: []byte("tick")})
		left := r.offsets(t, "compacted")
		return left[0] >= 12 && !slices.Contains(left, 13), brief(left)
	})
	onReader(t, tail, func(r *reader) { r.cl.ResumeFetchTopics("compacted") })
	send(t, cl, &kgo.Record{Topic: "compacted", Key: []byte("last"), Value: []byte("x")})
	eventually(t, "the end", func() (bool, any) {
		s := tail.topicStatus("compacted")
		return len(rec.offsets(0)) > 0 && s.Lag == 0 && s.Partitions[0].Next == s.Partitions[0].End, s
	})
	if got := rec.offsets(0); got[0] < 12 || got[len(got)-1] != rec.next[0]-1 {
		t.Errorf("read %s", brief(got))
	}
	wantLoss(t, rec)
}

// offsets reads what is left of a topic's partition 0.
func (r *brokers) offsets(t testing.TB, topic string) []int64 {
	t.Helper()
	ends, err := r.adm.ListEndOffsets(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	cl := r.client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	var got []int64
	for len(got) == 0 || got[len(got)-1] < end.Offset-1 {
		fs := cl.PollFetches(within(t))
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		for _, rec := range fs.Records() {
			got = append(got, rec.Offset)
		}
	}
	return got
}

func kafkaPasswords(t *testing.T, r *brokers) {
	r.create(t, "secure", 1, nil)
	for _, mechanism := range mechanisms {
		t.Run(mechanism, func(t *testing.T) {
			right := write(t, "right", kafkatest.Password+"\n")
			rec := r.tail(t, func(c *Config) {
				c.Brokers, c.SASL = r.SASLAddrs, SASL{mechanism, kafkatest.User, right}
			}).follow(t, "secure")
			from := rec.opened().parts[0].Next
			produce(t, r.client(t), "secure", 0, 2)
			wantOffsets(t, rec, 0, upTo(from, from+2))

			wrong := write(t, "wrong", "wrong-secret")
			tail := r.tail(t, func(c *Config) {
				c.Brokers, c.SASL = r.SASLAddrs, SASL{mechanism, kafkatest.User, wrong}
			})
			eventually(t, "two refusals", func() (bool, any) { return tail.Status().Counters.Failed >= 2, tail.Status().Error })
			if s := tail.Status().Error; !strings.Contains(s, "--kafka-sasl-") || !strings.Contains(s, "SASL_AUTHENTICATION_FAILED") {
				t.Errorf("the reason is %q", s)
			}
			if strings.Contains(tail.log.String(), "wrong-secret") || len(tail.log.lines("Kafka does not answer")) != 1 {
				t.Errorf("log:\n%s", tail.log)
			}
		})
	}
	tail := r.tail(t, func(c *Config) { c.Brokers = r.SASLAddrs })
	eventually(t, "a hint at SASL", func() (bool, any) {
		s := tail.Status().Error
		return strings.Contains(s, "SASL"), s
	})
}

func kafkaDenied(t *testing.T, r *brokers) {
	password := write(t, "password", kafkatest.Password)
	cl := r.client(t)
	for _, op := range []kadm.ACLOperation{kadm.OpDescribe, kadm.OpRead} {
		topic := "denied-" + strings.ToLower(op.String())
		r.create(t, topic, 1, nil)
		r.create(t, topic+"-not", 1, nil)
		acl := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(op).Deny("User:" + kafkatest.User).DenyHosts()
		// With any ACL on a topic, what is not allowed is denied.
		open := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpDescribe, kadm.OpRead).Allow("User:" + kafkatest.User).AllowHosts()
		for _, b := range []*kadm.ACLBuilder{acl, open} {
			if _, err := r.adm.CreateACLs(within(t), b); err != nil {
				t.Fatal(err)
			}
		}
		produce(t, cl, topic, 0, 3)
		tail := r.tail(t, func(c *Config) {
			c.Brokers, c.SASL = r.SASLAddrs, SASL{"PLAIN", kafkatest.User, password}
			c.Timing.Denied = time.Second
		})
		other, rec := tail.follow(t, topic+"-not"), newRecorder(t)
		tail.Tail.Tail(topic, rec)
		waitState(t, tail, topic, Denied)
		produce(t, cl, topic+"-not", 0, 2)
		wantOffsets(t, other, 0, upTo(0, 2))
		if _, err := r.adm.DeleteACLs(within(t), acl); err != nil {
			t.Fatal(err)
		}
		waitState(t, tail, topic, Tailing)
		waitOpen(t, rec)
		produce(t, cl, topic, 0, 2)
		wantOffsets(t, rec, 0, upTo(3, 5)) // what it held is not new
	}
}

func kafkaKilled(t *testing.T, r *brokers) {
	r.create(t, "killed", 2, nil)
	tail := r.tail(t)
	rec := tail.follow(t, "killed")
	cl := r.client(t)
	produce(t, cl, "killed", 0, 10)
	wantOffsets(t, rec, 0, upTo(0, 10))
	r.Kill(0)
	eventually(t, "the loss of contact", func() (bool, any) { return !tail.Status().Connected, "" })
	late := tail.follow(t, "killed")
	r.Restart(0)
	produce(t, r.client(t), "killed", 0, 5)
	produce(t, r.client(t), "killed", 1, 5)
	wantOffsets(t, rec, 0, upTo(0, 15))
	wantOffsets(t, rec, 1, upTo(0, 5))
	wantOffsets(t, late, 0, upTo(10, 15))
	wantLoss(t, rec)
	if s := tail.topicStatus("killed"); s.State != Tailing {
		t.Errorf("the topic is %s: %s", s.State, s.Error)
	}
}

func TestKafkaThreeBrokers(t *testing.T) {
	r := start(t, kafkatest.Options{Brokers: 3})
	t.Run("leader killed", func(t *testing.T) { kafkaLeaderKilled(t, r) })
	t.Run("history leader killed", func(t *testing.T) { kafkaHistoryLeaderKilled(t, r) })
	t.Run("coordinator killed", func(t *testing.T) { kafkaCoordinatorKilled(t, r) })
	t.Run("unclean election", func(t *testing.T) { kafkaUncleanElection(t, r) })
}

// A leader is killed while records are written, comes back, and the next one is
// killed. No record is missing, none comes twice, whether leaders are read or
// the replica of a rack.
func kafkaLeaderKilled(t *testing.T, r *brokers) {
	r.create(t, "a", 3, nil)
	rec := r.tail(t).follow(t, "a")
	near := r.tail(t, func(c *Config) { c.Rack = kafkatest.Rack(2) }).follow(t, "a")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var want [3]atomic.Int64
	pace := time.NewTicker(time.Millisecond) // or the producers take both cores
	defer pace.Stop()
	for p := range want {
		cl := r.client(t)
		wg.Go(func() {
			for ctx.Err() == nil {
				send(t, cl, &kgo.Record{Topic: "a", Partition: int32(p), Value: []byte("x")})
				want[p].Add(1)
				<-pace.C
			}
		})
	}
	flows := func(p int) {
		t.Helper()
		seen := len(rec.offsets(int32(p)))
		eventually(t, "records to flow", func() (bool, any) {
			n := len(rec.offsets(int32(p)))
			return n > seen+50, n
		})
	}
	for p := range 2 {
		flows(p)
		i := r.Index(r.leader(t, "a", int32(p)))
		began := time.Now()
		r.Kill(i)
		flows(p)
		t.Logf("records of partition %d flow again %v after its leader was killed", p, time.Since(began).Round(10*time.Millisecond))
		r.Restart(i)
	}
	flows(2)
	cancel()
	wg.Wait()
	for p := range want {
		wantOffsets(t, rec, int32(p), upTo(0, want[p].Load()))
		wantOffsets(t, near, int32(p), upTo(0, want[p].Load()))
	}
	wantLoss(t, rec)
	wantLoss(t, near)
}

// A replica that missed records becomes the leader: the log ends before what
// was delivered, and its offsets are written anew. Reading goes back to where
// the logs part (case C08, as a connected client sees it).
func kafkaUncleanElection(t *testing.T, r *brokers) {
	if _, err := r.adm.CreateTopic(within(t), 1, 2, map[string]*string{
		"unclean.leader.election.enable": new("true"), "min.insync.replicas": new("1"),
	}, "unclean"); err != nil {
		t.Fatal(err)
	}
	tail := r.tail(t)
	rec := tail.follow(t, "unclean")
	lead := r.leader(t, "unclean", 0)
	meta, err := r.adm.Metadata(within(t), "unclean")
	if err != nil {
		t.Fatal(err)
	}
	replicas := meta.Topics["unclean"].Partitions[0].Replicas
	follower := replicas[0]
	if follower == lead {
		follower = replicas[1]
	}
	produce(t, r.client(t), "unclean", 0, 10)
	wantOffsets(t, rec, 0, upTo(0, 10))

	r.Kill(r.Index(follower))
	produce(t, r.client(t), "unclean", 0, 10) // the leader alone has these
	wantOffsets(t, rec, 0, upTo(0, 20))
	r.Kill(r.Index(lead))
	r.Restart(r.Index(follower))
	var unclean kadm.TopicsSet
	unclean.Add("unclean", 0)
	eventually(t, "the replica to lead", func() (bool, any) {
		res, err := r.adm.ElectLeaders(within(t), kadm.ElectLiveReplica, unclean)
		if err != nil {
			return false, err.Error()
		}
		return r.leaderOf(t, "unclean", 0) == follower, res
	})
	produce(t, r.client(t), "unclean", 0, 3)
	eventually(t, "the truncation", func() (bool, any) { return len(rec.lost()) > 0, brief(rec.offsets(0)) })
	wantOffsets(t, rec, 0, upTo(0, 13))
	wantLoss(t, rec, loss{frame.Truncated, []frame.Range{{Topic: "unclean", Partition: 0, From: 10, To: 19}}, []frame.Partition{{ID: 0, Next: 10}}})
	r.Restart(r.Index(lead))
}

// leader waits until a partition has one.
func (r *brokers) leader(t testing.TB, topic string, partition int32) int32 {
	t.Helper()
	node := noLeader
	eventually(t, "a leader", func() (bool, any) {
		node = r.leaderOf(t, topic, partition)
		return node != noLeader, "none"
	})
	return node
}

// leaderOf asks the brokers once; noLeader also where none answers.
func (r *brokers) leaderOf(t testing.TB, topic string, partition int32) int32 {
	m, err := r.ask.metadata(within(t), []string{topic})
	if err != nil || m[topic].err != nil {
		return noLeader
	}
	return m[topic].leaders[partition]
}
