package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/ssetest"
)

// brokers is a history of several topics: what was ever written, and where
// retention has taken it to.
type brokers struct {
	mu    sync.Mutex
	ids   map[string]frame.TopicID
	ends  map[string][]int64
	start map[string][]int64
	asked map[string]int // questions for bounds, by topic
	word  string         // that values end in, now
	since int64          // the time that was asked for last
}

func (b *brokers) Read(_ context.Context, topic string, id frame.TopicID, partition int32, from int64, each func(*frame.Record)) (Span, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ids[topic] != id {
		return Span{}, ErrRecreated
	}
	if start := b.start[topic][partition]; from < start {
		return Span{}, &ExpiredError{start}
	}
	to := min(from+7, b.ends[topic][partition])
	for o := from; o < to; o++ {
		each(&frame.Record{Topic: topic, Partition: partition, Offset: o, Key: severalKey(o), Value: fmt.Appendf(nil, "%s/%d/%d%s", topic, partition, o, b.word)})
	}
	return Span{Start: from, Next: to, Bytes: int(to - from)}, nil
}

func (b *brokers) Bounds(_ context.Context, topic string, id frame.TopicID) ([]Bound, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[topic]++
	if b.ids[topic] != id {
		return nil, ErrRecreated
	}
	var all []Bound
	for p, end := range b.ends[topic] {
		if end != frame.Unknown {
			all = append(all, Bound{int32(p), b.start[topic][p], end})
		}
	}
	return all, nil
}

// Since takes an offset for a record's time.
func (b *brokers) Since(ctx context.Context, topic string, id frame.TopicID, millis int64) ([]Bound, error) {
	all, err := b.Bounds(ctx, topic, id)
	b.mu.Lock()
	b.since = millis
	b.mu.Unlock()
	for i := range all {
		all[i].Start = min(max(all[i].Start, millis), all[i].End)
	}
	return all, err
}

// several is a feed of three topics in front of brokers.
type several struct {
	*rig
	brokers *brokers
	names   []string
}

func newSeveral(t *testing.T) *several {
	s := &several{names: []string{"a", "b", "c"}, brokers: &brokers{
		ids: map[string]frame.TopicID{}, ends: map[string][]int64{}, start: map[string][]int64{}, asked: map[string]int{},
	}}
	opts := testOptions
	opts.History, opts.Replays, opts.ReplayMax, opts.ReplayScan = s.brokers, 2, 1000, 1<<20
	s.rig = newRig(t, opts, s.names...)
	ctx, cancel := context.WithCancel(t.Context())
	s.hub.replays.start(ctx)
	t.Cleanup(func() { cancel(); s.hub.replays.stop() })
	return s
}

// open opens a topic at its end, which is that of its partitions.
func (s *several) open(topic int, start int64, ends ...int64) {
	name := s.names[topic]
	s.brokers.ids[name] = topicID(byte(topic + 1))
	s.brokers.ends[name], s.brokers.start[name] = ends, slices.Repeat([]int64{start}, len(ends))
	s.sinks[topic].Open(s.brokers.ids[name], parts(ends...))
}

// severalKey is the key of a record: every tenth is of user 0, and so on.
func severalKey(offset int64) []byte { return fmt.Appendf(nil, "user-%d", offset%10) }

// produce writes to the brokers and the tail.
func (s *several) produce(topic int, partition int32, n int) {
	name := s.names[topic]
	s.brokers.mu.Lock()
	from := s.brokers.ends[name][partition]
	s.brokers.ends[name][partition] += int64(n)
	s.brokers.mu.Unlock()
	for o := from; o < from+int64(n); o++ {
		s.sinks[topic].Append(partition, []frame.Record{{
			Topic: name, Partition: partition, Offset: o, Key: severalKey(o), Value: fmt.Appendf(nil, "%s/%d/%d%s", name, partition, o, s.brokers.word),
		}})
	}
	s.sinks[topic].Flush(nil)
}

// all gives everything that a stream gets from start on.
func (s *several) all(text string) []ssetest.Event {
	s.t.Helper()
	return s.from(Start{Position: id(s.t, text)})
}

// from gives everything that a stream gets.
func (s *several) from(start Start) []ssetest.Event {
	t := s.t
	t.Helper()
	at, first := s.r.Attach(start, 1000, nil)
	if at.Own == nil {
		return events(t, append(first, s.behind(at.Place, at.Label, start.Filter)...))
	}
	defer at.Own.Close()
	return s.steps(at.Own, start, first, OwnMore)
}

// steps gives what a personal stream got and everything that it gets.
func (s *several) steps(o *Own, start Start, got []byte, state OwnState) []ssetest.Event {
	t := s.t
	t.Helper()
	now := time.Unix(1000, 0)
	s.box.Enter()
	defer s.box.Leave()
	for state != OwnShared {
		switch state { //nolint:exhaustive // in the others there is nothing to wait for
		case OwnReading:
			for deadline := time.After(20 * time.Second); len(s.box.TakeOwn(nil)) == 0; {
				select {
				case <-deadline:
					t.Fatal("no answer")
				case <-time.After(time.Millisecond):
				}
			}
		case OwnIdle:
			now = now.Add(aheadGrace)
			if now.Unix() > 2000 {
				t.Fatalf("waits for ever behind %q", got)
			}
		}
		got, state = o.Step(got, 300, now)
	}
	return events(t, append(got, s.behind(o.Place(), o.Label(), start.Filter)...))
}

// behind is what a stream gets from the log.
func (s *several) behind(place, label int64, x *Filter) []byte {
	if x == nil {
		return s.rest(place)
	}
	return matching(s.t, s.r, label, x)
}

// settled gives what a personal stream gets until it is idle, or shared.
func (s *several) settled(o *Own, got []byte) ([]byte, OwnState) {
	s.box.Enter()
	defer s.box.Leave()
	for deadline := time.After(20 * time.Second); ; {
		var state OwnState
		if got, state = o.Step(got, 300, time.Unix(1000, 0)); state == OwnIdle || state == OwnShared {
			return got, state
		}
		select {
		case <-deadline:
			s.t.Fatal("it does not settle")
		case <-time.After(time.Millisecond):
		}
	}
}

// next gives the next frames of a stream.
func (s *several) next(o *Own) []byte {
	s.box.Enter()
	defer s.box.Leave()
	for deadline := time.After(20 * time.Second); ; {
		if b, _ := o.Step(nil, 1, time.Unix(1000, 0)); len(b) > 0 {
			return b
		}
		select {
		case <-deadline:
			s.t.Fatal("nothing comes")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestHistoryOfSeveralTopics: what three topics lack is read from all of them,
// and what retention took of two of them is said at once.
func TestHistoryOfSeveralTopics(t *testing.T) {
	s := newSeveral(t)
	s.open(0, 10, 20, 30)
	s.open(1, 10, 20)
	s.open(2, 10, 40)
	from := "v1:0-4.1-19" + tagOf("a", 1) + ",0-15" + tagOf("b", 2) + ",0-7" + tagOf("c", 3)
	s.produce(2, 0, 2)
	var resyncs []string
	next := map[string]int64{}
	for _, e := range s.all(from) {
		switch {
		case e.Type == "resync":
			resyncs = append(resyncs, e.Data)
		case e.Data != "":
			at := strings.LastIndexByte(e.Data, '/')
			o, _ := strconv.ParseInt(e.Data[at+1:], 10, 64)
			if want, ok := next[e.Data[:at]]; ok && o != want {
				t.Errorf("%s at %d, want %d", e.Data[:at], o, want)
			}
			next[e.Data[:at]] = o + 1
		}
	}
	want := `{"reason":"expired","topics":{"a":[{"partition":0,"from":5,"to":9}],"c":[{"partition":0,"from":8,"to":9}]}}`
	if len(resyncs) != 1 || resyncs[0] != want {
		t.Errorf("resyncs %q, want %q", resyncs, want)
	}
	for at, n := range map[string]int64{"a/0": 20, "a/1": 30, "b/0": 20, "c/0": 42} {
		if next[at] != n {
			t.Errorf("%s ends at %d, want %d", at, next[at], n)
		}
	}
	for _, name := range s.names {
		if s.brokers.asked[name] != 1 {
			t.Errorf("the bounds of %s were asked for %d times", name, s.brokers.asked[name])
		}
	}
}

// TestTopicRecreatedBeforeTheStreamBegins: a stream that waits to hear where it
// begins has nothing of a topic that is made anew meanwhile, so it is not told,
// and begins in the new one by its start policy. In the chaos fleet busy brokers
// had streams with start: earliest wait for seconds; earlier runs had no such
// streams while a topic was made anew.
func TestTopicRecreatedBeforeTheStreamBegins(t *testing.T) {
	s := newSeveral(t)
	s.open(0, 0, 5)
	s.open(1, 0, 5)
	s.open(2, 0, 5)
	for _, c := range []struct {
		policy Policy
		want   int64 // first offset of the new topic
	}{
		{Policy{From: FromEarliest}, 0},
		{Policy{From: FromLast, N: 2}, 6},
	} {
		start := Start{Policy: c.policy}
		at, first := s.r.Attach(start, 1000, nil)
		s.box.Enter()
		got, state := at.Own.Step(first, 300, time.Unix(1000, 0))
		s.box.Leave()
		if state != OwnReading {
			t.Fatalf("the stream is in state %d, not waiting for the brokers", state)
		}
		s.brokers.mu.Lock()
		id := s.brokers.ids["b"]
		id[15]++
		s.brokers.ids["b"], s.brokers.ends["b"] = id, []int64{8}
		s.brokers.mu.Unlock()
		s.sinks[1].Recreated(id, parts(8))
		var of []string
		for _, e := range s.steps(at.Own, start, got, state) {
			if e.Type == "resync" {
				t.Errorf("%+v: a stream that had nothing is told %s", c.policy, e.Data)
			}
			if strings.HasPrefix(e.Data, "b/") {
				of = append(of, e.Data)
			}
		}
		at.Own.Close()
		if want := 8 - int(c.want); len(of) != want || of[0] != fmt.Sprintf("b/0/%d", c.want) {
			t.Errorf("%+v: got %q of the new topic, want those from %d on", c.policy, of, c.want)
		}
	}
}

// TestStartWithoutLeader: a stream that begins before the end stays out of
// the log while a partition is not known here, which the log will have from
// where the node begins with it; resumed or not. Seen with real brokers: a
// snapshot opened in front of a topic's first election lacked a partition.
func TestStartWithoutLeader(t *testing.T) {
	for _, c := range []struct {
		start Start
		want  int64 // first offset of the partition
	}{
		{Start{Policy: Policy{From: FromEarliest}}, 0},
		{Start{Policy: Policy{FromLast, 4}}, 8},
		{Start{Policy: Policy{FromTime, 3}}, 3},
		{Start{}, 10},
		{Start{Position: id(t, "v1:0-5.1-*"+tagOf("a", 1)+","+tagOf("b", 2)+","+tagOf("c", 3)), Policy: Policy{From: FromEarliest}}, 0},
	} {
		s := newSeveral(t)
		s.open(0, 0, 5, frame.Unknown)
		s.open(1, 0)
		s.open(2, 0)
		at, got := s.r.Attach(c.start, 1000, nil)
		if personal := c.start.Policy.From != FromLatest; personal != (at.Own != nil) {
			t.Errorf("%+v: personal is %v", c.start, at.Own != nil)
			continue
		}
		place, state := at.Place, OwnShared
		if at.Own != nil {
			got, state = s.settled(at.Own, got)
			place = at.Own.Place()
		}
		s.brokers.mu.Lock()
		s.brokers.ends["a"][1] = 10
		s.brokers.mu.Unlock()
		s.sinks[0].Open(topicID(1), parts(5, 10))
		s.produce(0, 1, 2)
		var all []ssetest.Event
		if state == OwnShared {
			all = events(t, append(got, s.rest(place)...))
		} else {
			all = s.steps(at.Own, c.start, got, OwnMore)
		}
		if at.Own != nil {
			at.Own.Close()
		}
		next := c.want
		for _, e := range all {
			if o, ok := strings.CutPrefix(e.Data, "a/1/"); ok {
				if o != strconv.FormatInt(next, 10) {
					t.Errorf("%+v: got %s of the partition, want %d", c.start, o, next)
				}
				next++
			}
		}
		if next != 12 {
			t.Errorf("%+v: the partition ends at %d, want 12", c.start, next)
		}
	}
}

// TestAheadInSeveralTopics: a position beyond two topics' ends is cut in both.
func TestAheadInSeveralTopics(t *testing.T) {
	s := newSeveral(t)
	s.open(0, 0, 20)
	s.open(1, 0, 20)
	s.open(2, 0, 20)
	got := s.all("v1:0-25" + tagOf("a", 1) + ",0-19" + tagOf("b", 2) + ",0-30.4-7" + tagOf("c", 3))
	want := `{"reason":"truncated","topics":{"a":[{"partition":0,"from":20,"to":25}],"c":[{"partition":0,"from":20,"to":30},{"partition":4,"from":0,"to":7}]}}`
	if n := len(got); n != 1 || got[0].Type != "resync" || got[0].Data != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// TestSeveralTopicsAtRandom: three topics grow, get partitions and are
// re-created; clients come back with any id that they were told, to a log
// that holds little. Each gets every record that it lacks, in order; of a
// topic that is another one meanwhile all of it.
func TestSeveralTopicsAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { severalAtRandom(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func severalAtRandom(t *testing.T, r *rand.Rand) {
	s := newSeveral(t)
	for i := range s.names {
		s.open(i, 0, slices.Repeat([]int64{5}, 1+r.IntN(3))...)
	}
	var ids []string
	for range 60 {
		i := r.IntN(3)
		name := s.names[i]
		switch n := r.IntN(20); {
		case n < 12:
			s.produce(i, r.Int32N(int32(len(s.brokers.ends[name]))), 1+r.IntN(4))
		case n < 14:
			s.brokers.ends[name], s.brokers.start[name] = append(s.brokers.ends[name], 0), append(s.brokers.start[name], 0)
			s.sinks[i].Advance(int32(len(s.brokers.ends[name])-1), 0)
		case n < 16:
			s.feed.mu.Lock() // the log gives up all that it holds
			for k := range s.feed.parts {
				s.feed.index.parts[k].base = s.feed.parts[k].next
			}
			s.feed.index.reset()
			s.feed.mu.Unlock()
		case n < 17:
			id := s.brokers.ids[name]
			id[15]++
			s.brokers.mu.Lock()
			s.brokers.ids[name], s.brokers.ends[name], s.brokers.start[name] = id, []int64{0}, []int64{0}
			s.brokers.mu.Unlock()
			s.sinks[i].Recreated(id, parts(0))
		}
		ids = append(ids, s.latest())
	}
	for _, from := range ids {
		s.check(from)
	}
}

// check compares what a stream from an id on gets with what was written.
func (s *several) check(from string) {
	t := s.t
	t.Helper()
	next := map[string]int64{}
	resyncs, former := 0, []string{}
	for g, group := range id(t, from) {
		name := s.names[g]
		if group.Tag != frame.MakeTag(name, s.brokers.ids[name]) {
			former = append(former, fmt.Sprintf("%q:[]", name))
			continue
		}
		for _, p := range group.Parts {
			next[fmt.Sprintf("%s/%d", name, p.ID)] = p.Next
		}
	}
	for _, e := range s.all(from) {
		if e.Type == "resync" {
			resyncs++
			if want := `{"reason":"recreated","topics":{` + strings.Join(former, ",") + `}}`; e.Data != want {
				t.Fatalf("from %s: %s, want %s", from, e.Data, want)
			}
			continue
		}
		if e.Data == "" {
			continue
		}
		at := strings.LastIndexByte(e.Data, '/')
		if o, _ := strconv.ParseInt(e.Data[at+1:], 10, 64); o != next[e.Data[:at]] {
			t.Fatalf("from %s: got %s, want offset %d", from, e.Data, next[e.Data[:at]])
		}
		next[e.Data[:at]]++
	}
	for _, name := range s.names {
		for p, end := range s.brokers.ends[name] {
			if at := fmt.Sprintf("%s/%d", name, p); next[at] != end {
				t.Fatalf("from %s: %s ends at %d, want %d", from, at, next[at], end)
			}
		}
	}
	if (len(former) > 0) != (resyncs == 1) || resyncs > 1 {
		t.Fatalf("from %s: %d resyncs, of former topics: %v", from, resyncs, former)
	}
}

func (*brokers) Cleanup(context.Context, string) (Cleanup, error) {
	return Cleanup{Compacted: true, DeleteRetention: time.Hour}, nil
}
