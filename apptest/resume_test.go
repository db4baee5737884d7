package apptest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tailcast/internal/testkit"
)

func TestResumeAfterCuts(t *testing.T) {
	t.Parallel()
	resumeAfterCuts(t, started(t, 3, "cuts"), "cuts", 36)
}

// resumeAfterCuts has clients whose connections break at random bytes, under
// load, and come back with the id they have: nothing is missing or comes
// twice, and nobody is told to start anew.
func resumeAfterCuts(t *testing.T, b *broker, topic string, clients int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	b.produce(topic, 0, 5) // before anybody comes
	s := ready(t, b, "--route", "/events="+topic)
	fs := follow(t, s, "/events", 3, clients, func(i int, f *follower) { f.cuts = rand.New(rand.NewPCG(seed, uint64(i))) })
	fs.each(t, "first stream", func(f *follower) bool { return f.streams.Load() > 0 })
	l := b.load(topic, 3, 300)
	fs.each(t, "40 streams and 500 records", func(f *follower) bool { return f.streams.Load() >= 40 && f.records.Load() >= 500 })
	l.end(t)
	fs.wait(t)
	records, streams := int64(0), int64(0)
	for i, f := range fs.all {
		if len(f.reasons) > 0 {
			t.Errorf("follower %d: resyncs %q", i, f.reasons)
		}
		records += f.records.Load()
		streams += f.streams.Load()
	}
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
// nothing in memory then, so every client is told once that something is
// missing, and gets every record from there on.
func resumeAfterKill(t *testing.T, b *broker, topic string, clients int) {
	s := ready(t, b, "--route", "/events="+topic)
	fs := follow(t, s, "/events", 3, clients, nil)
	fs.each(t, "first stream", func(f *follower) bool { return f.streams.Load() > 0 })
	l := b.load(topic, 3, 300)
	fs.each(t, "50 records", func(f *follower) bool { return f.records.Load() >= 50 })
	s.Kill(t)
	missed := l.acked.Load() + 30
	testkit.Eventually(t, patience, "records that nobody serves", func() bool { return l.acked.Load() >= missed })
	s.Again(t)
	fs.each(t, "resync", func(f *follower) bool { return f.resyncs.Load() > 0 })
	more := fs.all[0].records.Load() + 50
	fs.each(t, "50 more records", func(f *follower) bool { return f.records.Load() >= more })
	l.end(t)
	fs.wait(t)
	for i, f := range fs.all {
		if !slices.Equal(f.reasons, []string{"unknown"}) {
			t.Errorf("follower %d: resyncs %q, want one", i, f.reasons)
		}
	}
	if n := s.Metric(t, `tailcast_resyncs_total{reason="unknown"}`); n != float64(clients) {
		t.Errorf("%v resyncs are counted, want %d", n, clients)
	}
}
