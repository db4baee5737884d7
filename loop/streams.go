package loop

import "tailcast/hub"

// streams are one feed's streams on one loop. Loop only.
type streams struct {
	reader  *hub.Reader
	live    []*conn // caught up, or to be served by the pass that runs
	waiting []*conn // the feed is not open yet
	n       int     // all of them, the lagging ones too

	next    int  // live[:next] have been served by the pass that runs
	passing bool // a pass runs: the loop's list of passes holds it
	again   bool // marked while the pass ran: run another

	// The last answer of reader.Records: nearly every stream of a pass asks
	// for the same.
	from, to int64
	records  int
}

// add puts c behind the others; a running pass will serve it.
func (s *streams) add(c *conn) {
	c.list, c.pos = listLive, int32(len(s.live))
	s.live = append(s.live, c)
}

// remove takes c out of live, so that a running pass neither serves a stream
// twice nor leaves one out.
func (s *streams) remove(c *conn) {
	hole := int(c.pos)
	if hole < s.next {
		s.next--
		if hole != s.next {
			s.move(s.next, hole)
		}
		hole = s.next
	}
	last := len(s.live) - 1
	if hole != last { // else what is there has moved, or is c
		s.move(last, hole)
	}
	s.live[last] = nil
	s.live = s.live[:last]
	c.list = listNone
}

func (s *streams) move(from, to int) {
	s.live[to] = s.live[from]
	s.live[to].pos = int32(to)
}

func (s *streams) wait(c *conn) {
	c.list, c.pos = listWaiting, int32(len(s.waiting))
	s.waiting = append(s.waiting, c)
}

func (s *streams) unwait(c *conn) {
	last := len(s.waiting) - 1
	s.waiting[c.pos] = s.waiting[last]
	s.waiting[c.pos].pos = c.pos
	s.waiting[last] = nil
	s.waiting = s.waiting[:last]
	c.list = listNone
}

// count returns how many records' frames begin in the log from from to to.
func (s *streams) count(from, to int64) int {
	if from != s.from || to != s.to {
		s.from, s.to, s.records = from, to, s.reader.Records(from, to)
	}
	return s.records
}
