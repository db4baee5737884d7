package loop

import "tailcast/hub"

const (
	// matchMax bounds the labels that are looked up at a time: about 50 us. What
	// is for one stream of them goes out in one write.
	matchMax = 1024
	// lookMax bounds the labels whose streams are found before the first of them
	// is touched: as many cache misses as a processor has under way at a time,
	// several times over, and few enough to stay in its caches.
	lookMax = 64
	// hitsMax bounds the matches that are remembered until they are written, 100 KB
	// a feed and loop: four a label. Streams beyond look for theirs themselves.
	hitsMax = 4096
)

// matcher finds the filtered streams that a feed's records are for. Streams
// that no record is for are not touched. Loop only.
type matcher struct {
	table hub.Table
	at    int64 // labels before it were looked up
	end   int64 // labels before it are looked up by the pass that runs
	all   int64 // behind the last label that is for every stream
	last  int64 // place of the last frame whose label was looked up; -1: none

	hits  []hit // of the labels looked up last
	round int64 // which those are: hits of another are gone
}

// hit is a record's frame that is for a stream.
type hit struct {
	piece
	next int32 // of the same stream in matcher.hits; -1: the last
}

// file puts a filtered stream, whose place is right for it, among those that
// records are looked up for. label is where what it lacks begins.
func (l *Loop) file(c *conn, label int64) {
	s, x := c.stream, c.filtered
	m := &s.matcher
	if m.table.Len() == 0 {
		m.at, m.last = s.reader.LabelEnd()
		m.end, m.all = m.at, 0
	}
	m.table.Add(&x.Watch)
	s.reader.Watched()
	x.filed = true
	x.label, x.until = label, m.at
	x.told, x.frameEnd = c.place, c.place
}

// unfile undoes file.
func (l *Loop) unfile(c *conn) {
	if x := c.filtered; x != nil && x.filed {
		x.filed = false
		c.stream.matcher.table.Remove(&x.Watch)
		c.stream.reader.Unwatched()
	}
}

// match looks the next labels up and lets the streams that they are for be
// served by the pass.
func (l *Loop) match(s *streams) {
	m := &s.matcher
	m.hits = m.hits[:0]
	m.round++
	b, ok := s.reader.Labels(m.at)
	if !ok {
		// This loop was away for as long as the log holds. Every stream
		// finds out by its own label.
		m.at, m.last = s.reader.LabelEnd()
		m.end, m.all = m.at, m.at
		for s.quiet.len() > 0 {
			l.enlist(s.quiet.conns[0], &s.matched)
		}
		return
	}
	for n := 0; n < matchMax && len(b) > 0 && m.at < m.end; n += lookMax {
		rest, all := l.lookUp(m, b)
		b = rest
		for i, w := range l.found {
			l.matches(w.Conn.(*conn), &l.finds[i])
		}
		clear(l.found)
		if all >= 0 {
			m.all = m.at
			m.round++ // who has hits has this between them
			for s.quiet.len() > 0 {
				c := s.quiet.conns[s.quiet.len()-1]
				c.filtered.label = max(c.filtered.label, all)
				l.enlist(c, &s.matched)
			}
		}
	}
}

// find is a record's frame that is for the stream of l.found with the same index.
type find struct {
	piece
	end int64 // of its label
}

// lookUp finds the streams of the labels in b, up to lookMax of them or the
// first that is for every stream, of which it returns the place, or -1.
//
// What it finds is in nobody's cache: of 20,000 streams each is touched once a
// second. The processor fetches what does not depend on what it still
// waits for, so all are touched one behind the other before any is looked at.
func (l *Loop) lookUp(m *matcher, b []byte) (rest []byte, all int64) {
	l.found, l.finds, all = l.found[:0], l.finds[:0], -1
	for n := 0; n < lookMax && len(b) > 0 && m.at < m.end && all < 0; n++ {
		label, size := hub.NextLabel(b)
		f := find{piece{m.at, label.Place, label.Size, true}, m.at + int64(size)}
		switch label.Kind {
		case hub.LabelRecord:
			l.found = m.table.Find(l.found, &label)
			for len(l.finds) < len(l.found) {
				l.finds = append(l.finds, f)
			}
		case hub.LabelAll:
			all = m.at
		case hub.LabelNone:
		}
		m.at, m.last = f.end, label.Place
		b = b[size:]
	}
	for _, w := range l.found {
		c := w.Conn.(*conn)
		l.touched += c.place + c.filtered.label
	}
	return b, all
}

// matches notes that a frame is for c.
func (l *Loop) matches(c *conn, f *find) {
	s, x, p := c.stream, c.filtered, f.piece
	m := &s.matcher
	if p.label < x.label {
		return // it had this before it came here
	}
	x.until = f.end
	if !c.behind {
		x.owed += int64(p.size)
	}
	first := c.list == &s.quiet
	if first {
		x.label, x.round = p.label, m.round
		l.enlist(c, &s.matched)
	}
	if x.round != m.round {
		return // it looks for itself
	}
	if len(m.hits) == hitsMax {
		x.round = 0
		return
	}
	this := int32(len(m.hits))
	if m.hits = append(m.hits, hit{p, -1}); first {
		x.hit = this
	} else {
		m.hits[x.lastHit].next = this
	}
	x.lastHit = this
}
