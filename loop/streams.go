package loop

import (
	"time"

	"tailcast/hub"
)

// streams are one feed's streams on one loop. Loop only.
type streams struct {
	reader  *hub.Reader
	live    roster // caught up, or to be served by the pass that runs
	waiting roster // the feed is not open yet
	idle    roster // personal, with nothing to write until the feed has something new
	reading roster // personal, waiting for history
	quiet   roster // filtered, with everything that is for them
	matched roster // filtered, for which the pass that runs found something
	matcher matcher
	n       int // all of them, those in Loop.lagging too

	passing bool          // a pass runs: the loop's list of passes holds it
	upTo    int64         // the log's head when it began
	again   bool          // marked while the pass ran: run another
	beating bool          // the pass that runs sends heartbeats to those that wait
	beatAt  time.Duration // when the last such pass began

	// The last answer of reader.Records: nearly every stream of a pass asks
	// for the same.
	from, to int64
	records  int
}

// begin begins a pass.
func (s *streams) begin(now time.Duration) {
	s.passing, s.again = true, false
	s.upTo = s.reader.Head()
	s.live.rewind()
	s.waiting.rewind()
	s.idle.rewind()
	s.reading.rewind()
	s.quiet.rewind()
	s.matched.rewind()
	if s.matcher.table.Len() > 0 {
		s.matcher.end = s.reader.LabelHead()
	}
	if s.beating = s.beatAt == 0 || now-s.beatAt >= beatEvery; s.beating {
		s.beatAt = now
	}
}

// count returns how many records' frames begin in the log from from to to.
func (s *streams) count(from, to int64) int {
	if from != s.from || to != s.to {
		s.from, s.to, s.records = from, to, s.reader.Records(from, to)
	}
	return s.records
}
