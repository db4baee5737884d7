package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"tailcast/admin"
	"tailcast/config"
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
	st := g.tail.Status()
	st.Topics = slices.DeleteFunc(st.Topics, func(t kafkatail.TopicStatus) bool { return !g.literal[t.Name] })
	return errors.Join(draining, st.Ready(time.Now()), g.keysReady(), g.guard.Ready())
}

// keysReady says whose snapshots are not there yet. One that is refused is no
// reason: every node would refuse it, and their other routes are served.
func (g *gateway) keysReady() error {
	var errs []error
	for _, sv := range g.served {
		if sv.feed == nil || sv.route.Start.From != config.StartSnapshot {
			continue
		}
		if s, _ := sv.feed.Keys(); s.Loading && s.Refusal == "" {
			errs = append(errs, fmt.Errorf("the snapshot of %s is being loaded", sv.route.Path))
		}
	}
	return errors.Join(errs...)
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
		Closed: l.Closed, SlowDropped: admin.Counts{}, Shed: l.Shed, Responses: admin.Counts{},
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
	for _, sv := range g.served {
		r := sv.route
		if at, ok := place[sv.feed]; ok && sv.feed != nil { // two routes, one feed: it counts once
			s.Feeds[at].Route += " " + r.Host + r.Path
			continue
		}
		f := admin.FeedStats{Route: r.Host + r.Path, Topics: r.Topics, Format: formatName(r.Format.Envelope), Feeds: 1}
		var stats hub.Stats
		if sv.feed == nil {
			lot := sv.lot.Snapshot()
			f.Feeds, f.Subscribers, f.LogBytes = lot.Feeds, lot.Streams, lot.LogBytes
			s.FeedsRefused += lot.Refused
			stats = lot.Stats
		} else {
			place[sv.feed] = len(s.Feeds)
			snap := sv.feed.Snapshot()
			f.Subscribers, f.LogBytes, f.LogStart, f.LogHead, f.Position = snap.Streams, snap.LogBytes, snap.First, snap.Head, snap.ID
			f.Snapshot = keysStats(sv.feed)
			stats = snap.Stats
		}
		f.Records = stats.Records
		s.Feeds = append(s.Feeds, f)
		addStats(&s, &stats)
	}
	return s
}

// addStats adds the counts of one feed, or of those of one route.
func addStats(s *admin.HubStats, of *hub.Stats) {
	s.Skipped += of.Skipped
	s.Dropped += of.Dropped
	s.Replaced += of.Replaced
	s.NamesRefused += of.Unnamed
	s.Keyless += of.Keyless
	s.Shut += of.Shut
	s.Replays["log"] += of.Behind
	s.Replays["kafka"] += of.Older
	for reason, n := range of.Resyncs {
		s.Resyncs[string(reason)] += n
	}
}

func keysStats(f *hub.Feed) *admin.SnapshotStats {
	s, ok := f.Keys()
	if !ok {
		return nil
	}
	return &admin.SnapshotStats{Loading: s.Loading, Refused: s.Refusal, Keys: s.Keys, Deletes: s.Deletes, Bytes: s.Bytes}
}

func (g *gateway) kafkaStats() admin.KafkaStats {
	st := g.tail.Status()
	s := admin.KafkaStats{Connected: st.Connected, Error: st.Error, Fetches: st.Counters.Fetches}
	s.Others.Records = st.Counters.Records
	for _, t := range st.Topics {
		if !g.literal[t.Name] { // of the names that requests make up there is no end
			s.Others.Topics++
			s.Others.Lag += t.Lag
			continue
		}
		s.Others.Records -= t.Records
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
