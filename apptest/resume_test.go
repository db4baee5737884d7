package apptest

import (
	"math/rand/v2"
	"testing"

	"tailcast/internal/testkit"
)

func TestResumeAfterCuts(t *testing.T) {
	t.Parallel()
	resumeAfterCuts(t, started(t, 3, "cuts"), "cuts", 36, 1)
}

func TestResumeOnOtherNodes(t *testing.T) {
	t.Parallel()
	resumeAfterCuts(t, started(t, 3, "nodes"), "nodes", 24, 2)
}

// resumeAfterCuts has clients whose connections break at random bytes, under
// load, and come back with the id they have, to the same node or to one node
// after the other: nothing is missing or comes twice, and nobody is told to
// start anew.
func resumeAfterCuts(t *testing.T, b *broker, topic string, clients, nodes int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b.produce(topic, 0, 5) // before anybody comes
	var addrs []string
	var s *testkit.Server
	for range nodes {
		s = ready(t, b, "--route", "/events="+topic)
		addrs = append(addrs, s.Addr)
	}
	fs := follow(t, s, "/events", 3, clients, func(i int, f *follower) {
		f.addrs, f.cuts = addrs, rand.New(rand.NewPCG(seed, uint64(i)))
	})
	fs.each(t, "first stream", func(f *follower) bool { return f.streams.Load() > 0 })
	l := b.load(topic, 3, 300)
	fs.each(t, "40 streams and 500 records", func(f *follower) bool { return f.streams.Load() >= 40 && f.records.Load() >= 500 })
	l.end(t)
	fs.wait(t)
	fs.wantResyncs(t)
	records, streams := fs.totals()
	t.Logf("%d clients read %d records over %d streams", clients, records, streams)
	if n := s.Metric(t, `tailcast_replays_total{from="log"}`); n == 0 {
		t.Error("no stream is counted as begun behind the live end")
	}
}

func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	resumeAfterKill(t, started(t, 3, "kill"), "kill", 24)
}

// resumeAfterKill kills the gateway under load and starts it again. It has
// nothing in memory then, and reads what its clients lack from the broker.
func resumeAfterKill(t *testing.T, b *broker, topic string, clients int) {
	s, fs := kill(t, b, topic, clients)
	fs.wantResyncs(t)
	if n := s.Metric(t, `tailcast_replays_total{from="kafka"}`); n == 0 {
		t.Error("no stream is counted as begun with history")
	}
}

func TestResumeAfterKillWithoutHistory(t *testing.T) {
	t.Parallel()
	resumeAfterKillWithoutHistory(t, started(t, 3, "kill"), "kill", 24)
}

// resumeAfterKillWithoutHistory is the same where nothing may be read again:
// every client is told once that something is missing, and gets every record
// from there on.
func resumeAfterKillWithoutHistory(t *testing.T, b *broker, topic string, clients int) {
	s, fs := kill(t, b, topic, clients, "--replay-max", "0")
	fs.wantResyncs(t, "too-far")
	if n := s.Metric(t, `tailcast_resyncs_total{reason="too-far"}`); n != float64(clients) {
		t.Errorf("%v resyncs are counted, want %d", n, clients)
	}
}

// kill has followers of a gateway that is killed under load and started again
// when there are records that it can't have in memory. It returns when all
// have read to the end.
func kill(t *testing.T, b *broker, topic string, clients int, flags ...string) (*testkit.Server, *followers) {
	t.Helper()
	s := ready(t, b, append(flags, "--route", "/events="+topic)...)
	fs := follow(t, s, "/events", 3, clients, nil)
	fs.each(t, "first stream", func(f *follower) bool { return f.streams.Load() > 0 })
	l := b.load(topic, 3, 300)
	fs.each(t, "50 records", func(f *follower) bool { return f.records.Load() >= 50 })
	s.Kill(t)
	missed := l.acked.Load() + 30
	testkit.Eventually(t, patience, "records that nobody serves", func() bool { return l.acked.Load() >= missed })
	s.Again(t)
	fs.each(t, "second stream", func(f *follower) bool { return f.streams.Load() > 1 })
	fs.each(t, "300 records", func(f *follower) bool { return f.records.Load() >= 300 })
	l.end(t)
	fs.wait(t)
	return s, fs
}
