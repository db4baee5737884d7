package apptest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// table is a compacted topic as its producer knows it. Values are key=value.
type table struct {
	b     *broker
	topic string
	state map[string]string
	ticks int // writes of compact
}

// segmentTime is after what time a broker begins another segment of a
// compacted topic, with the next record. It compacts the segments before.
const segmentTime = 200 * time.Millisecond

// compacted makes a topic of two partitions, with more settings.
func (b *broker) compacted(topic string, settings ...string) *table {
	configs := map[string]*string{
		"cleanup.policy": new("compact"), "min.cleanable.dirty.ratio": new("0.01"),
		"segment.ms": new(strconv.FormatInt(segmentTime.Milliseconds(), 10)),
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		configs[name] = &value
	}
	b.createWith(topic, 2, configs)
	return &table{b: b, topic: topic, state: map[string]string{}}
}

// compact has the broker compact everything that was written so far, and waits
// until it has; then every key has one record there, and with forgotten no
// tombstone.
func (tb *table) compact(forgotten bool) {
	b := tb.b
	b.t.Helper()
	ends, err := b.admin().ListEndOffsets(within(b.t), tb.topic)
	if err != nil {
		b.t.Fatal(err)
	}
	var ticked time.Time
	testkit.Eventually(b.t, patience, "compaction of "+tb.topic, func() bool {
		if time.Since(ticked) > 2*segmentTime { // the newest segment is left alone
			tb.ticks++
			tb.write([]int{-1, -2}, strconv.Itoa(tb.ticks))
			ticked = time.Now()
		}
		if b.clean != nil {
			b.clean()
		}
		seen := map[string]bool{}
		for _, r := range tb.read() {
			if end, _ := ends.Lookup(tb.topic, r.Partition); r.Offset >= end.Offset {
				continue
			}
			if seen[string(r.Key)] || forgotten && r.Value == nil {
				return false
			}
			seen[string(r.Key)] = true
		}
		return true
	})
}

// read returns what the broker has of the topic now.
func (tb *table) read() (all []*kgo.Record) {
	b := tb.b
	b.t.Helper()
	ends, err := b.admin().ListEndOffsets(within(b.t), tb.topic)
	if err != nil {
		b.t.Fatal(err)
	}
	cl := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{tb.topic: {0: kgo.NewOffset().AtStart(), 1: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left++
		}
	})
	for left > 0 {
		fetches := cl.PollFetches(within(b.t))
		if err := fetches.Err(); err != nil {
			b.t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			all = append(all, r)
			if end, _ := ends.Lookup(tb.topic, r.Partition); r.Offset == end.Offset-1 { // the newest is never compacted away
				left--
			}
		}
	}
	return all
}

// put writes keys from from to to with a value; none deletes them.
func (tb *table) put(from, to int, value string) {
	var keys []int
	for i := from; i < to; i++ {
		keys = append(keys, i)
	}
	tb.write(keys, value)
}

func (tb *table) write(keys []int, value string) {
	var recs []*kgo.Record
	for _, i := range keys {
		key := "k" + strconv.Itoa(i)
		r := &kgo.Record{Topic: tb.topic, Partition: int32(i & 1), Key: []byte(key)}
		if value == "" {
			delete(tb.state, key)
		} else {
			r.Value = []byte(key + "=" + value)
			tb.state[key] = value
		}
		recs = append(recs, r)
	}
	tb.b.send(recs...)
}

// page shows a compacted topic. It keeps what it has over connections.
type page struct {
	id      string
	state   map[string]string
	live    bool // on its connection
	events  int
	deletes int
	resyncs int
}

// read connects and reads until live, or so many events.
func (p *page) read(t *testing.T, s *testkit.Server, path string, most int) *testkit.Conn {
	t.Helper()
	var fields []string
	if p.id != "" {
		fields = append(fields, "Last-Event-ID: "+p.id)
	}
	c := testkit.Open(t, s.Addr, path, fields...)
	p.live = false
	for range most {
		if p.take(c.Next(t, patience)); p.live {
			return c
		}
	}
	return c
}

// take takes one event.
func (p *page) take(e ssetest.Event) {
	if e.LastEventID != "" {
		p.id = e.LastEventID
	}
	p.events++
	switch e.Type {
	case "live":
		p.live = true
	case "resync":
		p.resyncs++
		p.state = map[string]string{}
	case "delete":
		p.deletes++
		delete(p.state, e.Data)
	default:
		key, value, _ := strings.Cut(e.Data, "=")
		p.state[key] = value
	}
}

// want reads on until the page shows the topic.
func (p *page) want(t *testing.T, c *testkit.Conn, tb *table) {
	t.Helper()
	if !p.live {
		t.Errorf("the page is not live")
	}
	for !maps.Equal(p.state, tb.state) {
		p.take(c.Next(t, patience))
	}
}

func newPage() *page { return &page{state: map[string]string{}} }

func TestSnapshot(t *testing.T) {
	t.Parallel()
	snapshot(t, started(t, 1), "table")
}

// snapshot has pages read the state of a topic, whole, cut off in the middle
// and on other nodes, and after a restart, which leaves nothing in memory.
func snapshot(t *testing.T, b *broker, topic string) {
	tb := b.compacted(topic)
	tb.put(0, 300, "old")
	tb.put(0, 200, "new")
	tb.put(50, 60, "")
	tb.compact(false)
	config := writeFile(t, "tailcast.yaml", fmt.Sprintf("routes:\n  - {path: /t, topic: %s, start: snapshot}\n  - {path: /t2, topic: %[1]s, start: snapshot}\n  - {path: /live, topic: %[1]s}\n", topic))
	nodes := []*testkit.Server{ready(t, b, "--config", config), ready(t, b, "--config", config)}

	whole := newPage()
	first := whole.read(t, nodes[0], "/t", 10_000)
	whole.want(t, first, tb)
	if whole.events != 290+2+1 || whole.deletes+whole.resyncs != 0 { // compact has written two
		t.Errorf("%d events for 292 keys, %d deletions, %d resyncs", whole.events, whole.deletes, whole.resyncs)
	}
	if n := nodes[0].Metric(t, "tailcast_snapshot_keys"); n != 300+2 { // two routes, one table, with tombstones
		t.Errorf("%v keys are held", n)
	}

	// Cut off in the middle, while keys change: on, on another node, and after a restart.
	cut := newPage()
	var cuts []*page
	for i := range 6 {
		p := newPage()
		p.read(t, nodes[i%2], "/t", 20+40*i).Close()
		cuts = append(cuts, p)
	}
	tb.put(90, 130, "newer")
	tb.put(140, 150, "")
	tb.put(300, 310, "added")
	for i, p := range cuts {
		p.want(t, p.read(t, nodes[(i+i/2)%2], "/t2", 10_000), tb)
		if p.resyncs > 0 {
			t.Errorf("page %d: %d resyncs", i, p.resyncs)
		}
	}
	cut.read(t, nodes[0], "/t", 100).Close()
	away := newPage()
	away.state, away.id = maps.Clone(whole.state), whole.id // it was live when it left
	tb.put(0, 40, "last")
	tb.put(200, 220, "")
	tb.compact(false)
	nodes[0].Kill(t)
	nodes[0].Again(t)
	nodes[0].Ready(t, patience)
	for name, p := range map[string]*page{"cut off": cut, "away": away} {
		p.want(t, p.read(t, nodes[0], "/t", 10_000), tb)
		if p.resyncs > 0 || p.deletes == 0 {
			t.Errorf("%s: %d resyncs, %d deletions", name, p.resyncs, p.deletes)
		}
	}
	if away.events > 150 {
		t.Errorf("one that was away for a while gets %d events", away.events)
	}

	// The first is live still, on the node that was killed: it goes on elsewhere.
	if err := first.End(t, patience); err == nil {
		t.Error("the first page's connection lives on")
	}
	whole.want(t, whole.read(t, nodes[1], "/t", 10_000), tb)
}

// TestSnapshotOfAnOldPosition: deletions that a page missed may be forgotten,
// so it is told so and gets everything.
func TestSnapshotOfAnOldPosition(t *testing.T) {
	t.Parallel()
	oldPosition(t, started(t, 1), "old")
}

func oldPosition(t *testing.T, b *broker, topic string) {
	tb := b.compacted(topic)
	var recs []*kgo.Record
	for i := range 100 {
		key := fmt.Sprint("k", i)
		tb.state[key] = "old"
		recs = append(recs, &kgo.Record{Topic: topic, Partition: int32(i % 2), Key: []byte(key), Value: []byte(key + "=old"), Timestamp: time.Now().Add(-48 * time.Hour)})
	}
	b.send(recs...)
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", fmt.Sprintf("routes:\n  - {path: /t, topic: %s, start: snapshot}\n", topic)))
	p := newPage()
	p.read(t, s, "/t", 30).Close()
	p.want(t, p.read(t, s, "/t", 1000), tb)
	if p.resyncs != 1 || p.events != 30+1+100+1 {
		t.Errorf("%d resyncs, %d events", p.resyncs, p.events)
	}
	if n := s.Metric(t, `tailcast_resyncs_total{reason="expired"}`); n != 1 {
		t.Errorf("%v resyncs are counted", n)
	}
	p.want(t, p.read(t, s, "/t", 1000), tb)
	if p.resyncs != 1 || p.events != 30+1+100+1+1 {
		t.Errorf("at the end: %d resyncs, %d events", p.resyncs, p.events)
	}
}

// TestSnapshotOfForgottenDeletions: what a page has was deleted while it was
// away, and nobody has the deletions any more. It is told so.
func TestSnapshotOfForgottenDeletions(t *testing.T) {
	t.Parallel()
	forgottenDeletions(t, started(t, 1), "forgotten")
}

func forgottenDeletions(t *testing.T, b *broker, topic string) {
	tb := b.compacted(topic, "delete.retention.ms=0")
	tb.put(0, 100, "old")
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", fmt.Sprintf("routes:\n  - {path: /t, topic: %s, start: snapshot}\n", topic)))
	whole, cut := newPage(), newPage()
	whole.want(t, whole.read(t, s, "/t", 1000), tb)
	cut.read(t, s, "/t", 70).Close()
	tb.put(0, 30, "")
	tb.put(30, 40, "new")
	tb.compact(true)
	s.Kill(t)
	s.Again(t)
	s.Ready(t, patience)
	for name, p := range map[string]*page{"whole": whole, "cut off": cut} {
		p.want(t, p.read(t, s, "/t", 1000), tb)
		if p.resyncs != 1 || p.deletes != 0 {
			t.Errorf("%s: %d resyncs, %d deletions", name, p.resyncs, p.deletes)
		}
	}
}

// TestSnapshotTooLarge: the stream is ended so that its client comes back later,
// and the operator is told everywhere.
func TestSnapshotTooLarge(t *testing.T) {
	t.Parallel()
	b := fake(t)
	b.start()
	tb := b.compacted("large")
	tb.put(0, 1500, strings.Repeat("x", 1000))
	s := serve(t, b, "--snapshot-bytes", "1MiB", "--cors-origins", "https://app.test", "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: /t, topic: large, start: snapshot}
  - {path: /live, topic: large}
`))
	testkit.Eventually(t, patience, "the refusal", func() bool {
		return s.Metric(t, "tailcast_snapshots_refused") == 1
	})
	s.Ready(t, patience) // the other route is served
	if status := s.Get(t, "/status"); !strings.Contains(status, "--snapshot-bytes") {
		t.Errorf("status:\n%s", status)
	}
	for _, id := range []string{"", "Last-Event-ID: v1:0-5"} {
		c := testkit.Open(t, s.Addr, "/t", slices.DeleteFunc([]string{"Origin: https://app.test", id}, func(f string) bool { return f == "" })...)
		if err := c.End(t, patience); err != io.EOF {
			t.Errorf("the stream ends with %v", err)
		}
		c.Close()
		h := c.Stream.Head
		retries := regexp.MustCompile(`retry: (\d+)\n`).FindAllSubmatch(c.Raw, -1)
		if h.StatusCode != http.StatusOK || h.Header.Get("Access-Control-Allow-Origin") != "https://app.test" || len(retries) == 0 {
			t.Fatalf("got %q", c.Raw)
		}
		if ms, _ := strconv.Atoi(string(retries[len(retries)-1][1])); ms < 5000 || ms > 15000 {
			t.Errorf("it is to come back in %d ms", ms)
		}
	}
	open(t, s, "/live")
	testkit.Eventually(t, patience, "the count of closed connections", func() bool { return s.Metric(t, `tailcast_connections_closed_total{reason="snapshot"}`) == 2 })
	if a, b := s.Metric(t, "tailcast_snapshots_refused"), s.Metric(t, "tailcast_snapshot_streams_refused_total"); a != 1 || b != 2 {
		t.Errorf("%v snapshots and %v streams are counted as refused", a, b)
	}
	if log := s.Stderr.String(); !strings.Contains(log, "a snapshot is refused") || !strings.Contains(log, "--snapshot-bytes") {
		t.Errorf("log:\n%s", log)
	}
}

// TestCheckSnapshot: check refuses a topic that is not compacted, and serve
// says so.
func TestCheckSnapshot(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "plain")
	b.send(&kgo.Record{Topic: "plain", Key: []byte("k"), Value: []byte("v")})
	config := writeFile(t, "tailcast.yaml", "routes:\n  - {path: /t, topic: plain, start: snapshot}\n")
	p := testkit.Start(t, testkit.Build(t, "tailcast/cmd/tailcast"), "check", "--kafka-brokers", b.addr, "--config", config)
	code := p.Wait(t, patience)
	want := `--route /t: start: snapshot needs a compacted topic, and "plain" has a cleanup.policy without compact`
	if code == 0 || !strings.Contains(p.Stderr.String(), want) || !strings.Contains(p.Stdout.String(), "start snapshot") {
		t.Errorf("exit code %d, standard output %q, standard error %q", code, p.Stdout.String(), p.Stderr.String())
	}
	s := ready(t, b, "--config", config)
	if log := s.Stderr.String(); !strings.Contains(log, "not compacted") {
		t.Errorf("log:\n%s", log)
	}
}
