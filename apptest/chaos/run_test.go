package chaos

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// stallMax is the gateways' --stall.
const stallMax = time.Second

// options say what a run is made of.
type options struct {
	topics    []topic // one, or a, b and c
	brokers   []string
	clients   int
	rate      int // records a second
	duration  time.Duration
	offline   time.Duration    // most that a client stays away
	faults    []fault          // what befalls brokers
	tend      func(all bool)   // ends what faults began, if it is time; all of it at the end
	gateways  bool             // gateways are killed and stopped, too
	steady    bool             // clients do nothing to their connections
	plainly   bool             // no transactions
	follow    bool             // the ledger reads along: records will be deleted
	kinds     func(n int) kind // what client n asks for; default: everything
	keys      int              // of records; default: users
	compacted bool             // the topics are; one in five records is a tombstone
	between   func()           // happens once, while nobody writes, to a topic whose log does not survive it
	judge     func(told) error // objects to a resync event
}

// topic is one topic of a run.
type topic struct {
	name  string
	parts int // at first
	grow  int // partitions it may grow to
}

// fault is something that the run does now and then, in the test's goroutine.
// do reports whether it did.
type fault struct {
	kind   string
	weight int
	do     func(draw *rand.Rand) bool
}

// run is one run.
type run struct {
	o    options
	t    *testing.T
	seed uint64

	nodes   []*testkit.Server
	up      []time.Time // when a node that was ended is started again; zero: it runs
	names   [topicsMax]tag
	parts   [topicsMax]atomic.Int32
	clients []*client
	late    func(id string) // adds a client that comes with an id
	ledger  ledger
	acked   acked

	end    atomic.Pointer[vector] // what every client must reach
	ending chan struct{}          // closed when nothing more is to befall anybody

	mu     sync.Mutex
	counts map[string]int
	kafka  []*kgo.Client
	adm    *kadm.Client // of the test's goroutine
}

// none objects to every resync.
func none(r told) error { return fmt.Errorf("nothing was lost, but %v", r) }

func newRun(t *testing.T, o options) *run {
	t.Helper()
	o.duration, o.clients, o.rate = or(*durationFlag, o.duration), or(*clientsFlag, o.clients), or(*rateFlag, o.rate)
	if o.kinds == nil {
		o.kinds = plainly
	}
	o.keys = or(o.keys, users)
	if o.judge == nil {
		o.judge = none
	}
	if o.tend == nil {
		o.tend = func(bool) {}
	}
	r := &run{o: o, t: t, seed: seed(t), ending: make(chan struct{}), counts: map[string]int{}}
	for i, tp := range o.topics {
		r.names[i] = nameTag(tp.name)
		r.parts[i].Store(int32(tp.parts))
	}
	r.ledger.run, r.acked.run = r, r
	t.Cleanup(func() {
		for _, cl := range r.kafka {
			cl.Close()
		}
	})
	return r
}

// rand is a source of its own for each thing that draws, so that what one
// draws does not hang on when others do.
func (r *run) rand(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(r.seed, h.Sum64()))
}

// topic returns the number of a topic, or -1.
func (r *run) topic(name []byte) int {
	return slices.IndexFunc(r.o.topics, func(t topic) bool { return t.name == string(name) })
}

func (r *run) laneOf(rec *kgo.Record) int { return laneOf(r.topic([]byte(rec.Topic)), rec.Partition) }

// lane is a lane's name.
func (r *run) lane(l int) string {
	return fmt.Sprintf("%s/%d", r.o.topics[topicOf(l)].name, partitionOf(l))
}

// lanes are the lanes there are.
func (r *run) lanes() (all []int) {
	for t := range r.o.topics {
		for p := range r.parts[t].Load() {
			all = append(all, laneOf(t, p))
		}
	}
	return all
}

func (r *run) count(what string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what] += n
}

// client is a Kafka client that writes records where they say. It is closed
// when the test ends, at the latest.
func (r *run) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(r.o.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(2 * time.Second), kgo.DisableClientMetrics(),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}, opts...)...)
	if err != nil {
		panic("BUG: chaos: " + err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kafka = append(r.kafka, cl)
	return cl
}

// serve starts gateway i. The second one reads into memory, when it starts,
// what the first one reads when it is asked for.
func (r *run) serve(i int) *testkit.Server {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "tailcast.yaml")
	if err := os.WriteFile(path, []byte(r.o.routes()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	flags := []string{
		"--config", path, "--kafka-brokers", strings.Join(r.o.brokers, ","), "--loops", "2",
		"--log-bytes", "512KiB", "--max-lag", "128KiB", "--max-event", strconv.Itoa(maxEvent), "--stall", stallMax.String(),
		"--heartbeat", "1s", "--retry", "1s", "--drain", "1s", "--drain-delay", "0s",
		"--replay-max", "2000000000", "--replay-scan", "1TiB",
	}
	if i == 1 {
		flags = append(flags, "--warmup", "300")
	}
	return testkit.Tailcast(r.t, "serve", flags...)
}

// play does all of it: a run from its beginning to the comparison.
func (r *run) play() {
	t := r.t
	t.Helper()
	for _, l := range r.lanes() {
		r.anchor(l)
	}
	for i := range 2 {
		r.nodes = append(r.nodes, r.serve(i))
		r.up = append(r.up, time.Time{})
	}
	for _, n := range r.nodes {
		n.Ready(t, patience)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var clients, reader sync.WaitGroup
	t.Cleanup(func() { cancel(); clients.Wait(); reader.Wait() })
	r.ledger.open()
	if r.o.follow {
		reader.Go(func() { r.ledger.read(ctx, r.read) })
	}
	for i := range r.o.clients {
		c := r.newClient()
		clients.Go(func() {
			if i%3 == 0 && !r.o.steady { // the others are there from the beginning
				c.sleep(ctx, time.Duration(c.draw.Int64N(int64(r.o.duration/2))))
			}
			c.follow(ctx)
		})
	}
	r.late = func(id string) {
		c := r.newClient()
		at, err := r.parseID([]byte(id), c.kind.topics)
		if err != nil {
			t.Fatal(err)
		}
		c.id, c.begun, c.start, c.pos, c.tags = id, true, at.next, at.next, at.tags
		clients.Go(func() { c.follow(ctx) })
	}
	began := time.Now()
	if r.o.between == nil {
		r.write(ctx, r.o.duration, "")
	} else {
		r.write(ctx, r.o.duration/2, "former ")
		r.o.between()
		r.write(ctx, r.o.duration/2, "")
	}
	r.finish()
	close(r.ending)
	reader.Go(func() { r.ledger.read(ctx, r.read) })
	r.await("every client has the end", func() bool {
		return !slices.ContainsFunc(r.clients, func(c *client) bool { return !c.done.Load() })
	})
	r.await("the ledger has the end", r.read)
	cancel()
	clients.Wait()
	reader.Wait()
	for i := range r.nodes {
		r.tally(i)
	}
	t.Logf("played for %v", time.Since(began).Round(100*time.Millisecond))
	r.compare()
}

// anchor writes the first record of a lane of a compacted topic, which
// stays there: else an id from before everything that compaction has left is
// believed by no gateway that was started since, and the client told so.
func (r *run) anchor(lane int) {
	r.t.Helper()
	if !r.o.compacted {
		return
	}
	cl := r.client()
	testkit.Eventually(r.t, patience, "the first record of "+r.lane(lane), func() bool {
		rec := &kgo.Record{
			Topic: r.o.topics[topicOf(lane)].name, Partition: partitionOf(lane), Key: []byte("first"), Value: fmt.Append(nil, "first ", lane),
		}
		if err := cl.ProduceSync(r.within(), rec).FirstErr(); err != nil {
			cl.ForceMetadataRefresh() // that it is there is not known everywhere at once
			return false
		}
		r.acked.add(rec)
		return true
	})
}

// newClient adds a client, which is yet to follow.
func (r *run) newClient() *client {
	i := len(r.clients)
	c := &client{run: r, n: i, kind: r.o.kinds(i), draw: r.rand(fmt.Sprint("client ", i)), last: -1}
	r.count("kind: "+c.kind.name, 1)
	r.clients = append(r.clients, c)
	return c
}

// write has records written for a while, and everything befall those who read
// them. name tells the producers apart from those of another time.
func (r *run) write(ctx context.Context, d time.Duration, name string) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(ctx, d)
	var producers sync.WaitGroup
	defer producers.Wait()
	defer stop()
	if r.o.plainly {
		producers.Go(func() { r.plain(ctx, name+"plain", r.o.rate) })
	} else {
		producers.Go(func() { r.plain(ctx, name+"plain", r.o.rate/2) })
		for i := range 2 {
			producers.Go(func() { r.transactions(ctx, fmt.Sprint(name, "tx", i), r.o.rate/4) })
		}
	}
	r.haunt(ctx)
}

// haunt does what befalls brokers and gateways until ctx ends, and then what
// is needed for all of them to run again.
func (r *run) haunt(ctx context.Context) {
	draw := r.rand("faults")
	faults := slices.Clone(r.o.faults)
	if r.o.gateways {
		faults = append(faults,
			fault{"gateway killed", 3, func(d *rand.Rand) bool { return r.endNode(d.IntN(2), syscall.SIGKILL, d) }},
			fault{"gateway stopped", 3, func(d *rand.Rand) bool { return r.endNode(d.IntN(2), syscall.SIGTERM, d) }},
			fault{"both gateways killed", 1, func(d *rand.Rand) bool {
				first, second := r.endNode(0, syscall.SIGKILL, d), r.endNode(1, syscall.SIGKILL, d)
				return first && second
			}},
			fault{"partitions grown", 2, r.grow},
		)
	}
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	for {
		pause := time.NewTimer(time.Duration(200+draw.IntN(800)) * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			r.raise(true)
			r.o.tend(true)
			return
		case <-pause.C:
		}
		r.raise(false)
		r.o.tend(false)
		k := draw.IntN(max(1, total))
		for _, f := range faults {
			if k -= f.weight; k < 0 {
				if f.do(draw) {
					r.count("fault: "+f.kind, 1)
				}
				break
			}
		}
	}
}

// endNode ends a gateway and says when it shall run again.
func (r *run) endNode(i int, sig syscall.Signal, d *rand.Rand) bool {
	away := time.Duration(d.IntN(2000)) * time.Millisecond
	if !r.up[i].IsZero() {
		return false
	}
	r.tally(i)
	r.nodes[i].Signal(r.t, sig)
	r.up[i] = time.Now().Add(away)
	return true
}

// tallied are the metrics of gateways that the report adds up.
var tallied = []string{"tailcast_replays_total", "tailcast_slow_clients_dropped_total", "tailcast_resyncs_total", "tailcast_history_"}

// tally adds up what a gateway has counted, before it ends.
func (r *run) tally(i int) {
	r.t.Helper()
	for line := range strings.Lines(r.nodes[i].Get(r.t, "/metrics")) {
		if !slices.ContainsFunc(tallied, func(name string) bool { return strings.HasPrefix(line, name) }) {
			continue
		}
		series, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(text, 64); err == nil && v > 0 {
			r.count("gateway: "+series, int(v))
		}
	}
}

// raise starts the gateways whose time has come; all of them at the end.
func (r *run) raise(all bool) {
	for i, n := range r.nodes {
		switch {
		case r.up[i].IsZero() && n.Exited():
			r.t.Fatalf("gateway %d ended by itself:\n%s", i, n.Stderr.String())
		case r.up[i].IsZero():
		case all:
			testkit.Eventually(r.t, patience, "end of a gateway", n.Exited)
			n.Again(r.t)
			r.up[i] = time.Time{}
		case n.Exited() && time.Now().After(r.up[i]):
			n.Again(r.t)
			r.up[i] = time.Time{}
		}
	}
}

// grow adds a partition to a topic.
func (r *run) grow(d *rand.Rand) bool {
	t := d.IntN(len(r.o.topics))
	n := int(r.parts[t].Load()) + 1
	if n > r.o.topics[t].grow {
		return false
	}
	resp, err := r.admin().UpdatePartitions(r.within(), n, r.o.topics[t].name)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		r.count("growth failed", 1) // a broker was away
		return false
	}
	r.anchor(laneOf(t, int32(n-1)))
	r.parts[t].Store(int32(n))
	return true
}

// finish writes a last record to every partition: the clients and the ledger
// are done behind it.
func (r *run) finish() {
	r.t.Helper()
	cl := r.client()
	var end vector
	var recs []*kgo.Record
	for _, l := range r.lanes() {
		recs = append(recs, &kgo.Record{
			Topic: r.o.topics[topicOf(l)].name, Partition: partitionOf(l), Key: []byte("last"), Value: fmt.Append(nil, "last ", l),
		})
	}
	if err := cl.ProduceSync(r.within(), recs...).FirstErr(); err != nil {
		r.t.Fatalf("the last records: %v", err)
	}
	for _, rec := range recs {
		end[r.laneOf(rec)] = rec.Offset + 1
	}
	r.acked.add(recs...)
	r.end.Store(&end)
}

// read reports whether the ledger has all there is.
func (r *run) read() bool {
	end := r.end.Load()
	if end == nil {
		return false
	}
	at := r.ledger.behind()
	for l, next := range end {
		if at[l] < next {
			return false
		}
	}
	return true
}

// await waits until done; the report is written even if that never is.
func (r *run) await(what string, done func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience + r.o.duration/4); !done(); time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // this is the wait for a condition
		if time.Now().After(deadline) {
			r.t.Errorf("%s: not within %v", what, patience)
			return
		}
	}
}

// What is reported of clients that object, and of mismatches; the first ones
// explain the others.
const failedMax, mismatchesMax = 5, 5

// compare compares every client with the log, and reports.
func (r *run) compare() {
	t := r.t
	t.Helper()
	if r.ledger.bad != nil {
		t.Error(r.ledger.bad)
	}
	records, compared, voided := 0, 0, 0
	for l := range r.ledger.log {
		records += len(r.ledger.log[l])
	}
	var bad []mismatch
	failed, received, packed := 0, 0, 0
	for _, c := range r.clients {
		packed += c.packed
		received += int(c.records.Load())
		n, void, wrong := r.ledger.compare(c)
		compared += n
		voided += void
		switch {
		case c.failed != nil && failed < failedMax:
			t.Errorf("%v\n%s", c.failed, c.trace.String())
			failed++
		case c.failed != nil:
			failed++
		case !c.begun:
			t.Errorf("client %d never had a stream", c.n)
		case !c.finished() && failed < failedMax:
			t.Errorf("client %d (%s) is at %v in the end, not at %v\n%s", c.n, c.kind.target, c.pos, *r.end.Load(), c.trace.String())
			failed++
		default:
			bad = append(bad, wrong...)
		}
	}
	if failed > 0 {
		t.Errorf("%d clients object", failed)
	}
	have, gone, missing := r.acked.missing(&r.ledger)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		t.Logf("%8d  %s", r.counts[what], what)
	}
	t.Logf("%8d  records in the log (%d confirmed ones among them, %d of unknown fate)", records, have, r.acked.bad)
	if r.o.compacted {
		t.Logf("%8d  confirmed ones compacted away before the log was read", gone)
	}
	t.Logf("%8d  records compared, of %d clients", compared, len(r.clients))
	if packed > 0 {
		t.Logf("%8d  ids of the second form", packed)
	}
	if voided > 0 {
		t.Logf("%8d  records received of a log that is no more", voided)
	}
	t.Logf("%8d  mismatches", len(bad))
	for i, m := range bad {
		if i == mismatchesMax {
			t.Errorf("and %d more", len(bad)-i)
			break
		}
		t.Errorf("%v\n%s%s", m, m.client.trace.String(), r.around(m.lane, m.offset))
	}
	if missing > 0 {
		t.Errorf("the log lacks %d records that were confirmed: the comparison is worth nothing", missing)
	}
	if compared+voided != received && len(bad) == 0 && failed == 0 {
		t.Errorf("%d records were compared, %d received", compared+voided, received)
	}
}

// around is what the log of a lane holds near an offset, committed or not.
func (r *run) around(lane int, offset int64) string {
	const near = 8
	at := kgo.NewOffset().At(max(0, offset-near))
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.o.brokers...), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.o.topics[topicOf(lane)].name: {partitionOf(lane): at}}))
	if err != nil {
		return err.Error()
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var b strings.Builder
	for _, rec := range cl.PollRecords(ctx, 2*near).Records() {
		fmt.Fprintf(&b, "\t%s %d producer %d/%d leader epoch %d", r.lane(lane), rec.Offset, rec.ProducerID, rec.ProducerEpoch, rec.LeaderEpoch)
		switch {
		case rec.Attrs.IsControl():
			fmt.Fprintf(&b, " control %x", rec.Key)
		case rec.Attrs.IsTransactional():
			fmt.Fprintf(&b, " transaction %s", rec.Key)
		default:
			fmt.Fprintf(&b, " plain %s", rec.Key)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (r *run) admin() *kadm.Client {
	if r.adm == nil {
		r.adm = kadm.NewClient(r.client())
	}
	return r.adm
}

// within is a context for one step.
func (r *run) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	return ctx
}
