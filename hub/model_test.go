package hub

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
)

// TestModel drives one feed at random and holds it against a list of events
// and a search from its front: every placement and every byte read must be the
// list's. It prints its seed; run one again with -run 'TestModel/seed=N'.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			m := newModel(t, seed)
			for range 2000 {
				m.step()
			}
			m.drainAll()
		})
	}
}

// place is a partition of one of the feed's topics.
type place struct {
	topic     int
	partition int32
}

// told is one frame that the model expects in the log.
type told struct {
	place
	offset int64 // -1: belongs to no record
	block  string
	pos    frame.Position // as its id tells it
	key    string         // of the record
}

// modelKeys are the keys of the model's records, of which filters want some.
var modelKeys = []string{"a", "b", "c"}

// modelKey is the key of a record.
func modelKey(at place, offset int64) string {
	return modelKeys[(int64(at.topic)+int64(at.partition)+offset/2)%int64(len(modelKeys))]
}

// wants reports whether a stream that gets only the records of key, or all if
// it is empty, gets the frame.
func (e told) wants(key string) bool { return e.offset < 0 || key == "" || e.key == key }

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
	spec Spec
	r    *Reader
	now  time.Time

	sinks   []Sink
	names   []string
	ids     []frame.TopicID
	count   []int32         // partitions of each topic
	next    map[place]int64 // as the tail has it
	silent  bool            // a record without a frame since the last frame
	told    []told
	told0   int              // generation: told before it can't be resumed from
	base    map[place]int64  // next offsets at the beginning of the generation
	known   []frame.Position // positions a client of this node may have
	readers []*modelReader
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1000, 0),
		next: map[place]int64{}, base: map[place]int64{},
	}
	m.box = NewMailbox(func() {})
	h := New(Options{LogBytes: 3 * segmentBytes, LogBytesTotal: 1 << 30, Heartbeat: time.Second}, []*Mailbox{m.box})
	m.names = []string{"a", "b", "c"}[:1+m.rand.IntN(3)]
	m.spec = Spec{Topics: m.names, Format: frame.Format{Delete: frame.DeleteSkip}}
	if seed%2 == 1 {
		m.spec.Fields = []Field{{Kind: KeyField}}
	}
	m.feed, m.sinks = openFeed(t, h, m.spec)
	m.feed.log.size = []int64{segmentBytesMin, segmentBytes}[m.rand.IntN(2)]
	m.feed.beatAt = m.now
	m.r = m.feed.Reader(m.box)
	for i := range m.names {
		m.ids = append(m.ids, frame.TopicID{byte(i + 1)})
		m.count = append(m.count, int32(1+m.rand.IntN(4)))
		var parts []frame.Partition
		for p := range m.count[i] {
			n := m.rand.Int64N(3) * 50
			m.next[place{i, p}], m.base[place{i, p}] = n, n
			parts = append(parts, frame.Partition{ID: p, Next: n})
		}
		m.sinks[i].Open(m.ids[i], parts)
	}
	return m
}

type sourceFunc func(string, Sink)

func (f sourceFunc) Tail(topic string, s Sink) { f(topic, s) }
func (f sourceFunc) End(string, Sink)          {}

func (m *model) step() {
	switch n := m.rand.IntN(1000); {
	case n < 300:
		m.appendSome()
	case n < 400:
		m.flush()
	case n < 420:
		m.skipSome()
	case n < 440:
		m.silence()
	case n < 640:
		m.read(m.rand.IntN(40000))
	case n < 780:
		m.attachKnown()
	case n < 960:
		m.attachRandom()
	case n < 975:
		m.beat()
	case n < 985:
		m.grow()
	case n < 990:
		m.feed.dropOldest()
	case n < 995:
		m.lose()
	case n < 996:
		m.learn()
	default:
		m.recreate()
	}
}

// anywhere is some partition of some topic.
func (m *model) anywhere() place {
	t := m.rand.IntN(len(m.names))
	return place{t, m.rand.Int32N(m.count[t])}
}

// vector is a position by place.
func vector(pos frame.Position) map[place]int64 {
	v := map[place]int64{}
	for t, g := range pos {
		for _, p := range g.Parts {
			v[place{t, p.ID}] = p.Next
		}
	}
	return v
}

// position is the node's, as the model knows it.
func (m *model) position() frame.Position {
	var pos frame.Position
	for t, name := range m.names {
		g := frame.Group{Tag: frame.MakeTag(name, m.ids[t])}
		for p := range m.count[t] {
			if n := m.next[place{t, p}]; n != 0 {
				g.Parts = append(g.Parts, frame.Partition{ID: p, Next: n})
			}
		}
		pos = append(pos, g)
	}
	return pos
}

func (m *model) idText() string { return string(frame.AppendID(nil, m.position())) }

// tell expects a frame.
func (m *model) tell(at place, offset int64, block string) {
	m.told = append(m.told, told{at, offset, block, m.position(), modelKey(at, offset)})
	m.silent = false
}

func (m *model) flush() {
	if m.silent {
		m.tell(place{}, -1, "id: "+m.idText()+"\n\n")
	}
	m.sinks[m.rand.IntN(len(m.sinks))].Flush(nil)
}

func (m *model) appendSome() {
	at := m.anywhere()
	var recs []frame.Record
	if n := m.next[at]; n > 0 && m.rand.IntN(10) == 0 { // what a tail reads again changes nothing
		recs = append(recs, frame.Record{Partition: at.partition, Offset: n - 1, Value: []byte("again")})
	}
	for range 1 + m.rand.IntN(5) {
		m.next[at] += m.rand.Int64N(3) / 2 // now and then a gap
		o := m.next[at]
		m.next[at]++
		val := fmt.Sprintf("%d/%d/%d %s", at.topic, at.partition, o, strings.Repeat("x", m.rand.IntN(9000)))
		recs = append(recs, frame.Record{Partition: at.partition, Offset: o, Time: o, Key: []byte(modelKey(at, o)), Value: []byte(val)})
		m.tell(at, o, "id: "+m.idText()+"\ndata: "+val+"\n\n")
		m.known = append(m.known, m.position())
	}
	m.sinks[at.topic].Append(at.partition, recs)
}

func (m *model) skipSome() {
	at := m.anywhere()
	m.next[at] += 1 + m.rand.Int64N(3)
	m.sinks[at.topic].Advance(at.partition, m.next[at])
}

// silence appends a record that the format passes over.
func (m *model) silence() {
	at := m.anywhere()
	m.sinks[at.topic].Append(at.partition, []frame.Record{{Partition: at.partition, Offset: m.next[at]}})
	m.next[at]++
	m.silent = true
}

func (m *model) beat() {
	m.flush()
	m.feed.tick(m.now, nil) // takes note of what was appended
	m.now = m.now.Add(2 * time.Second)
	m.feed.tick(m.now, nil)
	m.tell(place{}, -1, ":\n")
}

func (m *model) grow() {
	t := m.rand.IntN(len(m.names))
	if m.count[t] == 8 {
		return
	}
	at := place{t, m.count[t]}
	m.count[t]++
	m.next[at], m.base[at] = 0, 0
	m.sinks[t].Advance(at.partition, 0)
}

func (m *model) lose() {
	at := m.anywhere()
	reason, to := frame.Expired, m.next[at]+5
	if m.rand.IntN(2) == 0 {
		reason, to = frame.Truncated, m.next[at]/2
	}
	m.next[at] = to
	name := m.names[at.topic]
	m.sinks[at.topic].Lost(reason, []frame.Range{{Topic: name, Partition: at.partition, From: 1, To: 2}}, []frame.Partition{{ID: at.partition, Next: to}})
	m.generation(fmt.Sprintf("id: %s\nevent: resync\ndata: {\"reason\":%q,\"topics\":{%q:[{\"partition\":%d,\"from\":1,\"to\":2}]}}\n\n", m.idText(), reason, name, at.partition))
}

func (m *model) recreate() {
	t := m.rand.IntN(len(m.names))
	m.ids[t][15]++
	for p := range m.count[t] {
		delete(m.next, place{t, p})
		delete(m.base, place{t, p})
	}
	m.count[t] = int32(1 + m.rand.IntN(4))
	var parts []frame.Partition
	for p := range m.count[t] {
		m.next[place{t, p}] = 0
		parts = append(parts, frame.Partition{ID: p})
	}
	m.sinks[t].Recreated(m.ids[t], parts)
	named := ""
	if len(m.names) > 1 {
		named = fmt.Sprintf("%q:[]", m.names[t])
	}
	m.generation(fmt.Sprintf("id: %s\nevent: resync\ndata: {\"reason\":\"recreated\",\"topics\":{%s}}\n\n", m.idText(), named))
}

// learn opens the feed once more, with a field that it did not know.
func (m *model) learn() {
	if m.spec.Fields == nil {
		return
	}
	m.flush()
	m.spec.Fields = []Field{{HeaderField, strconv.Itoa(len(m.feed.fields))}}
	if f, err := m.feed.hub.Open(m.spec, nil); err != nil || f != m.feed {
		m.t.Fatal(f, err)
	}
	m.told0, m.known = len(m.told), nil
	maps.Copy(m.base, m.next)
}

func (m *model) generation(block string) {
	m.tell(place{}, -1, block)
	m.told0, m.known = len(m.told), nil
	maps.Copy(m.base, m.next)
}

// held returns the number of the first told that the log still holds, by
// reading it from its first segment.
func (m *model) held() int {
	m.flush()
	return len(m.told) - m.between(m.feed.log.first)
}

func (m *model) attachKnown() {
	if len(m.known) > 0 {
		m.attach(m.known[m.rand.IntN(len(m.known))], m.someKey())
	}
}

func (m *model) attachRandom() {
	pos := m.position()
	for g := range pos {
		for i := range pos[g].Parts {
			next := &pos[g].Parts[i].Next
			*next = max(1, *next-m.rand.Int64N(12)*m.rand.Int64N(2)+m.rand.Int64N(10)/9)
		}
	}
	m.attach(pos, m.someKey())
}

// sent is pos as a client might send it: its groups in another order, one left
// out, which puts that topic at its end, or the tag left out.
func (m *model) sent(pos frame.Position) frame.Position {
	now := m.position()
	sent := pos.Clone()
	switch m.rand.IntN(4) {
	case 0:
		if len(sent) == 1 {
			sent[0].Tag = frame.Tag{}
			break
		}
		i := m.rand.IntN(len(sent))
		pos[i] = now[i]
		sent = slices.Delete(sent, i, i+1)
	case 1:
		i := m.rand.IntN(len(sent))
		sent[i].Tag.ID = [3]byte{}
	}
	m.rand.Shuffle(len(sent), func(i, k int) { sent[i], sent[k] = sent[k], sent[i] })
	return sent
}

// someKey is a key to filter by, or none; a feed that has no fields has no filters.
func (m *model) someKey() string {
	if m.feed.labeler == nil || m.rand.IntN(3) == 0 {
		return ""
	}
	return modelKeys[m.rand.IntN(len(modelKeys))]
}

// filter is that of a stream which gets the records of key; nil for all.
func (m *model) filter(key string) *Filter {
	if key == "" {
		return nil
	}
	x, err := m.feed.NewFilter([][]Term{{{Field{Kind: KeyField}, []string{key}}}})
	if err != nil {
		m.t.Fatal(err)
	}
	return x
}

// attach compares Attach with the search from the front.
func (m *model) attach(pos frame.Position, key string) {
	first := m.held()
	pos = slices.Clone(pos)
	sent := m.sent(pos)
	wantNext, fits := m.find(pos, first)
	filter := m.filter(key)
	at, block := m.r.Attach(Start{Position: sent, Filter: filter}, 1500, nil)
	id := string(frame.AppendID(nil, pos))
	want := frame.AppendPreamble(nil, 1500, []byte(id))
	if fits == fitsNot {
		id = m.idText()
		want = frame.AppendRetryLine(nil, 1500)
		want = frame.AppendResync(want, []byte(id), frame.UnknownID, nil)
		wantNext = len(m.told)
	}
	if !bytes.Equal(block, want) {
		m.t.Fatalf("first block of %v:\n got %q\nwant %q", pos, block, want)
	}
	if (at.Own != nil) != (fits == fitsOwn) {
		m.t.Fatalf("position %v at %v: personal %v, want %v", pos, m.position(), at.Own != nil, fits == fitsOwn)
	}
	if at.Own != nil {
		m.personal(at.Own, pos, first, key)
		return
	}
	if filter != nil {
		m.sameFrames(matching(m.t, m.r, at.Label, filter), wantNext, key)
		return
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

// personal lets a personal stream have all it lacks and compares each event
// with the record's in the list, under the stream's own id.
func (m *model) personal(o *Own, pos frame.Position, first int, key string) {
	m.box.Enter()
	defer m.box.Leave()
	defer o.Close()
	pos = pos.Clone()
	var got []byte
	state := OwnMore
	for state == OwnMore {
		got, state = o.Step(got, 1+m.rand.IntN(20000), m.now)
	}
	if state == OwnShared && key != "" {
		got = append(got, matching(m.t, m.r, o.Label(), m.filter(key))...)
	} else if state == OwnShared {
		for place := o.Place(); ; {
			b, _ := m.r.Read(place)
			if len(b) == 0 {
				break
			}
			got, place = append(got, b...), place+int64(len(b))
		}
	}
	v := vector(pos)
	for _, e := range m.told[max(first, m.told0):] {
		if e.offset < 0 || e.offset < v[e.place] {
			continue
		}
		if !e.wants(key) {
			v[e.place] = e.offset + 1 // passed over
			continue
		}
		for len(got) > 0 && !bytes.Contains(got[:frame.Len(got)], []byte("\ndata: ")) {
			got = got[frame.Len(got):] // of the log, and of no record
		}
		if len(got) == 0 {
			m.t.Fatalf("position %v at %v: lacks %.60q", pos, m.position(), e.block)
		}
		block := frame.Unchunk(got[:frame.Len(got)])
		got = got[frame.Len(got):]
		v[e.place] = e.offset + 1
		_, data, _ := strings.Cut(e.block, "\n")
		if !bytes.HasSuffix(block, []byte("\n"+data)) {
			m.t.Fatalf("position %v at %v:\n got %.120q\nwant %.120q", pos, m.position(), block, e.block)
		}
		m.covers(block, v)
	}
	if bytes.Contains(got, []byte("\ndata: ")) {
		m.t.Fatalf("position %v at %v: %.60q too much", pos, m.position(), got)
	}
	ahead := false
	for at, next := range v {
		ahead = ahead || next > m.next[at]
	}
	if ahead != (state == OwnIdle) {
		m.t.Fatalf("position %v at %v: ends in state %d", pos, m.position(), state)
	}
}

// sameFrames checks that got is what told[next:] holds for key.
func (m *model) sameFrames(got []byte, next int, key string) {
	for _, e := range m.told[next:] {
		if e.offset < 0 || !e.wants(key) {
			continue
		}
		for len(got) > 0 && !bytes.Contains(got[:frame.Len(got)], []byte("\ndata: ")) {
			got = got[frame.Len(got):] // of no record
		}
		if len(got) == 0 || string(frame.Unchunk(got[:frame.Len(got)])) != e.block {
			m.t.Fatalf("for %s: got %.80q, want %.80q", key, got, e.block)
		}
		got = got[frame.Len(got):]
	}
	if bytes.Contains(got, []byte("\ndata: ")) {
		m.t.Fatalf("for %s: %.80q too much", key, got)
	}
}

// covers checks that the id of a block claims no record that the stream does
// not have, and forgets none that it has.
func (m *model) covers(block []byte, v map[place]int64) {
	line, _, _ := bytes.Cut(block, []byte("\n"))
	pos, err := frame.ParseID(bytes.TrimPrefix(line, []byte("id: ")))
	if err != nil {
		m.t.Fatalf("%q: %v", line, err)
	}
	got := vector(pos)
	for at, next := range v {
		if got[at] < next {
			m.t.Fatalf("the id %q goes back in %v to %d, from %d", line, at, got[at], next)
		}
	}
	for _, e := range m.told[m.told0:] {
		if e.offset >= 0 && (e.offset < got[e.place]) != (e.offset < v[e.place]) {
			m.t.Fatalf("the id %q and the stream differ at %v/%d", line, e.place, e.offset)
		}
	}
}

// find is the naive search: where in told[first:] a position goes on.
func (m *model) find(pos frame.Position, first int) (next int, how fit) {
	v := vector(pos)
	base := maps.Clone(m.base)
	for _, e := range m.told[m.told0:max(first, m.told0)] {
		if e.offset >= 0 {
			base[e.place] = e.offset + 1
		}
	}
	for at, n := range m.next {
		switch {
		case v[at] > n:
			how = max(how, fitsOwn)
		case v[at] < base[at]:
			return 0, fitsNot
		}
	}
	if how != fitsHere {
		return 0, how
	}
	covered := func(e told) bool { return e.offset < v[e.place] }
	next = len(m.told)
	for i := max(first, m.told0); i < len(m.told); i++ {
		if e := m.told[i]; e.offset >= 0 && !covered(e) {
			next = i
			break
		}
	}
	for _, e := range m.told[next:] {
		if e.offset >= 0 && covered(e) {
			return 0, fitsOwn
		}
	}
	for _, e := range m.told[next:] { // the next id must not be before it
		told := vector(e.pos)
		for at, next := range v {
			if e.block[0] != ':' && told[at] < next {
				return 0, fitsOwn
			}
		}
	}
	return next, fitsHere
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
	m.flush()
	for _, r := range slices.Clone(m.readers) {
		m.readers = []*modelReader{r}
		m.read(1 << 30)
		if !r.dead && r.next != len(m.told) {
			m.t.Fatalf("a reader ends at frame %d of %d", r.next, len(m.told))
		}
	}
}
