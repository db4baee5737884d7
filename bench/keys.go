package bench

import "time"

// putKey takes a record as the latest of its key, as a page does that shows a
// topic's state.
func (j *judge) putKey(e *event) {
	n, p := &j.tally.counts, &e.payload
	if j.events == 1 {
		j.tally.first.record(time.Since(j.tally.start) - j.began)
	}
	if !e.ok || e.lines != 1 || p.Partition >= partitionsMax || p.User < 1 || p.User >= int64(len(j.keys)) || p.Seq > keySeqMax {
		n.Unreadable++
		j.tally.fault("stream %d: data that is no payload of a key: %.80q, %+v", j.stream, e.text, *p)
		return
	}
	s := &j.keys[p.User]
	if p.Seq < s.next() {
		n.Stale++
		j.tally.fault("stream %d: key %d: record %d came after %s", j.stream, p.User, p.Seq, *s)
	}
	*s = s.put(p.Seq)
	for int(p.Partition) >= len(j.marks) {
		j.marks = append(j.marks, newMark())
	}
	offset, ok := readID(e.id, p.Partition)
	if !ok || !j.marks[p.Partition].seeOffset(offset) {
		n.BadIDs++
		j.tally.fault("stream %d: partition %d: record %d of key %d has id %.200q", j.stream, p.Partition, p.Seq, p.User, e.id)
	}
}

// removeKey takes the key in a delete event as deleted. That the stream never
// had it is no fault.
func (j *judge) removeKey(e *event) {
	key, rest, ok := number(e.text)
	if !ok || len(rest) > 0 || key < 1 || key >= int64(len(j.keys)) {
		j.tally.counts.Unreadable++
		j.tally.fault("stream %d: a deletion that is of no key: %.80q", j.stream, e.text)
		return
	}
	j.keys[key] = j.keys[key].remove()
	j.checkID(e)
}

// heardLive notes when the stream was told first that it has caught up.
func (j *judge) heardLive() {
	if j.keys == nil || j.live {
		return
	}
	j.live = true
	j.tally.live.record(time.Since(j.tally.start) - j.began)
}

// compareKeys counts the keys that are not as they should be.
func (j *judge) compareKeys(want []keyState) {
	n := &j.tally.counts
	for key, w := range want {
		switch has := j.keys[key]; {
		case !w.has() && !has.has(), w == has:
		case !w.has():
			n.Undead++
			j.tally.fault("stream %d: key %d: it has %s, and the key is deleted", j.stream, key, has)
		case !has.has():
			n.Lacking++
			j.tally.fault("stream %d: key %d: it has %s, and the latest is %s", j.stream, key, has, w)
		default:
			n.Wrong++
			j.tally.fault("stream %d: key %d: it has %s, and the latest is %s", j.stream, key, has, w)
		}
	}
}
