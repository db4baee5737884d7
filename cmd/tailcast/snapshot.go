package main

import (
	"errors"
	"strconv"
	"time"

	"tailcast/admin"
	"tailcast/hub"
	"tailcast/kafkatail"
	"tailcast/loop"
)

var _ admin.Source = (*gateway)(nil)

// Ready says why balancers should send nobody here.
func (g *gateway) Ready() error {
	var draining error
	if g.draining.Load() {
		draining = errors.New("draining")
	}
	return errors.Join(draining, g.tail.Status().Ready(time.Now()), g.guard.Ready())
}

// Snapshot reads every room once.
func (g *gateway) Snapshot() admin.Snapshot {
	s := admin.Snapshot{Kafka: g.kafkaStats(), Hub: g.hubStats()}
	guards := g.guard.Stats()
	s.Guards = admin.GuardStats{Tokens: guards.Tokens, Challenges: guards.Challenges, Renewals: guards.Renewals}
	accepted, refused := g.loops.Accepted()
	s.Accept = admin.AcceptStats{Accepted: accepted, Rejected: admin.Counts(refused)}
	now := time.Now()
	for _, l := range g.loops.Stats() {
		s.Loops = append(s.Loops, loopStats(l, now))
	}
	return s
}

func loopStats(l loop.Stats, now time.Time) admin.LoopStats {
	s := admin.LoopStats{
		Connections: l.Connections, Streams: l.Streams, Lagging: l.Lagging,
		Turns:      l.Turns,
		EventsSent: l.Events, BytesSent: l.Bytes,
		Closed: l.Closed, SlowDropped: admin.Counts{}, Responses: admin.Counts{},
		Latency:         admin.Histogram{Bounds: loop.LatencyBounds(), Counts: l.Latency, Sum: l.LatencySum},
		LatencyNegative: l.Negative,
	}
	if !l.Turned.IsZero() {
		s.SinceTurn = now.Sub(l.Turned)
	}
	for _, why := range loop.SlowReasons {
		s.SlowDropped[why] = l.Closed[why]
	}
	for status, n := range l.Answers {
		s.Responses[strconv.Itoa(status)] = n
	}
	return s
}

func (g *gateway) hubStats() admin.HubStats {
	s := admin.HubStats{Resyncs: admin.Counts{}, Replays: admin.Counts{}}
	place := map[*hub.Feed]int{}
	for i, f := range g.feeds {
		r := g.cfg.Routes[i]
		if at, ok := place[f]; ok { // two routes, one feed: it counts once
			s.Feeds[at].Route += " " + r.Path
			continue
		}
		place[f] = len(s.Feeds)
		snap := f.Snapshot()
		s.Feeds = append(s.Feeds, admin.FeedStats{
			Route: r.Path, Topics: snap.Topics, Format: formatName(r.Format.Envelope), Subscribers: snap.Streams,
			Records: snap.Stats.Records, LogBytes: snap.LogBytes, LogStart: snap.First, LogHead: snap.Head,
			Position: snap.ID,
		})
		s.Skipped += snap.Stats.Skipped
		s.Dropped += snap.Stats.Silent
		s.Replaced += snap.Stats.Replaced
		s.NamesRefused += snap.Stats.Unnamed
		s.Replays["log"] += snap.Stats.Behind
		s.Replays["kafka"] += snap.Stats.Older
		for reason, n := range snap.Stats.Resyncs {
			s.Resyncs[string(reason)] += n
		}
	}
	return s
}

func (g *gateway) kafkaStats() admin.KafkaStats {
	st := g.tail.Status()
	s := admin.KafkaStats{Connected: st.Connected, Error: st.Error}
	for _, t := range st.Topics {
		ts := admin.TopicStats{Topic: t.Name, Open: t.Opened, Error: t.Error, Records: t.Records}
		if t.State != kafkatail.Tailing && ts.Error == "" {
			ts.Error = string(t.State)
		}
		for _, p := range t.Partitions {
			ts.Partitions = append(ts.Partitions, admin.PartitionStats{ID: p.ID, Next: p.Next, End: p.End})
		}
		s.Topics = append(s.Topics, ts)
	}
	return s
}

// formatName is the value of a route's format key.
func formatName(envelope bool) string {
	if envelope {
		return "envelope"
	}
	return "raw"
}
