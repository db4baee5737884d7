package hub

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/testkit"
)

// otherTopic is a history whose brokers know only a newer topic of the name.
type otherTopic struct{}

func (otherTopic) Read(context.Context, string, frame.TopicID, int32, int64, func(*frame.Record)) (Span, error) {
	return Span{}, ErrRecreated
}

func (otherTopic) Bounds(context.Context, string, frame.TopicID) ([]Bound, error) {
	return nil, ErrRecreated
}

func (otherTopic) Since(context.Context, string, frame.TopicID, int64) ([]Bound, error) {
	return nil, ErrRecreated
}

// TestIDOfANewerTopic: a client was told of the new topic by another node and
// comes here before this node has noticed. It waits, and goes on where it was:
// it is not told a second time, and gets nothing twice.
//
// It happened when streams moved between two nodes within the seconds in
// which a topic is re-created; single nodes never see it.
func TestIDOfANewerTopic(t *testing.T) {
	opts := testOptions
	opts.History, opts.Replays, opts.ReplayMax, opts.ReplayScan = otherTopic{}, 1, 1000, 1<<20
	g := newRig(t, opts, "t")
	ctx, cancel := context.WithCancel(t.Context())
	g.hub.replays.start(ctx)
	t.Cleanup(func() { cancel(); g.hub.replays.stop() })
	s := g.sinks[0]
	s.Open(topicID(1), parts(100, 100))

	at, first := g.resume("v1:0-1.1-0" + tagOf("t", 2))
	if at.Own == nil || first != "" {
		t.Fatalf("placed at %+v with first block %q", at, first)
	}
	defer at.Own.Close()
	now := time.Unix(1000, 0)
	step := func() (string, OwnState) {
		b, state := at.Own.Step(nil, 1<<20, now)
		return string(b), state
	}
	if b, state := step(); b != "" || state != OwnReading {
		t.Fatalf("begins with %q, state %v", b, state)
	}
	for deadline := time.After(10 * time.Second); len(g.box.TakeOwn(nil)) == 0; {
		select {
		case <-deadline:
			t.Fatal("no answer")
		case <-time.After(time.Millisecond):
		}
	}
	if b, state := step(); b != "" || state != OwnIdle {
		t.Fatalf("goes on with %q, state %v, before this node knows the topic", b, state)
	}

	s.Recreated(topicID(2), parts(0, 0))
	produce(s, 0, 0, 4)
	produce(s, 1, 0, 2)
	b, state := step()
	if first := "id: v1:0-1.1-0" + tagOf("t", 2) + "\n\n"; !strings.HasPrefix(blocks([]byte(b)), first) {
		t.Errorf("goes on with %q, want its id first, %q", b, first)
	}
	var all []string
	for _, e := range events(t, []byte(b)) {
		all = append(all, e.Type+" "+e.Data)
	}
	if got := strings.Join(append(all, g.values(at.Own.Place())), " then "); state != OwnShared || got != "message 0/2 then message 0/3 then 1/1" {
		t.Errorf("gets %q, state %v", got, state)
	}
	if n := g.feed.Snapshot().Stats.Resyncs[frame.Recreated]; n != 0 {
		t.Errorf("%d resyncs are counted", n)
	}
}

// fixedBounds is a history that knows bounds and has nothing to read.
type fixedBounds []Bound

func (fixedBounds) Read(context.Context, string, frame.TopicID, int32, int64, func(*frame.Record)) (Span, error) {
	return Span{}, context.DeadlineExceeded
}

func (b fixedBounds) Bounds(context.Context, string, frame.TopicID) ([]Bound, error) { return b, nil }

func (b fixedBounds) Since(context.Context, string, frame.TopicID, int64) ([]Bound, error) {
	return b, nil
}

// TestAheadInOnePartition: while a stream is ahead of this node in one
// partition, it gets the records of another. That the brokers listed that one
// before these records does not mean that they are gone.
//
// It happened when a broker was away, so that the listing took seconds: the
// end in it was older than what the node had sent meanwhile.
func TestAheadInOnePartition(t *testing.T) {
	opts := testOptions
	opts.History, opts.Replays, opts.ReplayMax, opts.ReplayScan = fixedBounds{{0, 0, 5}, {1, 0, 60}}, 1, 1000, 1<<20
	g := newRig(t, opts, "t")
	ctx, cancel := context.WithCancel(t.Context())
	g.hub.replays.start(ctx)
	t.Cleanup(func() { cancel(); g.hub.replays.stop() })
	s := g.sinks[0]
	s.Open(topicID(1), parts(10, 40))
	at, _ := g.resume("v1:0-9.1-49" + tagOf("t", 1))
	if at.Own == nil {
		t.Fatalf("placed at %+v", at)
	}
	defer at.Own.Close()
	produce(s, 0, 10, 12)
	now := time.Unix(1000, 0)
	b, state := at.Own.Step(nil, 1<<20, now)
	if got := events(t, b); len(got) != 2 || state != OwnIdle {
		t.Fatalf("gets %v, state %v", got, state)
	}
	now = now.Add(aheadGrace)
	if b, state := at.Own.Step(nil, 1<<20, now); len(b) > 0 || state != OwnReading {
		t.Fatalf("gets %q, state %v, when it has waited", b, state)
	}
	for deadline := time.After(10 * time.Second); len(g.box.TakeOwn(nil)) == 0; {
		select {
		case <-deadline:
			t.Fatal("no answer")
		case <-time.After(time.Millisecond):
		}
	}
	if b, state := at.Own.Step(nil, 1<<20, now); len(b) > 0 || state != OwnIdle {
		t.Errorf("gets %q, state %v, though nothing is lost", b, state)
	}
}

// TestCutAtTheBrokersEnd: a position beyond the brokers' end goes on there, also
// where this node has not read that far yet: what lies between was delivered.
func TestCutAtTheBrokersEnd(t *testing.T) {
	opts := testOptions
	opts.History, opts.Replays, opts.ReplayMax, opts.ReplayScan = fixedBounds{{0, 0, 45}}, 1, 1000, 1<<20
	g := newRig(t, opts, "t")
	ctx, cancel := context.WithCancel(t.Context())
	g.hub.replays.start(ctx)
	t.Cleanup(func() { cancel(); g.hub.replays.stop() })
	s := g.sinks[0]
	s.Open(topicID(1), parts(40))
	at, _ := g.resume("v1:0-49" + tagOf("t", 1))
	if at.Own == nil {
		t.Fatalf("placed at %+v", at)
	}
	defer at.Own.Close()
	now := time.Unix(1000, 0)
	var got []byte
	step := func() (state OwnState) {
		b, state := at.Own.Step(nil, 1<<20, now)
		got = append(got, b...)
		return state
	}
	step()
	now = now.Add(aheadGrace)
	testkit.Eventually(t, 20*time.Second, "the brokers' end is told", func() bool { step(); return len(got) > 0 })
	produce(s, 0, 40, 48)
	if state := step(); state != OwnShared {
		t.Errorf("then state %v", state)
	}
	all := events(t, append(got, g.rest(at.Own.Place())...))
	var told []string
	for _, e := range all {
		told = append(told, e.Data+" "+e.LastEventID)
	}
	T := tagOf("t", 1)
	want := []string{
		`{"reason":"truncated","topics":{"t":[{"partition":0,"from":45,"to":49}]}} v1:0-44` + T,
		"0/45 v1:0-45" + T, "0/46 v1:0-46" + T, "0/47 v1:0-47" + T,
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestTooFarKeepsWhatIsAhead: a stream that lacks too much of one partition goes
// on at its end; in another, of which it has more than this node, it stays.
func TestTooFarKeepsWhatIsAhead(t *testing.T) {
	s := withBrokers(t, 30)
	s.hub.opts.ReplayMax = 50
	tags := tagOf("a", 1) + "," + tagOf("b", 2) + "," + tagOf("c", 3)
	at, _ := s.r.Attach(Start{Position: id(t, "v1:0-40.1-209.7-3"+tags)}, 1000, nil)
	if at.Own == nil {
		t.Fatalf("placed at %+v", at)
	}
	defer at.Own.Close()
	var got []byte
	for !strings.Contains(string(got), "event: resync") {
		got = append(got, s.next(at.Own)...)
	}
	all := events(t, got)
	last := all[len(all)-1]
	want := `{"reason":"too-far","topics":{"a":[{"partition":0,"from":91,"to":104}]}}`
	if last.Data != want || last.LastEventID != "v1:0-104.1-209.7-3"+tags {
		t.Errorf("told %s at %s, want %s where it was ahead", last.Data, last.LastEventID, want)
	}
}

// TestIDOfATopicThatSeemedMissing: a broker denied for a moment that the topic
// exists (it had just taken over), and a client came meanwhile. When the topic
// is there after all the client goes on where it was; were it another one of
// the name, it would be told.
func TestIDOfATopicThatSeemedMissing(t *testing.T) {
	for _, c := range []struct {
		name string
		id   byte   // of the topic that appears
		want string // the events
	}{
		{"the same", 1, "0/3"},
		{"another", 2, "resync"},
	} {
		g := newRig(t, testOptions, "t")
		s := g.sinks[0]
		s.Open(frame.TopicID{}, nil)
		at, first := g.resume("v1:0-2" + tagOf("t", 1))
		if id, _, _ := strings.Cut(first, "\n"); at.Own == nil || id != "id: v1:0-2"+tagOf("t", 1) {
			t.Fatalf("%s: placed at %+v with first block %q", c.name, at, first)
		}
		s.Open(topicID(c.id), nil)
		s.Advance(0, 0)
		produce(s, 0, 0, 4)
		s.Flush(nil)
		b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
		got := string(b)
		if state == OwnShared {
			place := at.Own.Place()
			more, _ := g.r.Read(place)
			got += string(more)
		}
		at.Own.Close()
		switch {
		case c.want == "resync" && !strings.Contains(got, "event: resync"),
			c.want == "0/3" && (strings.Contains(got, "event: resync") || strings.Count(got, "data: ") != 1 || !strings.Contains(got, "id: v1:0-3"+tagOf("t", 1))):
			t.Errorf("%s: got %q, state %d, want %s", c.name, got, state, c.want)
		}
	}
}

// TestCutInMidStep: what is cut while a stream is between two looks at the feed
// is told before it gets what was written there anew. A Step takes note of
// losses first and of the log last, and the log may have been cut and grown
// again in between; no test got between the two.
func TestCutInMidStep(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(40))
	produce(s, 0, 40, 50)
	at, _ := g.resume("v1:0-47.1-9" + tagOf("t", 1)) // partition 1 is not here yet
	if at.Own == nil {
		t.Fatalf("placed at %+v", at)
	}
	defer at.Own.Close()
	s.Lost(frame.Truncated, []frame.Range{{Topic: "t", From: 45, To: 49}}, parts(45))
	produce(s, 0, 45, 55)
	now := time.Unix(1000, 0)
	if b, state := at.Own.fromLog(nil, 1<<20, now); len(b) > 0 || state != OwnMore {
		t.Errorf("gets %q, state %v", b, state)
	}
	b, _ := at.Own.Step(nil, 1<<20, now)
	if all := events(t, b); len(all) != 11 || all[0].Type != "resync" || all[1].Data != "0/45" {
		t.Errorf("then gets %v", all)
	}
}

// TestExpiredButInTheLog: what the brokers no longer hold and this node still
// does is not lost.
func TestExpiredButInTheLog(t *testing.T) {
	opts := testOptions
	opts.History, opts.Replays, opts.ReplayMax, opts.ReplayScan = fixedBounds{{0, 60, 80}, {1, 20, 50}}, 1, 1000, 1<<20
	g := newRig(t, opts, "t")
	ctx, cancel := context.WithCancel(t.Context())
	g.hub.replays.start(ctx)
	t.Cleanup(func() { cancel(); g.hub.replays.stop() })
	s := g.sinks[0]
	s.Open(topicID(1), parts(40, 50))
	produce(s, 0, 40, 80)
	at, _ := g.resume("v1:0-44.1-9" + tagOf("t", 1))
	if at.Own == nil {
		t.Fatalf("placed at %+v", at)
	}
	defer at.Own.Close()
	var got []byte
	testkit.Eventually(t, 20*time.Second, "the brokers' beginning is told", func() bool {
		b, _ := at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
		got = append(got, b...)
		return len(got) > 0
	})
	want := `{"reason":"expired","topics":{"t":[{"partition":1,"from":10,"to":19}]}}`
	if all := events(t, got); len(all) != 1 || all[0].Data != want {
		t.Errorf("told %v, want %s", all, want)
	}
}

// TestTooManyLosses: a personal stream that did not look while more was lost than
// is remembered begins again.
func TestTooManyLosses(t *testing.T) {
	for n, want := range map[int]frame.Reason{lossesMax: frame.Truncated, lossesMax + 1: frame.UnknownID} {
		g := newRig(t, testOptions, "t")
		s := g.sinks[0]
		s.Open(topicID(1), parts(100))
		at, _ := g.resume("v1:0-104" + tagOf("t", 1)) // ahead of this node
		for i := range int64(n) {
			s.Lost(frame.Truncated, []frame.Range{{Topic: "t", From: 99 - i, To: 99 - i}}, parts(99-i))
		}
		b, _ := at.Own.Step(nil, 1<<20, time.Unix(1000, 0))
		at.Own.Close()
		all := events(t, b)
		last := all[len(all)-1]
		if !strings.Contains(last.Data, string(want)) || last.LastEventID != g.latest() {
			t.Errorf("%d losses: told %v, want %s at %s", n, all, want, g.latest())
		}
	}
}

// TestAheadOfWhatIsFlushed: a personal stream that has records of a round which
// is not over waits for its end; the place where that begins is none for it.
func TestAheadOfWhatIsFlushed(t *testing.T) {
	g := newRig(t, testOptions, "t")
	s := g.sinks[0]
	s.Open(topicID(1), parts(40))
	at, _ := g.resume("v1:0-44" + tagOf("t", 1))
	defer at.Own.Close()
	for o := int64(40); o < 50; o++ {
		s.Append(0, []frame.Record{record(0, o)})
	}
	if b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0)); len(b) > 0 || state != OwnIdle {
		t.Fatalf("gets %q, state %v", b, state)
	}
	s.Flush(nil)
	if b, state := at.Own.Step(nil, 1<<20, time.Unix(1000, 0)); len(b) > 0 || state != OwnShared {
		t.Fatalf("then gets %q, state %v", b, state)
	}
	if got := g.values(at.Own.Place()); got != "0/45 0/46 0/47 0/48 0/49" {
		t.Errorf("goes on with %s", got)
	}
}

func (otherTopic) Cleanup(context.Context, string) (Cleanup, error) {
	return Cleanup{Compacted: true, DeleteRetention: time.Hour}, nil
}

func (fixedBounds) Cleanup(context.Context, string) (Cleanup, error) {
	return Cleanup{Compacted: true, DeleteRetention: time.Hour}, nil
}
