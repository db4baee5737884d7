package hub

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/ssetest"
)

// compacted is a history of one compacted topic. Its clock is its own: records
// are as old as it says.
type compacted struct {
	mu        sync.Mutex
	id        frame.TopicID
	clock     time.Duration
	retention time.Duration // of tombstones
	parts     []compactedPart
}

type compactedPart struct {
	end  int64
	recs []compactedRecord
}

type compactedRecord struct {
	offset     int64
	key, value string // no value: a tombstone
	at         time.Duration
}

func newCompacted(partitions int) *compacted {
	return &compacted{id: topicID(1), retention: time.Hour, parts: make([]compactedPart, partitions)}
}

func (c *compacted) record(p int32, r compactedRecord) frame.Record {
	rec := frame.Record{Topic: "t", Partition: p, Offset: r.offset, Key: []byte(r.key), Time: time.Now().Add(r.at - c.clock).UnixMilli()}
	if r.value != "" {
		rec.Value = []byte(r.key + "=" + r.value)
	}
	return rec
}

// write appends a record and returns it as a tail would give it.
func (c *compacted) write(p int32, key, value string) frame.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	part := &c.parts[p]
	r := compactedRecord{part.end, key, value, c.clock}
	part.end++
	part.recs = append(part.recs, r)
	return c.record(p, r)
}

// clean removes what is superseded, and tombstones that are old.
func (c *compacted) clean() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.parts {
		part := &c.parts[p]
		latest := map[string]int64{}
		for _, r := range part.recs {
			latest[r.key] = r.offset
		}
		part.recs = slices.DeleteFunc(part.recs, func(r compactedRecord) bool {
			return latest[r.key] != r.offset || r.value == "" && c.clock-r.at > c.retention
		})
	}
}

// state is what a client should have.
func (c *compacted) state() map[string]string {
	all := map[string]string{}
	for p := range c.parts {
		for _, r := range c.parts[p].recs {
			if all[r.key] = r.value; r.value == "" {
				delete(all, r.key)
			}
		}
	}
	return all
}

func (c *compacted) Read(_ context.Context, _ string, id frame.TopicID, partition int32, from int64, each func(*frame.Record)) (Span, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != c.id {
		return Span{}, ErrRecreated
	}
	part := &c.parts[partition]
	span := Span{Start: from, Next: part.end, Bytes: 1}
	n := 0
	for _, r := range part.recs {
		if r.offset < from {
			continue
		}
		if n++; n > 20 {
			span.Next = r.offset
			break
		}
		rec := c.record(partition, r)
		each(&rec)
	}
	return span, nil
}

func (c *compacted) Bounds(_ context.Context, _ string, id frame.TopicID) ([]Bound, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != c.id {
		return nil, ErrRecreated
	}
	var all []Bound
	for p := range c.parts {
		all = append(all, Bound{int32(p), 0, c.parts[p].end})
	}
	return all, nil
}

func (c *compacted) Since(ctx context.Context, topic string, id frame.TopicID, _ int64) ([]Bound, error) {
	return c.Bounds(ctx, topic, id)
}

func (c *compacted) Cleanup(context.Context, string) (Cleanup, error) {
	return Cleanup{Compacted: true, DeleteRetention: c.retention}, nil
}

// keyNode is a node that serves snapshots of a compacted topic.
type keyNode struct {
	*rig
	topic *compacted
}

// newKeyNode starts a node at the end of the topic, as it is now.
func newKeyNode(t testing.TB, topic *compacted, change func(*Options)) *keyNode {
	t.Helper()
	opts := testOptions
	opts.History, opts.Replays, opts.SnapshotBytes = topic, 2, 1<<30
	if change != nil {
		change(&opts)
	}
	n := &keyNode{rig: &rig{t: t}, topic: topic}
	n.box = NewMailbox(func() { n.wakes++ })
	n.hub = New(opts, []*Mailbox{n.box})
	n.feed, n.sinks = openFeed(t, n.hub, Spec{Topics: []string{"t"}, Keys: true})
	n.r = n.feed.Reader(n.box)
	ctx, cancel := context.WithCancel(t.Context())
	n.hub.replays.start(ctx)
	t.Cleanup(func() { cancel(); n.hub.replays.stop() })
	var ends []int64
	for p := range topic.parts {
		ends = append(ends, topic.parts[p].end)
	}
	n.sinks[0].Open(topic.id, parts(ends...))
	return n
}

// load loads what is not loaded.
func (n *keyNode) load() {
	n.feed.mu.Lock()
	wants := n.feed.wantsLoad(time.Now().Add(time.Hour))
	n.feed.mu.Unlock()
	if wants {
		n.feed.load(n.t.Context())
	}
}

// forgetLog has the log hold nothing that was appended so far.
func (n *keyNode) forgetLog() {
	f := n.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.parts {
		f.index.parts[k].base = f.parts[k].next
	}
	f.index.reset()
}

// keyClient is a page that shows the state of a topic.
type keyClient struct {
	t       testing.TB
	id      string
	state   map[string]string
	resyncs []string
	fresh   bool // it has had no id before this connection
	deletes int  // of keys that it did not have, on a fresh one
	order   []string
}

// read connects to a node and reads until it is live, or for so many steps.
func (c *keyClient) read(n *keyNode, steps int) (live bool) {
	start := Start{Policy: Policy{From: FromSnapshot}}
	c.fresh = c.id == ""
	c.order = nil
	if !c.fresh {
		start.Position = id(c.t, c.id)
	}
	n.box.Enter()
	defer n.box.Leave()
	at, b := n.r.Attach(start, 0, nil)
	c.take(b)
	place := at.Place
	if at.Own != nil {
		defer at.Own.Close()
		state := OwnMore
		for state != OwnShared {
			if steps--; steps < 0 {
				return false
			}
			if state == OwnIdle && !at.Own.Current() {
				n.load()
			}
			b, state = at.Own.Step(nil, 300, time.Unix(1000, 0))
			c.take(b)
			if state == OwnIdle && at.Own.Current() {
				return true
			}
		}
		place = at.Own.Place()
	}
	c.take(n.rest(place))
	return true
}

func (c *keyClient) take(b []byte) {
	var chunks ssetest.Chunks
	data, err := chunks.Feed(b)
	if err != nil {
		c.t.Fatal(err)
	}
	var p ssetest.Parser
	for _, e := range p.Feed(data) {
		switch e.Type {
		case "resync":
			c.resyncs = append(c.resyncs, e.Data)
			c.state = map[string]string{}
			c.order = nil
		case "delete":
			if _, had := c.state[e.Data]; !had && c.fresh {
				c.deletes++
			}
			delete(c.state, e.Data)
		default:
			key, value, _ := strings.Cut(e.Data, "=")
			c.state[key] = value
			c.order = append(c.order, key)
		}
	}
	if p.LastEventID() != "" {
		c.id = p.LastEventID()
	}
}

// TestSnapshots has pages read the state of a compacted topic from nodes that
// come and go, cut off anywhere, away for longer than tombstones are kept.
// Each ends with the right state, key by key.
func TestSnapshots(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { snapshotsAtRandom(t, rand.New(rand.NewPCG(seed, 4))) })
	}
}

func snapshotsAtRandom(t *testing.T, r *rand.Rand) {
	topic := newCompacted(1 + r.IntN(3))
	write := func(nodes []*keyNode) {
		p := r.Int32N(int32(len(topic.parts)))
		value := strconv.Itoa(r.IntN(1000))
		if r.IntN(4) == 0 {
			value = ""
		}
		rec := topic.write(p, fmt.Sprintf("%d.%d", p, r.IntN(60)), value)
		for _, n := range nodes {
			n.sinks[0].Append(p, []frame.Record{rec})
			n.sinks[0].Flush(nil)
		}
	}
	for range r.IntN(300) {
		write(nil)
	}
	nodes := []*keyNode{newKeyNode(t, topic, nil), newKeyNode(t, topic, nil)}
	var clients []*keyClient
	for range 8 {
		clients = append(clients, &keyClient{t: t, state: map[string]string{}})
	}
	for range 400 {
		node := nodes[r.IntN(2)]
		switch n := r.IntN(100); {
		case n < 40:
			for range 1 + r.IntN(10) {
				write(nodes)
			}
		case n < 80:
			clients[r.IntN(len(clients))].read(node, r.IntN(12))
		case n < 84:
			node.load()
		case n < 88:
			topic.clean()
		case n < 91:
			node.forgetLog()
		case n < 94:
			topic.clock += time.Duration(r.Int64N(int64(topic.retention)))
		case n < 96: // tombstones that came to the node are as old as it has been there
			node.feed.mu.Lock()
			node.feed.keys.sweptAt = time.Time{}
			node.feed.sweepKeys(time.Now().Add(time.Duration(r.Int64N(int64(3 * time.Hour)))))
			node.feed.mu.Unlock()
		case n < 98:
			nodes[r.IntN(2)] = newKeyNode(t, topic, nil)
		default:
			clients = append(clients, &keyClient{t: t, state: map[string]string{}})
		}
	}
	want := topic.state()
	for i, c := range append(clients, &keyClient{t: t, state: map[string]string{}}) {
		if !c.read(nodes[r.IntN(2)], 1<<20) {
			t.Fatalf("client %d does not come to its end", i)
		}
		if !maps.Equal(c.state, want) {
			t.Errorf("client %d has %d keys, want %d, or other values:\n got %v\nwant %v", i, len(c.state), len(want), c.state, want)
		}
		if c.deletes > 0 && c.fresh {
			t.Errorf("client %d, new, was told of %d deletions of keys that it never had", i, c.deletes)
		}
	}
}

// TestSnapshotOrder: each key once, by partition and offset, under ids that say
// so, and what comes meanwhile behind.
func TestSnapshotOrder(t *testing.T) {
	topic := newCompacted(2)
	topic.write(0, "x", "1")
	topic.write(0, "y", "1")
	topic.write(1, "z", "1")
	topic.write(0, "x", "2")
	topic.write(0, "w", "1")
	topic.write(0, "w", "")
	n := newKeyNode(t, topic, nil)
	at, b := n.r.Attach(Start{Policy: Policy{From: FromSnapshot}}, 1000, nil)
	T := tagOf("t", 1)
	if want := "retry: 1000\nid: v1:" + T + "\n\n"; blocks(b) != want || at.Own == nil {
		t.Fatalf("begins with %q, want %q", blocks(b), want)
	}
	defer at.Own.Close()
	if b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0)); len(b) > 0 || state != OwnIdle || at.Own.Current() {
		t.Fatalf("not loaded, and sends %q, %v", b, state)
	}
	n.load()
	rec := topic.write(0, "y", "2")
	n.sinks[0].Append(0, []frame.Record{rec})
	n.sinks[0].Flush(nil)
	n.box.Enter()
	defer n.box.Leave()
	var got []byte
	state := OwnMore
	for state == OwnMore {
		got, state = at.Own.Step(got, 1, time.Unix(1001, 0))
	}
	want := "id: v1:0-2" + T + "\ndata: x=2\n\n" +
		"id: v1:0-5" + T + "\ndata: y=2\n\n" +
		"id: v1:0-5.1-0" + T + "\ndata: z=1\n\n"
	if blocks(got) != want || state != OwnShared {
		t.Errorf("got\n%swant\n%s, state %v", blocks(got), want, state)
	}
	rest := blocks(n.rest(at.Own.Place()))
	if rest != "" {
		t.Errorf("behind it comes %q", rest)
	}
}

// TestSnapshotIsRefused: too many bytes, from the brokers or as they come; when
// the topic is another one, it is tried again.
func TestSnapshotIsRefused(t *testing.T) {
	fill := func(topic *compacted, from, to int, each func(frame.Record)) {
		for i := from; i < to; i++ {
			each(topic.write(0, fmt.Sprint("key", i), strings.Repeat("v", 1000)))
		}
	}
	small := func(o *Options) { o.SnapshotBytes = 300 << 10 }
	snapshot := Start{Policy: Policy{From: FromSnapshot}}
	refused := func(n *keyNode) {
		t.Helper()
		at, _ := n.r.Attach(snapshot, 0, nil)
		defer at.Own.Close()
		for range 2 {
			if b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0)); state != OwnRefused || len(b) > 0 {
				t.Errorf("sends %d bytes, state %v", len(b), state)
			}
		}
		s, ok := n.feed.Keys()
		if !ok || !strings.Contains(s.Refusal, "--snapshot-bytes") || s.Bytes != 0 || s.Loading || n.feed.Snapshot().Stats.Shut == 0 {
			t.Errorf("stats %+v", s)
		}
	}
	topic := newCompacted(1)
	fill(topic, 0, 350, func(frame.Record) {})
	n := newKeyNode(t, topic, small)
	n.load()
	refused(n)

	topic = newCompacted(1)
	fill(topic, 0, 100, func(frame.Record) {})
	n = newKeyNode(t, topic, small)
	n.load()
	c := &keyClient{t: t, state: map[string]string{}}
	if c.read(n, 100); len(c.state) != 100 {
		t.Fatalf("reads %d keys", len(c.state))
	}
	fill(topic, 0, 1000, func(r frame.Record) { // the same 100 keys
		r.Key = r.Key[:min(len(r.Key), 5)]
		n.sinks[0].Append(0, []frame.Record{r})
	})
	if s, _ := n.feed.Keys(); s.Refusal != "" || s.Keys == 0 {
		t.Fatalf("records that supersede others are too many: %+v", s)
	}
	fill(topic, 1000, 1200, func(r frame.Record) { n.sinks[0].Append(0, []frame.Record{r}) })
	refused(n)

	topic.id, topic.parts = topicID(2), make([]compactedPart, 1)
	n.sinks[0].Recreated(topic.id, parts(0))
	fill(topic, 0, 3, func(r frame.Record) { n.sinks[0].Append(0, []frame.Record{r}) })
	n.sinks[0].Flush(nil)
	c = &keyClient{t: t, state: map[string]string{}}
	if c.read(n, 100); len(c.state) != 3 {
		t.Errorf("of the new topic it reads %d keys", len(c.state))
	}
}

// TestSnapshotWithFilter: each stream has the latest records that its filter
// matches, from a table that was loaded and labeled before.
func TestSnapshotWithFilter(t *testing.T) {
	topic := newCompacted(2)
	for i := range 100 {
		topic.write(int32(i%2), fmt.Sprint("k", i%10), strconv.Itoa(i))
	}
	n := newKeyNode(t, topic, nil)
	n.load()
	f, err := n.hub.Open(Spec{Topics: []string{"t"}, Fields: []Field{{Kind: KeyField}}}, nil)
	if err != nil || f != n.feed {
		t.Fatal(err)
	}
	n.load() // labels are not there yet
	filter, err := f.NewFilter([][]Term{{{Field{Kind: KeyField}, []string{"k3", "k8"}}}})
	if err != nil {
		t.Fatal(err)
	}
	at, _ := n.r.Attach(Start{Policy: Policy{From: FromSnapshot}, Filter: filter}, 0, nil)
	defer at.Own.Close()
	n.box.Enter()
	defer n.box.Leave()
	b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
	var got []string
	for _, e := range events(t, b) {
		got = append(got, e.Data)
	}
	if state != OwnShared || !slices.Equal(got, []string{"k8=98", "k3=93"}) {
		t.Errorf("got %q, state %v", got, state)
	}
}

// TestSnapshotLosses: a live loss has a stream in mid-snapshot begin again, and
// what was lost is read again.
func TestSnapshotLosses(t *testing.T) {
	for _, reason := range []frame.Reason{frame.Expired, frame.Truncated} {
		topic := newCompacted(1)
		for i := range 50 {
			topic.write(0, fmt.Sprint("k", i), "1")
		}
		n := newKeyNode(t, topic, nil)
		n.load()
		at, b := n.r.Attach(Start{Policy: Policy{From: FromSnapshot}}, 0, nil)
		c := &keyClient{t: t, state: map[string]string{}}
		c.take(b)
		b, _ = at.Own.Step(nil, 300, time.Unix(1000, 0))
		c.take(b)
		part := &topic.parts[0]
		if reason == frame.Truncated {
			part.recs, part.end = part.recs[:30], 30
			n.sinks[0].Lost(reason, []frame.Range{{Topic: "t", From: 30, To: 49}}, parts(30))
		} else {
			part.recs, part.end = part.recs[40:], 60
			n.sinks[0].Lost(reason, []frame.Range{{Topic: "t", From: 50, To: 59}}, parts(60))
		}
		state := OwnMore
		for state != OwnShared {
			if state == OwnIdle {
				n.load()
			}
			n.box.Enter()
			b, state = at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
			n.box.Leave()
			c.take(b)
		}
		at.Own.Close()
		if want := topic.state(); !maps.Equal(c.state, want) || len(c.resyncs) != map[frame.Reason]int{frame.Expired: 1}[reason] {
			t.Errorf("%s: has %d keys, want %d; told %q", reason, len(c.state), len(want), c.resyncs)
		}
	}
}

// TestSnapshotWhileTombstonesExpire: a stream that takes longer than it is
// between two sweeps is not begun again for tombstones of keys that it never
// had. On a topic with deletions there are some at every sweep, and a slow
// client came to no end; no test swept between two steps of one connection.
func TestSnapshotWhileTombstonesExpire(t *testing.T) {
	topic := newCompacted(2)
	for i := range 50 {
		topic.clock += time.Minute
		topic.write(1, fmt.Sprint("k", i), "1")
		topic.write(1, fmt.Sprint("gone", i), "")
	}
	n := newKeyNode(t, topic, nil)
	n.load()
	at, b := n.r.Attach(Start{Policy: Policy{From: FromSnapshot}}, 0, nil)
	defer at.Own.Close()
	c := &keyClient{t: t, state: map[string]string{}, fresh: true}
	c.take(b)
	n.box.Enter()
	defer n.box.Leave()
	sweeps := 0
	for state := OwnMore; state != OwnShared; sweeps++ {
		if sweeps == 100 {
			t.Fatalf("it comes to no end, and was told %q", c.resyncs)
		}
		b, state = at.Own.Step(nil, 300, time.Unix(1000, 0))
		c.take(b)
		n.feed.mu.Lock()
		n.feed.keys.sweptAt = time.Time{}
		n.feed.sweepKeys(time.Now().Add(30*time.Minute + time.Duration(sweeps)*time.Minute))
		n.feed.mu.Unlock()
	}
	if n.feed.keys.drops < 3 {
		t.Errorf("only %d sweeps of %d found something to forget", n.feed.keys.drops, sweeps)
	}
	if want := topic.state(); !maps.Equal(c.state, want) || len(c.resyncs) > 0 || c.deletes > 0 {
		t.Errorf("has %d keys of %d, was told %q and of %d keys that it never had", len(c.state), len(want), c.resyncs, c.deletes)
	}
}

// TestSnapshotLostElsewhere: a partition that is being loaded while another one
// is cut is loaded from the beginning, with nothing of the first attempt left.
// What that had forgotten (a deletion that the format skips) was taken for the
// key's present state, though the key had come back; one partition at a time
// showed nothing.
func TestSnapshotLostElsewhere(t *testing.T) {
	topic := newCompacted(2)
	topic.write(0, "a", "1")
	topic.write(1, "k", "1")
	opts := testOptions
	opts.History, opts.Replays, opts.SnapshotBytes = topic, 2, 1<<30
	n := &keyNode{rig: &rig{t: t}, topic: topic}
	n.box = NewMailbox(func() { n.wakes++ })
	n.hub = New(opts, []*Mailbox{n.box})
	n.feed, n.sinks = openFeed(t, n.hub, Spec{Topics: []string{"t"}, Keys: true, Format: frame.Format{Delete: frame.DeleteSkip}})
	n.r = n.feed.Reader(n.box)
	n.hub.replays.start(t.Context())
	t.Cleanup(n.hub.replays.stop)
	sink := n.sinks[0]
	sink.Open(topic.id, parts(1, 1))
	write := func(value string) {
		sink.Append(1, []frame.Record{topic.write(1, "k", value)})
		sink.Flush(nil)
	}

	n.feed.mu.Lock()
	n.feed.keys.parts[0].table = newKeyTable() // partition 0 is loaded
	n.feed.mu.Unlock()
	l, ok := n.feed.newLoad()
	if !ok || l.part != 1 {
		t.Fatalf("loads %+v", l)
	}
	if err := l.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, last, err := l.target(); err != nil || !last {
		t.Fatal(last, err)
	}
	write("") // passed over by the format, so the loader is to forget the key
	sink.Lost(frame.Truncated, []frame.Range{{Topic: "t", From: 0, To: 0}}, []frame.Partition{{ID: 0, Next: 0}})
	topic.mu.Lock()
	topic.parts[0] = compactedPart{}
	topic.mu.Unlock()
	write("2")

	n.feed.load(t.Context())
	c := &keyClient{t: t, state: map[string]string{}}
	if !c.read(n, 100) || c.state["k"] != "2" || len(c.state) != 1 {
		t.Errorf("has %v", c.state)
	}
	if held, table := n.feed.keys.held, n.feed.keys.parts[1].table.bytes(); held != table {
		t.Errorf("%d bytes are held, and %d counted", table, held)
	}
}

// TestSnapshotForgetsWhileLoading: a key whose deletion the format skips is not
// in a snapshot, also if it is deleted while the last of the table is read.
func TestSnapshotForgetsWhileLoading(t *testing.T) {
	topic := newCompacted(1)
	topic.write(0, "k", "1")
	topic.write(0, "l", "1")
	n := newKeyNode(t, topic, nil)
	n.feed.enc, _ = frame.NewEncoder(frame.Format{Delete: frame.DeleteSkip})
	l, ok := n.feed.newLoad()
	if !ok {
		t.Fatal("nothing is to be loaded")
	}
	if err := l.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, last, err := l.target()
	if err != nil || !last {
		t.Fatal(last, err)
	}
	n.sinks[0].Append(0, []frame.Record{topic.write(0, "k", "")})
	n.sinks[0].Flush(nil)
	if _, err := l.read(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if err := l.finish(); err != nil {
		t.Fatal(err)
	}
	c := &keyClient{t: t, state: map[string]string{}}
	if !c.read(n, 100) || c.state["l"] != "1" || len(c.state) != 1 {
		t.Errorf("has %v", c.state)
	}
}

// TestSnapshotOfTheLastDeletion: who lacks a deletion that is forgotten, and
// nothing before it, begins again; who had it goes on.
func TestSnapshotOfTheLastDeletion(t *testing.T) {
	for _, tc := range []struct {
		last    int64 // that the client had
		resyncs int
	}{{2, 1}, {3, 0}} {
		topic := newCompacted(1)
		topic.clock = time.Minute
		for _, v := range []string{"1", "2", "3", ""} {
			topic.write(0, "k", v)
		}
		topic.write(0, "l", "1")
		n := newKeyNode(t, topic, nil)
		n.load()
		n.feed.mu.Lock()
		n.feed.sweepKeys(time.Now().Add(2 * topic.retention))
		n.feed.keys.parts[0].trusted = 0
		n.feed.mu.Unlock()
		c := &keyClient{t: t, state: map[string]string{"k": "3"}, id: fmt.Sprintf("v1:0-%d%s", tc.last, tagOf("t", 1))}
		if !c.read(n, 100) || len(c.resyncs) != tc.resyncs || c.state["l"] != "1" {
			t.Errorf("behind %d: told %q, has %v", tc.last, c.resyncs, c.state)
		}
	}
}
