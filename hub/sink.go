package hub

import (
	"slices"

	"tailcast/frame"
)

// sink is where one topic enters one feed. Once the feed has ended it is deaf.
type sink struct {
	feed  *Feed
	group int
}

func (s *sink) Open(id frame.TopicID, parts []frame.Partition) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	s.begin(id, parts)
	if t := &f.topics[s.group]; !t.open {
		t.open = true
		if f.isOpen() {
			f.mark(nil) // the loops place the streams that waited
		}
	}
}

func (s *sink) Warm(id frame.TopicID, parts []frame.Partition) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	s.begin(id, parts)
}

// begin takes over which incarnation is read, and from where. mu must be held.
func (s *sink) begin(id frame.TopicID, parts []frame.Partition) {
	f := s.feed
	t := &f.topics[s.group]
	if was := t.id; was == (frame.TopicID{}) && id != was {
		f.remember(loss{appeared, s.group, nil, nil, frame.MakeTag(t.name, id)})
	}
	t.id, t.tag = id, frame.MakeTag(t.name, id)
	for _, p := range parts {
		f.advance(s.group, p.ID, p.Next)
	}
	f.reposition()
}

func (s *sink) Append(partition int32, recs []frame.Record) {
	if len(recs) == 0 {
		return
	}
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	i := f.part(s.group, partition)
	if i < 0 || f.parts[i].next == frame.Unknown {
		f.advance(s.group, partition, recs[0].Offset)
		if i = f.part(s.group, partition); i < 0 {
			f.stats.Refused += uint64(len(recs))
			return
		}
	}
	for k := range recs {
		f.append(i, &recs[k])
	}
}

// append encodes one record into the log. mu must be held.
func (f *Feed) append(i int, rec *frame.Record) {
	p := &f.parts[i]
	if rec.Offset < p.next {
		f.stats.Repeated++
		return
	}
	p.next = rec.Offset + 1
	f.ids.Advance(p.group, p.id, p.next)
	f.judge()
	f.idBuf = f.ids.Append(f.idBuf[:0])
	var out frame.Outcome
	f.frameBuf, out = f.enc.AppendEvent(f.frameBuf[:0], f.idBuf, rec)
	f.count(out)
	if out.Kind == frame.Silent {
		f.silent = true
		f.index.skipped(i, p.next)
		f.keep(i, rec, out)
		return
	}
	f.silent = false
	place := f.log.append(f.frameBuf)
	f.index.add(entry{place: place, offset: rec.Offset, time: rec.Time, part: int32(i)})
	f.label(LabelRecord, place, len(f.frameBuf), rec)
	f.keep(i, rec, out)
	f.grew = true
	f.evict()
	if f.log.end-f.log.head.Load() >= segmentBytes || f.labels.end-f.labels.head.Load() >= segmentBytes {
		f.flush(nil) // or a poll larger than the log would roll over every stream
	}
}

func (f *Feed) count(out frame.Outcome) {
	switch out.Kind { //nolint:exhaustive // events and deletes are just records
	case frame.Silent:
		f.stats.Silent++
		if out.Dropped {
			f.stats.Dropped++
		}
		return
	case frame.Skipped:
		f.stats.Skipped++
	}
	f.stats.Records++
	if out.Replaced {
		f.stats.Replaced++
	}
	if out.Unnamed {
		f.stats.Unnamed++
	}
}

func (s *sink) Advance(partition int32, next int64) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if f.advance(s.group, partition, next) {
		f.ids.Advance(s.group, partition, next)
		f.judge()
	}
}

// advance makes a partition known, or moves it forward to next; false if
// neither. mu must be held; the caller sees to ids.
func (f *Feed) advance(group int, partition int32, next int64) bool {
	i := f.part(group, partition)
	switch {
	case i < 0:
		if next != 0 {
			f.index.settled = f.index.entries.end()
		}
		return f.addPart(group, partition, next)
	case f.parts[i].next == frame.Unknown:
		f.index.parts[i].base = next
		f.index.settled = f.index.entries.end()
	case next <= f.parts[i].next:
		return false
	default:
		f.index.skipped(i, next)
	}
	f.parts[i].next = next
	return true
}

func (s *sink) Lost(reason frame.Reason, lost []frame.Range, parts []frame.Partition) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if reason == frame.Truncated {
		f.topics[s.group].cuts++
	}
	for _, p := range parts {
		if i := f.part(s.group, p.ID); i >= 0 {
			f.parts[i].next = p.Next
			f.voidKeys(i)
		} else {
			f.addPart(s.group, p.ID, p.Next)
		}
	}
	f.remember(loss{reason, s.group, slices.Clone(lost), slices.Clone(parts), f.topics[s.group].tag})
	f.resync(reason, lost)
}

func (s *sink) Recreated(id frame.TopicID, parts []frame.Partition) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	t := &f.topics[s.group]
	t.id, t.tag = id, frame.MakeTag(t.name, id)
	f.forget(s.group)
	for _, p := range parts {
		f.advance(s.group, p.ID, p.Next)
	}
	f.remember(loss{frame.Recreated, s.group, nil, slices.Clone(parts), t.tag})
	f.resync(frame.Recreated, f.anew(groups(0).with(s.group)))
}

// forget removes the partitions of a topic and every record from the index.
// mu must be held.
func (f *Feed) forget(group int) {
	kept := slices.DeleteFunc(slices.Clone(f.parts), func(p part) bool { return p.group == group })
	f.index.reset()
	f.parts, f.index.parts = nil, nil
	if f.voidKeys(-1); f.keys != nil {
		f.keys.parts = nil
	}
	for g := range f.topics {
		f.topics[g].byParts = nil
	}
	for _, p := range kept {
		f.addPart(p.group, p.id, p.next)
	}
}

// anew names the topics that are others now, where that says something: a feed
// of one topic has told it by the reason. mu must be held.
func (f *Feed) anew(set groups) (list []frame.Range) {
	for g := range f.topics {
		if len(f.topics) > 1 && set.has(g) {
			list = append(list, frame.Range{Topic: f.topics[g].name, Partition: frame.Whole})
		}
	}
	return list
}

// resync begins a generation of the index and tells every stream of the feed.
// mu must be held.
func (f *Feed) resync(reason frame.Reason, lost []frame.Range) {
	f.index.reset()
	for i := range f.parts {
		f.index.parts[i].base = f.parts[i].next
	}
	f.reposition()
	f.silent = false
	f.idBuf = f.ids.Append(f.idBuf[:0])
	f.frameBuf = frame.AppendResync(f.frameBuf[:0], f.idBuf, reason, lost)
	f.put(f.frameBuf, LabelAll)
	if f.isOpen() { // personal streams count when they are told
		f.stats.resynced(reason, uint64(max(0, int64(f.streams())-f.owns.Load())))
	}
	f.flushNow(nil)
}

func (s *sink) Flush(w *Wakes) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.flush(w)
}
