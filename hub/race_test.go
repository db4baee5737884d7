package hub

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tailcast/frame"
)

// client is a browser on a loop: it reads the log as its stream would, breaks
// off behind some event and comes back with that event's id.
type client struct {
	t     *testing.T
	r     *Reader
	box   *Mailbox
	rand  *rand.Rand
	place int64
	id    string
	next  map[string]int64 // per "topic/partition": the offset it lacks next
	came  atomic.Int64     // times it connected
}

// connect attaches with the client's id.
func (c *client) connect() {
	at, first := c.r.Attach(Start{Position: id(c.t, c.id)}, 1000, nil)
	if want := "retry: 1000\nid: " + c.id + "\n\n"; at.Resync != "" || blocks(first) != want {
		c.t.Errorf("%s: resync %q, first block %q", c.id, at.Resync, blocks(first))
	}
	c.place = at.Place
	c.came.Add(1)
}

// read takes up to n events.
func (c *client) read(n int) {
	c.box.Enter()
	defer c.box.Leave()
	b, ok := c.r.Read(c.place)
	if !ok {
		c.t.Errorf("place %d is not held", c.place)
		return
	}
	for ; len(b) > 0 && n > 0; n-- {
		size := frame.Len(b)
		c.event(string(frame.Unchunk(b[:size])))
		b = b[size:]
		c.place += int64(size)
	}
}

// event checks that a block is the record the client lacks.
func (c *client) event(block string) {
	head, data, ok := strings.Cut(strings.TrimSuffix(block, "\n\n"), "\ndata: ")
	if !ok {
		return // a heartbeat
	}
	c.id = strings.TrimPrefix(head, "id: ")
	where, offset, _ := strings.Cut(data, " ")
	if want := strconv.Itoa(int(c.next[where])); offset != want {
		c.t.Errorf("%s: got offset %s, want %s (id %s)", where, offset, want, c.id)
	}
	c.next[where]++
}

// TestAttachWhileAppending: whenever a client comes back, it gets each record
// it lacks once and in order, while a tail appends at full speed.
func TestAttachWhileAppending(t *testing.T) {
	const clients, connects, recordsMax = 4, 500, 300_000
	boxes := make([]*Mailbox, clients)
	for i := range boxes {
		boxes[i] = NewMailbox(func() {})
	}
	h := New(Options{LogBytes: 256 * segmentBytes, LogBytesTotal: 1 << 30, Heartbeat: testOptions.Heartbeat}, boxes)
	f, sinks := openFeed(t, h, Spec{Topics: []string{"a", "b"}})
	for g, s := range sinks {
		s.Open(topicID(byte(g+1)), parts(0, 0))
	}

	var written atomic.Bool
	var wg sync.WaitGroup
	all := make([]*client, clients)
	for i := range all {
		c := &client{t: t, r: f.Reader(boxes[i]), box: boxes[i], rand: rand.New(rand.NewPCG(uint64(i), 5)), id: "v1:" + tagOf("a", 1) + "," + tagOf("b", 2), next: map[string]int64{}}
		all[i] = c
		wg.Go(func() {
			for done := false; !done && !t.Failed(); {
				done = written.Load()
				c.connect()
				for n := 1 + c.rand.IntN(40); n > 0; n-- {
					c.read(1 + c.rand.IntN(60))
					runtime.Gosched()
				}
				if c.place < c.r.Head() {
					done = false
				}
			}
		})
	}
	wg.Go(func() { // the clock
		now := f.beatAt
		for !written.Load() {
			now = now.Add(testOptions.Heartbeat)
			f.tick(now, nil)
			runtime.Gosched()
		}
	})

	rnd := rand.New(rand.NewPCG(7, 5))
	next := map[string]int64{}
	came := func() int64 { // the client that came least often
		least := all[0].came.Load()
		for _, c := range all {
			least = min(least, c.came.Load())
		}
		return least
	}
	for n := 0; n < recordsMax && came() < connects; {
		g, p := rnd.IntN(2), rnd.Int32N(4)
		if p > 1 && came() < connects/4 { // two partitions of each topic appear later
			continue
		}
		where := fmt.Sprintf("%d/%d", g, p)
		var recs []frame.Record
		for range 1 + rnd.IntN(8) {
			recs = append(recs, frame.Record{Partition: p, Offset: next[where], Value: fmt.Appendf(nil, "%s %d", where, next[where])})
			next[where]++
			n++
		}
		sinks[g].Append(p, recs)
		if rnd.IntN(4) == 0 {
			sinks[g].Flush(nil)
			runtime.Gosched()
		}
	}
	sinks[0].Flush(nil)
	written.Store(true)
	wg.Wait()
	if came() < connects {
		t.Errorf("a client came %d times while %d records were written", came(), recordsMax)
	}
	for i, c := range all {
		if fmt.Sprint(c.next) != fmt.Sprint(next) {
			t.Errorf("client %d ends at %v, the topics at %v", i, c.next, next)
		}
	}
}

// TestLatestWhileAppending: a new stream's first id and its place are the same
// position: what follows is the next record of each partition.
func TestLatestWhileAppending(t *testing.T) {
	g := newRig(t, Options{LogBytes: 16 * segmentBytes, LogBytesTotal: 1 << 30, Heartbeat: testOptions.Heartbeat}, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(0, 0, 0))
	var next [3]int64
	n := 0
	stop := background(func() {
		p := n * n % 3
		s.Append(int32(p), []frame.Record{record(int32(p), next[p])})
		next[p]++
		if n++; n%5 == 0 {
			s.Flush(nil)
		}
		if n%100 == 0 {
			runtime.Gosched()
		}
	})
	type start struct {
		at Placement
		id string
	}
	var starts []start
	for range 300 {
		at, b := g.r.Attach(Start{}, 0, nil)
		starts = append(starts, start{at, strings.TrimSuffix(strings.TrimPrefix(blocks(b), "id: "), "\n\n")})
		runtime.Gosched()
	}
	stop()
	s.Flush(nil)
	for _, st := range starts {
		at, _ := g.resume(st.id)
		if at.Resync != "" && st.at.Place >= g.feed.log.first {
			t.Fatalf("%s: resync %q", st.id, at.Resync)
		}
		if at.Resync == "" && at.Place != st.at.Place {
			t.Fatalf("latest was placed at %d with id %s, which is placed at %d", st.at.Place, st.id, at.Place)
		}
	}
}
