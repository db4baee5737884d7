package kafkatail

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
)

// plan is what the library has to be told after a reconciliation.
type plan struct {
	purge  []string
	add    map[string]map[int32]kgo.Offset
	resume map[string][]int32
}

// announce opens the sinks of topics that are read already. Reader only.
func (r *reader) announce() {
	t := r.t
	defer r.wakes.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader != r {
		return
	}
	for _, tp := range t.topics {
		t.warmed(tp, time.Now())
		tp.announce()
		tp.flush(&r.wakes)
	}
}

// purge stops consuming topics that nobody reads any more. Reader only.
func (r *reader) purge(topics []string) {
	for _, name := range topics {
		r.unpause(name)
	}
	r.cl.PurgeTopicsFromConsuming(topics...)
}

// reconcile makes what is read fit what a look found. Reader only: between two
// polls, so that the positions it sets and the library's agree.
func (r *reader) reconcile(v *view) {
	t := r.t
	p := plan{add: make(map[string]map[int32]kgo.Offset), resume: make(map[string][]int32)}
	t.mu.Lock()
	if t.reader != r {
		t.mu.Unlock()
		return
	}
	for name, m := range v.topics {
		if tp := t.topics[name]; tp != nil {
			r.topic(tp, m, v, &p)
			t.warmed(tp, v.at)
			tp.announce()
			tp.flush(&r.wakes)
		}
	}
	reading := 0
	for _, tp := range t.topics {
		reading += tp.reading()
	}
	t.mu.Unlock()
	r.wakes.Wake()
	r.pacer.follow(reading)

	if len(p.purge) > 0 {
		r.purge(p.purge)
	}
	r.seek()
	r.cl.AddConsumePartitions(p.add)
	for name, parts := range p.resume {
		for _, part := range parts {
			delete(r.paused, place{name, part})
		}
	}
	if len(p.resume) > 0 {
		r.cl.ResumeFetchPartitions(p.resume)
	}
}

// unpause forgets the pauses of a topic that is not consumed any more; the
// library would apply them to its next life.
func (r *reader) unpause(topic string) {
	var parts []int32
	for pl := range r.paused {
		if pl.topic == topic {
			parts = append(parts, pl.partition)
			delete(r.paused, pl)
		}
	}
	if len(parts) > 0 {
		r.cl.ResumeFetchPartitions(map[string][]int32{topic: parts})
	}
}

// topic reconciles one topic. Tail.mu must be held.
func (r *reader) topic(tp *topic, m topicMeta, v *view, plan *plan) {
	if m.err != nil {
		r.unavailable(tp, m.err, v.at, plan)
		return
	}
	if slices.Contains(tp.retired, m.id) {
		return // a broker that lags behind
	}
	tp.missingSince = time.Time{}
	if tp.id != m.id {
		if again := tp.id != (frame.TopicID{}); again {
			r.drop(tp, plan)
			r.t.counters.recreate.Add(1)
		}
		tp.begin(m.id, v.at)
		r.t.setState(tp, Opening, nil)
	}
	tp.grow(len(m.leaders))
	for i := range tp.parts {
		p := &tp.parts[i]
		p.leader = noLeader
		if i < len(m.leaders) {
			p.leader = m.leaders[i]
		}
		if start, ok := v.starts[place{tp.name, int32(i)}]; ok {
			p.start = start.offset
		}
		if end, ok := v.ends[place{tp.name, int32(i)}]; ok {
			p.end = end.offset
		}
	}
	r.settle(tp, v)
	if !tp.opened {
		return
	}
	if !r.readable(tp, v, plan) {
		return
	}
	state := Tailing
	if tp.warm != nil {
		state = Warming
	}
	r.t.setState(tp, state, nil)
	r.repair(tp, v, plan)
	for i := range tp.parts {
		p := &tp.parts[i]
		if p.reading || p.leader == noLeader || p.next == frame.Unknown || p.outOfRange {
			continue
		}
		if plan.add[tp.name] == nil {
			plan.add[tp.name] = make(map[int32]kgo.Offset)
		}
		plan.add[tp.name][int32(i)] = kgo.NewOffset().At(p.next)
		p.reading = true
	}
}

// unavailable handles a topic that the brokers answer for with an error.
func (r *reader) unavailable(tp *topic, err error, now time.Time, plan *plan) {
	switch {
	case isMissing(err):
		r.missing(tp, now, plan)
	case isDenied(err):
		tp.missingSince = time.Time{}
		r.drop(tp, plan)
		r.t.setState(tp, Denied, err)
	default: // the brokers may heal; what is read is read on
		tp.missingSince = time.Time{}
		r.t.setState(tp, Failing, err)
	}
}

// missing handles a topic that a broker does not know: at first sight that is
// believed (others said so, too: lister.askOthers), and the topic will be read
// whole once it is there. One that was there is deleted only if it stays away; a
// broker may lag behind. One that is denied is not missing: nobody says whether it
// exists, and once it is allowed it is read from its end.
func (r *reader) missing(tp *topic, now time.Time, plan *plan) {
	if tp.state == Missing {
		return
	}
	if tp.id == (frame.TopicID{}) {
		tp.whole = true
		r.t.setState(tp, Missing, nil)
		return
	}
	if tp.missingSince.IsZero() {
		tp.missingSince = now
	}
	if now.Sub(tp.missingSince) >= r.t.cfg.Timing.Confirm {
		tp.missingSince = time.Time{}
		tp.warm = nil
		r.drop(tp, plan)
		r.t.setState(tp, Missing, nil)
	}
}

// drop stops consuming a topic; its positions stay.
func (r *reader) drop(tp *topic, plan *plan) {
	reading := false
	for i := range tp.parts {
		p := &tp.parts[i]
		reading = reading || p.reading
		p.reading, p.outOfRange, p.errs, p.err, p.behindAt = false, false, 0, nil, time.Time{}
	}
	if reading {
		plan.purge = append(plan.purge, tp.name)
	}
}

// settle gives positions to partitions that have none and opens the topic.
//
// A partition is read from its end, as listed when it is first seen with a
// leader, or for a warm-up from before it. A topic seen missing before, or
// re-created, is read from its start.
func (r *reader) settle(tp *topic, v *view) {
	waiting := false
	for i := range tp.parts {
		p := &tp.parts[i]
		if p.next != frame.Unknown {
			continue
		}
		next, ok := r.begin(tp, place{tp.name, int32(i)}, v)
		switch {
		case ok && tp.opened:
			tp.advance(int32(i), next)
		case ok:
			p.next = next
		case p.leader != noLeader:
			waiting = true
		}
	}
	if tp.opened || len(tp.parts) == 0 || waiting && v.at.Sub(tp.okSince) < openGrace {
		return
	}
	if tp.whole {
		for i := range tp.parts {
			tp.parts[i].next = max(tp.parts[i].next, 0)
		}
	}
	tp.opened = true
	if r.t.cfg.Warmup > 0 && !tp.whole {
		tp.warm = newWarmup(tp.parts, v.at)
	}
}

// begin returns where a partition without a position is read from; false until
// that is listed.
func (r *reader) begin(tp *topic, pl place, v *view) (next int64, ok bool) {
	start, hasStart := v.starts[pl]
	end, hasEnd := v.ends[pl]
	switch n := r.t.cfg.Warmup; {
	case tp.whole:
		return start.offset, hasStart
	case tp.opened || n == 0:
		return end.offset, hasEnd
	default:
		return min(max(start.offset, end.offset-n), end.offset), hasStart && hasEnd
	}
}

// readable reports whether a topic may be consumed. One whose fetches were
// denied is so until a probe of it is not.
func (r *reader) readable(tp *topic, v *view, plan *plan) bool {
	if tp.state != Denied {
		return true
	}
	tried := false
	for i := range tp.parts {
		pr, ok := v.probes[place{tp.name, int32(i)}]
		if !ok {
			continue
		}
		tried = true
		if pr.err == nil || kindOf(pr.err) != kindDenied {
			r.resumeTopic(tp, plan)
			return true
		}
	}
	if tried {
		tp.probeAt = v.at.Add(r.t.cfg.Timing.Denied)
		return false
	}
	return tp.probeAt.IsZero() // denied by metadata only, which answers now
}

// resumeTopic ends the pauses of a topic.
func (r *reader) resumeTopic(tp *topic, plan *plan) {
	tp.probeAt = time.Time{}
	for i := range tp.parts {
		tp.parts[i].errs, tp.parts[i].err = 0, nil
		plan.resume[tp.name] = append(plan.resume[tp.name], int32(i))
	}
}

// repair moves positions that the log does not hold any more.
func (r *reader) repair(tp *topic, v *view, plan *plan) {
	var expired, truncated []frame.Range
	for i := range tp.parts {
		p, pl := &tp.parts[i], place{tp.name, int32(i)}
		end, ok := v.ends[pl]
		if !ok || p.next == frame.Unknown {
			continue
		}
		start, hasStart := v.starts[pl]
		from := p.next
		switch asked, known := v.asked[pl]; {
		case p.outOfRange && (!known || asked != p.next): // listed before the tail was here: it may have grown since
			continue
		case p.outOfRange && hasStart && p.next < start.offset:
			p.next = start.offset
			expired = append(expired, frame.Range{Topic: tp.name, Partition: pl.partition, From: from, To: p.next - 1})
		case p.outOfRange && p.next > end.offset, r.shrunk(p, pl, v):
			p.next = end.offset
			truncated = append(truncated, frame.Range{Topic: tp.name, Partition: pl.partition, From: p.next, To: from - 1})
		case p.outOfRange && hasStart: // it is in range again
		default:
			r.observe(tp, p, pl, v)
			continue
		}
		p.outOfRange, p.beyondAt, p.errs, p.err = false, time.Time{}, 0, nil
		if p.reading {
			r.seeks.add(tp.name, pl.partition, kgo.EpochOffset{Epoch: -1, Offset: p.next})
			plan.resume[tp.name] = append(plan.resume[tp.name], pl.partition)
		}
	}
	if len(expired) > 0 {
		r.t.lost(tp, frame.Expired, expired)
	}
	if len(truncated) > 0 {
		r.t.lost(tp, frame.Truncated, truncated)
	}
}

// shrunk reports whether the log is seen to end before the position for long
// enough to be believed: the library misses a truncation where brokers or
// epochs do not tell (franz-go issue 1331), and would read on once the log has
// grown past the position.
func (r *reader) shrunk(p *partition, pl place, v *view) bool {
	asked, ok := v.asked[pl]
	if !ok || asked != p.next || v.ends[pl].offset >= asked {
		p.beyondAt = time.Time{}
		return false
	}
	if p.beyondAt.IsZero() {
		p.beyondAt = v.at
	}
	return v.at.Sub(p.beyondAt) >= r.t.cfg.Timing.Confirm
}

// observe keeps what tells a stuck reader from an idle one, and takes over what
// a probe found where there was nothing to read.
func (r *reader) observe(tp *topic, p *partition, pl place, v *view) {
	if pr, ok := v.probes[pl]; ok && pr.err == nil && !pr.records && pr.from == p.next {
		p.hole = pr.end
		if pr.next > p.next {
			tp.advance(pl.partition, pr.next)
		}
	}
	switch {
	case p.lag() == 0:
		p.behindAt = time.Time{}
	case p.behindAt.IsZero() || p.behindNext != p.next:
		p.behindAt, p.behindNext = v.at, p.next
	}
}
