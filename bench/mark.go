package bench

// mark is where one stream stands in one partition.
type mark struct {
	next   int64 // the sequence number expected next, or anySeq
	first  int64 // the first one seen, or anySeq
	last   int64 // the highest seen
	offset int64 // the last offset an event id told, or noOffset

	// The latest run of numbers that did not come: from ≤ seq < to. Of a run
	// that is filled in the middle only the upper part is remembered, so what
	// then comes late into the lower one counts as a duplicate.
	missingFrom, missingTo int64
}

// anySeq says that nothing is known of a partition's sequence yet.
const anySeq = -1

func newMark() mark { return mark{next: anySeq, first: anySeq, offset: noOffset} }

// verdict is what the sequence number of an event says.
type verdict uint8

const (
	inOrder   verdict = iota
	afterGap          // numbers before it did not come
	late              // it comes after a later one, and was missing until now
	duplicate         // it has come before
)

// see judges the next event of the partition. missing is how many events are
// known to be absent because of it; a late one takes one back (-1).
func (m *mark) see(seq int64) (v verdict, missing int64) {
	m.last = max(m.last, seq)
	switch {
	case m.next == anySeq:
		if m.first == anySeq {
			m.first = seq
		}
		m.next = seq + 1
		return inOrder, 0
	case seq == m.next:
		m.next++
		return inOrder, 0
	case seq > m.next:
		missing = seq - m.next
		m.missingFrom, m.missingTo = m.next, seq
		m.next = seq + 1
		return afterGap, missing
	case seq >= m.missingFrom && seq < m.missingTo:
		if seq == m.missingTo-1 {
			m.missingTo--
		} else {
			m.missingFrom = seq + 1
		}
		return late, -1
	}
	return duplicate, 0
}

// seeOffset reports whether offset, told by the id of an event of this
// partition, is beyond the one before. noOffset says nothing.
func (m *mark) seeOffset(offset int64) bool {
	if offset == noOffset {
		return true
	}
	grown := offset > m.offset
	m.offset = offset
	return grown
}

// restart forgets what was expected, because the server said that the stream
// goes on elsewhere.
func (m *mark) restart() {
	m.next, m.offset = anySeq, noOffset
	m.missingFrom, m.missingTo = 0, 0
}
