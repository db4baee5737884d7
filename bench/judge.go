package bench

import (
	"bytes"
	"fmt"
	"time"
)

const (
	// faultsMax bounds the fault texts kept; the first ones tell the story.
	faultsMax = 16
	// partitionsMax bounds what a stream remembers of a lying payload.
	partitionsMax = 10_000
)

// tally is what the streams of a client add up to.
type tally struct {
	counts  Counts
	verify  bool
	ids     bool // ids are to have the form of readID
	cache   idCache
	faults  []string
	latency histogram // of the measured part, the slice under way apart
	slice   histogram // of the slice of time that is under way
	opening histogram // from connect(2) to the response head
	first   histogram // of streams with keys: from the first connect(2) to the first record
	live    histogram // and to the event that they have caught up
	start   time.Time // of the client's clock
	turns   histogram // how long the client worked between two waits

	// measuring says that latencies count; now is the clock when the bytes
	// being read came, in nanoseconds since 1970.
	measuring bool
	now       int64
}

// fault keeps a text for people to read; the counts are kept by the caller.
func (t *tally) fault(format string, args ...any) {
	if len(t.faults) < faultsMax {
		t.faults = append(t.faults, fmt.Sprintf(format, args...))
	}
}

// judge counts and checks the events of one stream, across its connections. It
// is the stream's sink. A stream either gets every record, each once, or with
// keys the latest one of each; see Config.Keys.
type judge struct {
	tally   *tally
	stream  int   // its number, for fault texts
	user    int64 // whose records it is to get alone, or 0
	anyUser bool
	sample  bool
	events  int64
	marks   []mark // by partition

	keys  []keyState    // what it has, by key; nil without Config.Keys
	began time.Duration // when it connected first
	live  bool          // it was told once that it has caught up
}

func (j *judge) comment() { j.tally.counts.Comments++ }

func (j *judge) idOnly(e *event) {
	j.tally.counts.IDBlocks++
	j.checkID(e)
}

func (j *judge) event(e *event) {
	n := &j.tally.counts
	switch e.name {
	case resyncName:
		n.Resyncs++
		j.checkID(e)
		for i := range j.marks {
			j.marks[i].restart()
		}
		clear(j.keys)
		return
	case skippedName:
		n.Skipped++
		j.checkID(e)
		j.skip(e.text)
		return
	case deleteName:
		n.Deletes++
		if j.keys != nil {
			j.removeKey(e)
			return
		}
		j.checkID(e)
		return
	case liveName:
		n.Live++
		j.heardLive()
		return
	case otherName:
		n.Named++
	case unnamed:
	}
	n.Events++
	j.events++
	if j.keys != nil {
		j.putKey(e) // when it was due says nothing: most are older than the stream
		return
	}
	if j.sample && j.tally.measuring && e.ok {
		j.tally.slice.record(time.Duration(j.tally.now - e.payload.Time))
	}
	if j.tally.verify {
		j.check(e)
	}
}

// check judges one record.
func (j *judge) check(e *event) {
	n := &j.tally.counts
	if !e.ok || e.lines != 1 || e.payload.Partition >= partitionsMax {
		n.Unreadable++
		j.tally.fault("stream %d: data that is no payload: %.80q", j.stream, e.text)
		return
	}
	p := e.payload.Partition
	at := p
	if e.payload.User != 0 { // who counts their records whatever the partition
		if j.user != 0 && !j.anyUser && e.payload.User != j.user {
			n.Foreign++
			j.tally.fault("stream %d: got a record of user %d, want those of %d", j.stream, e.payload.User, j.user)
			return
		}
		at = 0
	}
	for int(at) >= len(j.marks) {
		j.marks = append(j.marks, newMark())
	}
	m := &j.marks[at]
	want := m.next
	verdict, missing := m.see(e.payload.Seq)
	n.Missing += missing
	switch verdict {
	case afterGap:
		n.Gaps++
		j.tally.fault("stream %d: partition %d: gap: got record %d, want %d", j.stream, p, e.payload.Seq, want)
	case late:
		n.Reordered++
		j.tally.fault("stream %d: partition %d: record %d came late, after %d", j.stream, p, e.payload.Seq, want-1)
	case duplicate:
		n.Duplicates++
		j.tally.fault("stream %d: partition %d: record %d came again, after %d", j.stream, p, e.payload.Seq, want-1)
	case inOrder:
	}
	if !j.tally.ids {
		return
	}
	offset, ok := j.tally.cache.read(e.id, p, e.payload.Seq) // an absent id is an empty one, which is none
	if ok && verdict == inOrder {
		ok = m.seeOffset(offset)
	}
	if !ok {
		n.BadIDs++
		j.tally.fault("stream %d: partition %d: record %d has id %.200q", j.stream, p, e.payload.Seq, e.id)
	}
}

// checkID checks the form of an id that stands for no record.
func (j *judge) checkID(e *event) {
	if !j.tally.verify || !j.tally.ids || !e.hasID {
		return
	}
	if _, ok := readID(e.id, 0); !ok {
		j.tally.counts.BadIDs++
		j.tally.fault("stream %d: id %.200q", j.stream, e.id)
	}
}

// skip takes a record as seen that the server named in a skipped event.
func (j *judge) skip(text []byte) {
	_, rest, ok := bytes.Cut(text, []byte(`"partition":`))
	if !ok {
		return
	}
	if p, _, ok := number(rest); ok && p < int64(len(j.marks)) && j.marks[p].next != anySeq {
		j.marks[p].next++
	}
}
