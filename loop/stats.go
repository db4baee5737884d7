package loop

import (
	"sync/atomic"
	"time"
)

// latencyBounds are the upper bounds of the produce-to-write buckets in
// milliseconds: Kafka's timestamps have no finer grain.
var latencyBounds = [...]int64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000}

// statuses are the answers this room gives. Anything else is counted as 400.
var statuses = [...]int{
	200, 204, 400, 401, 403, 404, 405, 408, 409, 410, 413, 414, 415, 417, 431, 501, 503, 505,
}

// counts are a loop's counters, plain because only the loop touches them.
type counts struct {
	turns                         uint64
	events, bytes                 uint64
	connections, streams, lagging int
	closed                        [closeReasons]uint64
	answers                       [len(statuses)]uint64
	shed                          [shedReasons]uint64
	latency                       [len(latencyBounds) + 1]uint64
	latencySum                    uint64 // milliseconds
	negative                      uint64 // records from the future, not in latency
}

func (n *counts) answered(status int) {
	for i, s := range statuses {
		if s == status {
			n.answers[i]++
			return
		}
	}
	n.answers[2]++
}

// observe counts the time from each record's timestamp, in milliseconds since
// 1970, to now. Records without a timestamp don't count, and those from the
// future are counted apart.
func (n *counts) observe(times []int64, now int64) {
	for _, t := range times {
		if t < 0 {
			continue
		}
		d := now - t
		if d < 0 {
			n.negative++
			continue
		}
		i := 0
		for i < len(latencyBounds) && d > latencyBounds[i] {
			i++
		}
		n.latency[i]++
		n.latencySum += uint64(d)
	}
}

// stats are the counts as other goroutines may read them, as of the last
// turn or event.
type stats struct {
	turned      atomic.Int64 // nanoseconds since the loop began: the machine's clock may be set
	connections atomic.Int64
	streams     atomic.Int64
	lagging     atomic.Int64
	turns       atomic.Uint64
	events      atomic.Uint64
	bytes       atomic.Uint64
	closed      [closeReasons]atomic.Uint64
	answers     [len(statuses)]atomic.Uint64
	shed        [shedReasons]atomic.Uint64
	latency     [len(latencyBounds) + 1]atomic.Uint64
	latencySum  atomic.Uint64
	negative    atomic.Uint64
}

// publish copies n; now is since the loop began. The arrays are copied once a
// millisecond at most: they cost more than a small event.
func (s *stats) publish(n *counts, now time.Duration) {
	s.connections.Store(int64(n.connections))
	s.streams.Store(int64(n.streams))
	s.lagging.Store(int64(n.lagging))
	s.turns.Store(n.turns)
	s.events.Store(n.events)
	s.bytes.Store(n.bytes)
	if at := int64(now); at-s.turned.Load() >= int64(time.Millisecond) {
		s.turned.Store(at)
		s.publishArrays(n)
	}
}

func (s *stats) publishArrays(n *counts) {
	for i := range n.closed {
		s.closed[i].Store(n.closed[i])
	}
	for i := range n.answers {
		s.answers[i].Store(n.answers[i])
	}
	for i := range n.shed {
		s.shed[i].Store(n.shed[i])
	}
	for i := range n.latency {
		s.latency[i].Store(n.latency[i])
	}
	s.latencySum.Store(n.latencySum)
	s.negative.Store(n.negative)
}

// Stats are the counts of one loop.
type Stats struct {
	Turned      time.Time // when the last turn or event ended, by the monotonic clock; zero before the first
	Connections int
	Streams     int
	Lagging     int
	Turns       uint64
	Events      uint64
	Bytes       uint64
	Closed      map[string]uint64 // by reason
	Answers     map[int]uint64    // by status
	Shed        map[string]uint64 // streams ended right behind their head, by reason
	Latency     []uint64          // by bucket of LatencyBounds, the last one above all
	LatencySum  float64           // seconds
	Negative    uint64            // records from the future, not in Latency
}

// LatencyBounds returns the upper bounds of Stats.Latency in seconds.
func LatencyBounds() []float64 {
	var s []float64
	for _, ms := range latencyBounds {
		s = append(s, float64(ms)/1000)
	}
	return s
}

// snapshot returns the counts of a loop that began at a time.
func (s *stats) snapshot(began time.Time) Stats {
	var turned time.Time
	if at := s.turned.Load(); at != 0 {
		turned = began.Add(time.Duration(at))
	}
	out := Stats{
		Turned:      turned,
		Connections: int(s.connections.Load()), Streams: int(s.streams.Load()), Lagging: int(s.lagging.Load()),
		Turns: s.turns.Load(), Events: s.events.Load(), Bytes: s.bytes.Load(),
		Closed: map[string]uint64{}, Answers: map[int]uint64{}, Shed: map[string]uint64{},
		LatencySum: float64(s.latencySum.Load()) / 1000, Negative: s.negative.Load(),
	}
	for i := range s.closed {
		out.Closed[closeNames[i]] = s.closed[i].Load()
	}
	for i := range s.answers {
		out.Answers[statuses[i]] = s.answers[i].Load()
	}
	for i := range s.shed {
		out.Shed[shedNames[i]] = s.shed[i].Load()
	}
	for i := range s.latency {
		out.Latency = append(out.Latency, s.latency[i].Load())
	}
	return out
}

// SlowReasons are the close reasons of dropped streams.
var SlowReasons = []string{closeNames[closeLag], closeNames[closeStall], closeNames[closeOverwritten]}
