package hub

import (
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"tailcast/frame"
)

const (
	// aheadGrace is how long an id that is ahead of this node is waited for,
	// before the brokers are asked whether they have what it names. Nodes are
	// apart by less than a fetch; a restarted broker needs seconds.
	aheadGrace = 5 * time.Second
	// lossesMax bounds the losses a feed remembers for personal streams that
	// have not taken note of them yet; they look twice a second.
	lossesMax = 16
	// blockedFor is how long a stream waits for the tail when the brokers say that
	// its topic is another one. The tail says so within a few seconds; or it never
	// does, because one broker was behind the others.
	blockedFor = 5 * time.Second
	// ownLooksMax bounds the records that a filtered stream passes over in one
	// Step, some of them under the feed's lock.
	ownLooksMax = 2048
)

// Own is a stream whose position selects no one place in the log of this
// node: it was read elsewhere, where partitions interleaved differently, or is
// older than the log. Its events are copied from the log's frames, or from
// history, with ids of its own, until one place in the log is right for it.
// Loop only, but for what replays tells it.
type Own struct {
	r       *Reader
	addr    netip.Addr
	policy  Policy  // where it begins of what its position does not say
	chosen  bool    // by the client: what it may have is bounded
	restart bool    // any resync begins again by the start policy
	limited bool    // ReplayMax and ReplayScan are for it
	filter  *Filter // what it is to have of the records; nil: all

	ids   frame.IDWriter // where the stream is
	lossN int            // losses of the feed that are behind it
	known groups         // their bounds were told since the last change of topics

	recreated  groups         // their id is of another topic of the name: bounds say where they begin
	sent       frame.Position // the client's id, if there are any of them
	asked      int            // group whose bounds were asked for
	checking   groups         // ahead of this node: bounds say whether what they have exists
	starting   bool           // asked for to learn where the start policy has it begin
	askAt      time.Time      // that is not asked for again before
	expired    []frame.Range  // what bounds said so far, to be told when no group is left to ask for
	cut        []frame.Range
	begun      groups    // and the topics that begin anew
	untold     bool      // no id says yet where it goes on
	came       bool      // though it had one when it came
	notices    []notice  // resyncs to be told with it
	blocked    time.Time // a topic is another one by now: nothing is asked before, unless the tail says so
	aheadSince time.Time // since when a partition is ahead of this node; zero: none is
	delivered  int64     // records from history
	scanned    int64     // bytes of history read for it, as fetched
	toldAt     time.Time // when it was last sent anything
	moved      bool      // its position moved since the last id it was sent
	events     int       // since Events

	keys ownKeys // of a stream with FromSnapshot

	looks int // records passed over by the Step that runs

	place, label int64 // once shared

	// Conn is the loop's own.
	Conn any

	// replays.mu guards these.
	reading bool
	closed  bool
	answer  *extents
	failure failure

	id    []byte // scratch
	nexts []int64
}

// OwnState is what a personal stream needs next.
type OwnState uint8

// The states of a personal stream.
const (
	OwnMore    OwnState = iota // call Step again when what it appended is written
	OwnIdle                    // nothing to send: call again when the feed is marked
	OwnReading                 // waits for history: call again when Mailbox.TakeOwn has it
	OwnShared                  // done: the stream goes on in the log, at Place
	OwnRefused                 // the snapshot it needs is not to be had: end it
)

// Place is where the stream goes on in the log, once Step said OwnShared.
func (o *Own) Place() int64 { return o.place }

// Label is the place of the first label behind Place.
func (o *Own) Label() int64 { return o.label }

// Events returns how many events Step appended since the last call.
func (o *Own) Events() int {
	n := o.events
	o.events = 0
	return n
}

// Close ends a personal stream, or its personal part.
func (o *Own) Close() {
	rp := &o.r.feed.hub.replays
	rp.mu.Lock()
	o.closed = true
	rp.mu.Unlock()
	o.r.feed.timed.Add(-1)
	o.r.feed.owns.Add(-1)
}

// ready tells the loop that what o waits for is there. replays.mu must be held.
func (o *Own) ready() {
	o.reading = false
	o.r.box.own(o)
}

// Step appends to dst whole frames that the stream lacks, about most bytes of
// them, and says what comes next. now is the time.
func (o *Own) Step(dst []byte, most int, now time.Time) ([]byte, OwnState) {
	f := o.r.feed
	limit := len(dst) + most
	begin := len(dst)
	o.looks = 0
	dst, state := o.step(dst, limit, now)
	if state == OwnShared && o.moved && o.filter != nil {
		dst = o.beat(dst) // the log may not say it for long
	}
	if len(dst) > begin || o.toldAt.IsZero() { // at first Attach told it
		o.toldAt = now
	} else if state != OwnShared && now.Sub(o.toldAt) >= f.hub.opts.Heartbeat {
		dst = o.beat(dst)
		o.toldAt = now
	}
	return dst, state
}

// beat appends a heartbeat: the position if it moved since it was told.
func (o *Own) beat(dst []byte) []byte {
	if !o.moved || o.untold || o.begun != 0 || len(o.expired)+len(o.cut) > 0 { // no id before the loss that led to it
		return append(dst, frame.Heartbeat...)
	}
	o.moved = false
	o.id = o.ids.Append(o.id[:0])
	return frame.AppendIDBlock(dst, o.id)
}

func (o *Own) step(dst []byte, limit int, now time.Time) ([]byte, OwnState) {
	for {
		var got *extents
		var failed failure
		reading := o.takeNews(&got, &failed)
		if got != nil {
			o.bounded(got, now)
		}
		if failed.err != nil {
			dst = o.failed(dst, failed, now)
		}
		if reading {
			return dst, OwnReading
		}
		dst = o.takeLosses(dst)
		if now.Before(o.blocked) {
			return dst, OwnIdle
		}
		o.blocked = time.Time{}
		if g, ok := o.question(now); ok {
			if o.r.feed.hub.opts.History == nil {
				return o.giveUp(dst), OwnMore
			}
			o.ask(g, now)
			return dst, OwnReading
		}
		if dst = o.tell(dst, now); o.untold {
			continue // it starts over
		}
		if o.policy.From == FromSnapshot {
			var state OwnState
			var done bool
			if dst, state, done = o.fromKeys(dst, limit); !done && (state != OwnMore || len(dst) >= limit || o.looks >= ownLooksMax) {
				return dst, state
			} else if !done {
				continue
			}
		}
		part, ok := o.lacks()
		if !ok {
			var state OwnState
			if dst, state = o.fromLog(dst, limit, now); o.checking == 0 {
				return dst, state
			}
			continue
		}
		c := o.r.feed.hub.replays.chunk(o, part.key, part.topic, part.from)
		if c == nil {
			return dst, OwnReading
		}
		dst = o.fromChunk(dst, limit, c, part)
		if len(dst) >= limit || o.looks >= ownLooksMax {
			return dst, OwnMore
		}
	}
}

// takeNews takes what replays has told.
func (o *Own) takeNews(got **extents, failed *failure) (reading bool) {
	rp := &o.r.feed.hub.replays
	rp.mu.Lock()
	defer rp.mu.Unlock()
	*got, *failed = o.answer, o.failure
	o.answer, o.failure = nil, failure{}
	return o.reading
}

// question returns the next group whose bounds have to be known: history, a
// former id or being ahead concerns it. They are asked for one by one, and what
// they say is told when there are no more, so that a client hears of its losses
// at once.
func (o *Own) question(now time.Time) (group int, ok bool) {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	want := o.unsaid(now) | o.recreated | o.checking
	if o.policy.From != FromSnapshot { // which is never read from the brokers
		want |= o.lacking() &^ o.known
	}
	return want.first(), want != 0
}

// ask asks for the bounds of a group, or where the start policy has the stream
// begin in it.
func (o *Own) ask(group int, now time.Time) {
	f := o.r.feed
	f.mu.Lock()
	key := boundsKey{f.topics[group].name, f.topics[group].id, notByTime}
	o.asked, o.starting = group, o.unsaid(now).has(group)
	f.mu.Unlock()
	if millis, ok := o.policy.since(time.Now()); ok && o.starting { // now may not know of steps of the clock
		key.since = millis
	}
	f.hub.replays.extents(o, key)
}

// lacking returns the groups of which the stream lacks records that the log
// does not hold. The feed's mutex must be held.
func (o *Own) lacking() (all groups) {
	f := o.r.feed
	for i := range f.parts {
		p := &f.parts[i]
		from := o.ids.Next(p.group, p.id)
		if p.next != frame.Unknown && from != frame.Unknown && from < f.index.parts[i].base {
			all = all.with(p.group)
		}
	}
	return all
}

// backlog is a partition of which a stream lacks records that the log does not
// hold.
type backlog struct {
	key   chunkKey
	topic string
	from  int64 // the stream's next offset
	to    int64 // where the log begins
}

func (o *Own) lacks() (backlog, bool) {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return o.lacksLocked()
}

// lacksLocked returns the first such partition. The feed's mutex must be held.
func (o *Own) lacksLocked() (backlog, bool) {
	f := o.r.feed
	for i := range f.parts {
		p, base := &f.parts[i], f.index.parts[i].base
		if p.next == frame.Unknown || o.recreated.has(p.group) {
			continue
		}
		from := o.ids.Next(p.group, p.id)
		if from != frame.Unknown && from < base {
			t := &f.topics[p.group]
			return backlog{chunkKey{f, p.group, t.id, t.cuts, p.id}, t.name, from, base}, true
		}
	}
	return backlog{}, false
}

// fromChunk copies a chunk's events that the stream lacks, as far as the log
// does not have them.
func (o *Own) fromChunk(dst []byte, limit int, c *chunk, b backlog) []byte {
	g, p := b.key.group, b.key.partition
	if b.from <= c.Start || o.scanned == 0 {
		o.scanned += int64(c.Bytes) // counted once, when the stream enters the chunk
	}
	i, _ := slices.BinarySearchFunc(c.entries, b.from, func(e chunkEntry, from int64) int {
		return int(max(-1, min(1, e.offset-from)))
	})
	for ; i < len(c.entries) && c.entries[i].offset < b.to; i++ {
		e := c.entries[i]
		if len(dst) >= limit || o.looks >= ownLooksMax {
			o.advance(g, p, e.offset)
			return dst
		}
		if o.filter != nil && !o.wants(c.labels[e.label:]) {
			continue
		}
		if o.delivered++; o.over() {
			return o.tooFar(dst)
		}
		dst = o.copy(dst, c.frames[e.pos:], g, p, e.offset)
	}
	o.advance(g, p, min(c.Next, b.to))
	if o.over() {
		return o.tooFar(dst)
	}
	return dst
}

// over reports whether the stream has had more history than it may have.
func (o *Own) over() bool {
	opts := &o.r.feed.hub.opts
	return o.limited && (o.delivered > opts.ReplayMax || o.scanned > opts.ReplayScan)
}

// copy appends the first frame of b with the stream's own id behind offset.
func (o *Own) copy(dst, b []byte, group int, partition int32, offset int64) []byte {
	o.ids.Advance(group, partition, offset+1)
	o.id = o.ids.Append(o.id[:0])
	fr := b[:frame.Len(b)]
	o.events++
	o.moved = false
	return frame.AppendReframed(dst, o.id, fr, frame.Measure(fr))
}

// advance moves the stream over offsets that hold nothing for it.
func (o *Own) advance(group int, partition int32, next int64) {
	if o.ids.Next(group, partition) < next {
		o.ids.Advance(group, partition, next)
		o.moved = true
	}
}

// fromLog copies the events that the stream lacks from the log, until one
// place in the log is right for it.
func (o *Own) fromLog(dst []byte, limit int, now time.Time) ([]byte, OwnState) {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.lossN < f.lossN || o.lacksMore() { // the log has moved on since, or back
		return dst, OwnMore
	}
	next, ahead := o.next()
	if !ahead {
		o.aheadSince = time.Time{}
	}
	x := &f.index
	after, before := x.split(next)
	before = max(before, x.settled)
	for i := after; i < f.visible; i++ {
		if i >= before && !ahead {
			o.place, o.label = x.entries.at(i).place, f.labelAt(i)
			return dst, OwnShared
		}
		e := x.entries.at(i)
		if e.offset < next[e.part] {
			continue
		}
		if len(dst) >= limit || o.looks >= ownLooksMax {
			return dst, OwnMore
		}
		p := &f.parts[e.part]
		if o.filter != nil && !o.wants(f.held(&f.labels, *x.labels.at(i))) {
			o.advance(p.group, p.id, e.offset+1)
			next[e.part] = e.offset + 1
			continue
		}
		b := f.held(&f.log, e.place)
		dst = o.copy(dst, b, p.group, p.id, e.offset)
		next[e.part] = e.offset + 1
	}
	if ahead {
		return o.wait(dst, now)
	}
	if before > f.visible {
		return dst, OwnIdle // covered records that are not readable yet
	}
	if o.place = f.log.end; f.visible < x.entries.end() {
		o.place = x.entries.at(f.visible).place
	}
	o.label = f.labelAt(f.visible)
	return dst, OwnShared
}

// lacksMore reports whether the stream lacks records that the log does not
// hold. The feed's mutex must be held.
func (o *Own) lacksMore() bool {
	if o.policy.From == FromSnapshot {
		_, ok := o.keysLack()
		return ok
	}
	_, ok := o.lacksLocked()
	return ok
}

// wants reports whether the first label in b is of a record for the stream,
// and counts it if not.
func (o *Own) wants(b []byte) bool {
	l, _ := NextLabel(b)
	if o.filter.matches(l.values) {
		return true
	}
	o.looks++
	return false
}

// held reads what the index says is there. mu must be held.
func (f *Feed) held(l *log, place int64) []byte {
	b, ok := l.read(place)
	if !ok {
		panic("BUG: hub: the index holds a record that the log does not")
	}
	return b
}

// next returns the stream's next offset in each of the feed's parts, and
// whether any partition of it is ahead of this node, or not known here: the log
// will have such a partition from where this node begins with it, which is
// right for nobody but who begins at the end. The feed's mutex must be held.
func (o *Own) next() (next []int64, ahead bool) {
	f := o.r.feed
	next = slices.Grow(o.nexts[:0], len(f.parts))[:len(f.parts)]
	o.nexts = next
	known := 0
	for i := range f.parts {
		p := &f.parts[i]
		next[i] = o.ids.Next(p.group, p.id)
		if next[i] != 0 {
			known++
		}
		switch {
		case p.next == frame.Unknown:
			ahead = ahead || next[i] != frame.Unknown || o.policy.From != FromLatest
		case next[i] == frame.Unknown: // the brokers have not said yet where it begins
			next[i], ahead = math.MaxInt64, true
		case next[i] > p.next:
			ahead = true
		}
	}
	total := 0
	for _, g := range o.ids.Position() {
		total += len(g.Parts)
	}
	return next, ahead || known < total
}

// giveUp puts a stream where this node is: nobody can read what it lacks.
func (o *Own) giveUp(dst []byte) []byte {
	f := o.r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	return o.giveUpLocked(dst)
}

// giveUpLocked is giveUp; the feed's mutex must be held.
func (o *Own) giveUpLocked(dst []byte) []byte {
	o.policy = Policy{}
	o.ids.Set(o.r.feed.ids.Position())
	return o.resync(dst, frame.UnknownID, nil)
}

// wait notes that the stream is ahead of this node; after aheadGrace the
// brokers are asked. The feed's mutex must be held.
func (o *Own) wait(dst []byte, now time.Time) ([]byte, OwnState) {
	if o.aheadSince.IsZero() {
		o.aheadSince = now
	}
	if now.Sub(o.aheadSince) < aheadGrace {
		return dst, OwnIdle
	}
	o.aheadSince = now
	if o.r.feed.hub.opts.History == nil {
		return o.giveUpLocked(dst), OwnMore
	}
	o.checking = o.ahead()
	return dst, OwnIdle
}

// ahead returns the groups in which the stream is ahead of this node, but for
// topics that are missing: of these there is nobody to ask. The feed's mutex
// must be held.
func (o *Own) ahead() (all groups) {
	f := o.r.feed
	for g, group := range o.ids.Position() {
		if f.topics[g].id == (frame.TopicID{}) {
			continue
		}
		for _, p := range group.Parts {
			if p.Next == frame.Unknown {
				continue
			}
			if i := f.part(g, p.ID); i < 0 || f.parts[i].next == frame.Unknown || p.Next > f.parts[i].next {
				all = all.with(g)
			}
		}
	}
	return all
}

// groups is a set of a feed's topics, by their places in it: topicsMax of them.
type groups uint64

func (s groups) has(g int) bool       { return s&(1<<g) != 0 }
func (s groups) with(g int) groups    { return s | 1<<g }
func (s groups) without(g int) groups { return s &^ (1 << g) }

// first is the lowest member; none of an empty set.
func (s groups) first() int { return bits.TrailingZeros64(uint64(s)) }
