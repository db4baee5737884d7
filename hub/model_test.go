package hub

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
)

// TestModel drives one feed at random and holds it against a list of events
// and a search from its front: every placement and every byte read must be the
// list's. It prints its seed; run one again with -run 'TestModel/seed=N'.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, seed)
			for range 3000 {
				m.step()
			}
			m.drainAll()
		})
	}
}

// told is one frame that the model expects in the log.
type told struct {
	part   int32
	offset int64 // -1: belongs to no record
	block  string
}

type modelReader struct {
	place int64
	next  int // told it reads next
	dead  bool
}

type model struct {
	t    *testing.T
	rand *rand.Rand
	box  *Mailbox
	feed *Feed
	sink *sink
	r    *Reader

	id      frame.TopicID
	next    map[int32]int64 // per partition, as the tail has it
	told    []told
	told0   int              // generation: told before it can't be resumed from
	base    map[int32]int64  // next offsets at the beginning of the generation
	ids     []frame.Position // positions a client of this node may have
	readers []*modelReader
	now     time.Time
	wakes   int
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), id: frame.TopicID{1},
		next: map[int32]int64{}, base: map[int32]int64{}, now: time.Unix(1000, 0),
	}
	m.box = NewMailbox(func() { m.wakes++ })
	h := New(Options{LogBytes: 3 * segmentBytes, LogBytesTotal: 1 << 30, Heartbeat: time.Second}, []*Mailbox{m.box})
	src := sourceFunc(func(_ string, s Sink) { m.sink = s.(*sink) })
	f, err := h.Open(Spec{Topics: []string{"t"}}, src)
	if err != nil {
		t.Fatal(err)
	}
	m.feed = f
	m.feed.beatAt = m.now
	m.r = f.Reader(m.box)
	var parts []frame.Partition
	for p := range int32(1 + m.rand.IntN(4)) {
		n := m.rand.Int64N(3) * 50
		m.next[p], m.base[p] = n, n
		parts = append(parts, frame.Partition{ID: p, Next: n})
	}
	m.sink.Open(m.id, parts)
	return m
}

type sourceFunc func(string, Sink)

func (f sourceFunc) Tail(topic string, s Sink) { f(topic, s) }

func (m *model) step() {
	switch n := m.rand.IntN(1000); {
	case n < 300:
		m.appendSome()
	case n < 400:
		m.sink.Flush()
	case n < 440:
		m.skipSome()
	case n < 640:
		m.read(m.rand.IntN(40000))
	case n < 780:
		m.attachKnown()
	case n < 960:
		m.attachRandom()
	case n < 980:
		m.beat()
	case n < 990:
		m.grow()
	case n < 996:
		m.lose()
	default:
		m.recreate()
	}
}

func (m *model) partition() int32 { return m.rand.Int32N(int32(len(m.next))) }

// position is the node's, as the model knows it.
func (m *model) position() frame.Position {
	g := frame.Group{Tag: frame.MakeTag("t", m.id)}
	for p := range int32(len(m.next)) {
		if m.next[p] != 0 {
			g.Parts = append(g.Parts, frame.Partition{ID: p, Next: m.next[p]})
		}
	}
	return frame.Position{g}
}

func (m *model) idText() string { return string(frame.AppendID(nil, m.position())) }

func (m *model) appendSome() {
	p := m.partition()
	var recs []frame.Record
	if n := m.next[p]; n > 0 && m.rand.IntN(10) == 0 { // what a tail reads again changes nothing
		recs = append(recs, frame.Record{Topic: "t", Partition: p, Offset: n - 1, Value: []byte("again")})
	}
	for range 1 + m.rand.IntN(5) {
		m.next[p] += m.rand.Int64N(3) / 2 // now and then a gap
		o := m.next[p]
		m.next[p]++
		val := fmt.Sprintf("%d/%d %s", p, o, strings.Repeat("x", m.rand.IntN(9000)))
		recs = append(recs, frame.Record{Topic: "t", Partition: p, Offset: o, Time: o, Value: []byte(val)})
		m.told = append(m.told, told{p, o, "id: " + m.idText() + "\ndata: " + val + "\n\n"})
		m.ids = append(m.ids, m.position())
	}
	m.sink.Append(p, recs)
}

func (m *model) skipSome() {
	p := m.partition()
	m.next[p] += 1 + m.rand.Int64N(3)
	m.sink.Advance(p, m.next[p])
}

func (m *model) beat() {
	m.sink.Flush()
	m.feed.tick(m.now) // takes note of what was appended
	m.now = m.now.Add(2 * time.Second)
	m.feed.tick(m.now)
	m.told = append(m.told, told{-1, -1, ":\n"})
}

func (m *model) grow() {
	p := int32(len(m.next))
	if p == 8 {
		return
	}
	m.next[p], m.base[p] = 0, 0
	m.sink.Advance(p, 0)
}

func (m *model) lose() {
	p := m.partition()
	reason, to := frame.Expired, m.next[p]+5
	if m.rand.IntN(2) == 0 {
		reason, to = frame.Truncated, m.next[p]/2
	}
	m.next[p] = to
	m.sink.Lost(reason, []frame.Range{{Topic: "t", Partition: p, From: 1, To: 2}}, []frame.Partition{{ID: p, Next: to}})
	m.generation(fmt.Sprintf("id: %s\nevent: resync\ndata: {\"reason\":%q,\"topics\":{\"t\":[{\"partition\":%d,\"from\":1,\"to\":2}]}}\n\n", m.idText(), reason, p))
}

func (m *model) recreate() {
	m.id[0]++
	n := int32(1 + m.rand.IntN(4))
	m.next, m.base = map[int32]int64{}, map[int32]int64{}
	var parts []frame.Partition
	for p := range n {
		m.next[p] = 0
		parts = append(parts, frame.Partition{ID: p})
	}
	m.sink.Recreated(m.id, parts)
	m.generation(fmt.Sprintf("id: %s\nevent: resync\ndata: {\"reason\":\"recreated\",\"topics\":{}}\n\n", m.idText()))
}

func (m *model) generation(block string) {
	m.told = append(m.told, told{-1, -1, block})
	m.told0, m.ids = len(m.told), nil
	for p, n := range m.next {
		m.base[p] = n
	}
}

// held returns the number of the first told that the log still holds, by
// reading its first segment.
func (m *model) held() int {
	m.sink.Flush()
	place, n := m.feed.log.first, 0
	for {
		b, ok := m.r.Read(place)
		if !ok {
			m.t.Fatal("the log's own first place is not held")
		}
		if len(b) == 0 {
			return len(m.told) - n
		}
		place += int64(len(b))
		for ; len(b) > 0; b = b[frame.Len(b):] {
			n++
		}
	}
}

func (m *model) attachKnown() {
	if len(m.ids) > 0 {
		m.attach(m.ids[m.rand.IntN(len(m.ids))])
	}
}

func (m *model) attachRandom() {
	pos := m.position()
	for i := range pos[0].Parts {
		next := &pos[0].Parts[i].Next
		*next = max(1, *next-m.rand.Int64N(12)+m.rand.Int64N(2))
	}
	m.attach(pos)
}

// attach compares Attach with the search from the front.
func (m *model) attach(pos frame.Position) {
	first := m.held()
	wantNext, resync := m.find(pos, first)
	at, block := m.r.Attach(Start{Position: pos}, 1500, nil)
	id := string(frame.AppendID(nil, pos))
	want := frame.AppendPreamble(nil, 1500, []byte(id))
	if resync {
		id = m.idText()
		want = frame.AppendPreamble(nil, 1500, []byte(id))
		want = frame.AppendResync(want, []byte(id), frame.UnknownID, nil)
		wantNext = len(m.told)
	}
	if !bytes.Equal(block, want) {
		m.t.Fatalf("first block of %v:\n got %q\nwant %q", pos, block, want)
	}
	r := &modelReader{place: at.Place, next: wantNext}
	if got := m.nextRecord(at.Place); got != m.nextTold(wantNext) {
		m.t.Fatalf("position %v at %v: goes on at %q, want %q", pos, m.position(), got, m.nextTold(wantNext))
	}
	// Frames of no record between the two places are the log's choice: follow it.
	for r.next > first && m.told[r.next-1].offset < 0 && m.between(at.Place) > len(m.told)-r.next {
		r.next--
	}
	for m.between(at.Place) < len(m.told)-r.next {
		r.next++
	}
	m.readers = append(m.readers, r)
	if len(m.readers) > 20 {
		m.readers = m.readers[1:]
	}
}

// between counts the frames from place on.
func (m *model) between(place int64) (n int) {
	for {
		b, _ := m.r.Read(place)
		if len(b) == 0 {
			return n
		}
		place += int64(len(b))
		for ; len(b) > 0; b = b[frame.Len(b):] {
			n++
		}
	}
}

// find is the naive search: where in told[first:] a position goes on.
func (m *model) find(pos frame.Position, first int) (next int, resync bool) {
	v := map[int32]int64{}
	for _, p := range pos[0].Parts {
		v[p.ID] = p.Next
	}
	for p, n := range m.next {
		if v[p] > n {
			return 0, true
		}
		base := m.base[p]
		for _, e := range m.told[m.told0:max(first, m.told0)] {
			if e.part == p && e.offset >= 0 {
				base = e.offset + 1
			}
		}
		if v[p] < base {
			return 0, true
		}
	}
	covered := func(e told) bool { return e.offset < v[e.part] }
	next = len(m.told)
	for i := max(first, m.told0); i < len(m.told); i++ {
		if e := m.told[i]; e.offset >= 0 && !covered(e) {
			next = i
			break
		}
	}
	for _, e := range m.told[next:] {
		if e.offset >= 0 && covered(e) {
			return 0, true
		}
	}
	return next, false
}

func (m *model) nextTold(i int) string {
	for ; i < len(m.told); i++ {
		if m.told[i].offset >= 0 {
			return fmt.Sprintf("%.60s", m.told[i].block)
		}
	}
	return ""
}

func (m *model) nextRecord(place int64) string {
	for {
		b, ok := m.r.Read(place)
		if !ok {
			m.t.Fatalf("Attach returned a place that is not held")
		}
		if len(b) == 0 {
			return ""
		}
		place += int64(len(b))
		for ; len(b) > 0; b = b[frame.Len(b):] {
			if block := frame.Unchunk(b[:frame.Len(b)]); bytes.Contains(block, []byte("\ndata: ")) && !bytes.Contains(block, []byte("event: resync")) {
				return fmt.Sprintf("%.60s", block)
			}
		}
	}
}

// read lets a reader take some frames.
func (m *model) read(most int) {
	if len(m.readers) == 0 {
		return
	}
	m.box.Enter()
	defer m.box.Leave()
	r := m.readers[m.rand.IntN(len(m.readers))]
	for most > 0 && !r.dead {
		b, ok := m.r.Read(r.place)
		if !ok {
			if r.place >= m.feed.log.first {
				m.t.Fatal("a place that is held can't be read")
			}
			r.dead = true
			return
		}
		if len(b) == 0 {
			return
		}
		n := frame.Len(b)
		if got := string(frame.Unchunk(b[:n])); got != m.told[r.next].block {
			m.t.Fatalf("frame %d:\n got %.120q\nwant %.120q", r.next, got, m.told[r.next].block)
		}
		r.place += int64(n)
		r.next++
		most -= n
	}
}

func (m *model) drainAll() {
	m.sink.Flush()
	for _, r := range slices.Clone(m.readers) {
		m.readers = []*modelReader{r}
		m.read(1 << 30)
		if !r.dead && r.next != len(m.told) {
			m.t.Fatalf("a reader ends at frame %d of %d", r.next, len(m.told))
		}
	}
}
