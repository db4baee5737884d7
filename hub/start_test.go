package hub

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/ssetest"
)

// withBrokers is a feed of one topic, whose log begins at 100 and 200 while the
// brokers hold more: from start on.
func withBrokers(t *testing.T, start int64) *several {
	s := newSeveral(t)
	s.open(0, start, 100, 200)
	s.open(1, start)
	s.open(2, start)
	s.produce(0, 0, 5)
	s.produce(0, 1, 5)
	return s
}

// got is what a stream was told, and its records as partition:first-last.
func got(evs []ssetest.Event) string {
	var all []string
	type run struct{ first, last string }
	runs := map[string]*run{}
	var order []string
	for _, e := range evs {
		if e.Type == "resync" {
			all = append(all, e.Data[len(`{"reason":"`):strings.Index(e.Data, `",`)])
			continue
		}
		part, offset, _ := strings.Cut(strings.TrimPrefix(e.Data, "a/"), "/")
		if runs[part] == nil {
			runs[part] = &run{first: offset}
			order = append(order, part)
		}
		runs[part].last = offset
	}
	slices.Sort(order)
	for _, p := range order {
		all = append(all, p+":"+runs[p].first+"-"+runs[p].last)
	}
	return strings.Join(all, " ")
}

// TestStartPolicies: where a stream begins, from memory and from the brokers.
func TestStartPolicies(t *testing.T) {
	tags := "," + tagOf("b", 2) + "," + tagOf("c", 3)
	at := func(pairs string) frame.Position { return id(t, "v1:"+pairs+tagOf("a", 1)+tags) }
	for _, tc := range []struct {
		name  string
		start Start
		want  string
		asked int // questions for bounds of the topic
	}{
		{"latest", Start{}, "", 0},
		{"earliest", Start{Policy: Policy{From: FromEarliest}}, "0:30-104 1:30-204", 2},
		{"last, from memory", Start{Policy: Policy{FromLast, 5}}, "0:100-104 1:200-204", 0},
		{"last", Start{Policy: Policy{FromLast, 20}}, "0:85-104 1:185-204", 2},
		{"more than there is", Start{Policy: Policy{FromLast, 190}}, "0:30-104 1:30-204", 2},
		{"a time", Start{Policy: Policy{FromTime, 90}}, "0:90-104 1:90-204", 2},
		{"a time in memory", Start{Policy: Policy{FromTime, 203}}, "1:203-204", 1},
		{"a time to come", Start{Policy: Policy{FromTime, 1 << 40}}, "", 1},
		{"a time before there were any", Start{Policy: Policy{FromTime, -5}}, "0:30-104 1:30-204", 2},
		{"none, and a foreign id", Start{Foreign: true, Policy: Policy{From: FromEarliest}}, "unknown 0:30-104 1:30-204", 2},
		{"a partition whose place was unknown", Start{Position: at("0-102.1-*"), Policy: Policy{FromTime, 201}}, "0:103-104 1:201-204", 1},
		{"the same, from memory", Start{Position: at("0-102.1-*"), Policy: Policy{FromLast, 2}}, "0:103-104 1:203-204", 0},
		{"a topic that is not in the id", Start{Position: id(t, "v1:"+tagOf("b", 2)), Policy: Policy{FromLast, 2}}, "0:103-104 1:203-204", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := withBrokers(t, 30)
			evs := s.from(tc.start)
			if got := got(evs); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if s.brokers.asked["a"] != tc.asked {
				t.Errorf("the brokers were asked %d times, want %d", s.brokers.asked["a"], tc.asked)
			}
		})
	}
}

// TestStartAgo: so long ago is by the clock of records, whatever a loop takes
// for the time.
func TestStartAgo(t *testing.T) {
	s := withBrokers(t, 30)
	s.from(Start{Policy: Policy{FromAgo, time.Minute.Milliseconds()}})
	want := time.Now().Add(-time.Minute).UnixMilli()
	if off := want - s.brokers.since; off < 0 || off > 30_000 {
		t.Errorf("records are asked for from %d on, want %d", s.brokers.since, want)
	}
}

// TestStartIsBounded: what a client asked for is bounded like a resume, what
// its route gives is not, nor is what a client could have without an id.
func TestStartIsBounded(t *testing.T) {
	earliest, last := Policy{From: FromEarliest}, Policy{FromLast, 60}
	at := id(t, "v1:0-40.1-40"+tagOf("a", 1)+","+tagOf("b", 2)+","+tagOf("c", 3))
	for _, tc := range []struct {
		name  string
		start Start
		want  string
	}{
		{"the route's", Start{Policy: earliest}, "0:30-104 1:30-204"},
		{"the client's", Start{Policy: last, Asked: true}, "too-far 0:45-94"},
		{"the client's, on a route that restarts", Start{Policy: last, Asked: true, Restart: true}, "too-far 0:45-94"},
		{"a resume", Start{Position: at, Policy: last}, "too-far 0:41-90"},
		{"a resume on a route that restarts", Start{Position: at, Policy: last, Restart: true}, "too-far 0:41-104 1:145-204"},
		{"a resume where all may have all", Start{Position: at, Policy: earliest}, "0:41-104 1:41-204"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := withBrokers(t, 30)
			s.hub.opts.ReplayMax = 50
			if got := got(s.from(tc.start)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestStartOfATopicReadWhole: what memory holds from its beginning needs no
// broker, and the stream is shared at once.
func TestStartOfATopicReadWhole(t *testing.T) {
	g := newRig(t, testOptions, "t")
	g.sinks[0].Open(topicID(1), parts(0, 0))
	produce(g.sinks[0], 0, 0, 3)
	for _, p := range []Policy{{From: FromEarliest}, {FromLast, 10}} {
		at, b := g.r.Attach(Start{Policy: p}, 1500, nil)
		if want := "retry: 1500\nid: v1:" + tagOf("t", 1) + "\n\n"; at.Own != nil || !at.Behind || blocks(b) != want {
			t.Errorf("%+v: placed at %+v with %q", p, at, blocks(b))
		}
		if got := g.values(at.Place); got != "0/0 0/1 0/2" {
			t.Errorf("%+v: gets %s", p, got)
		}
	}
}

// TestFirstBlockOfAStart: the place that the brokers have to be asked for is
// told as soon as it is known, with the reason in one block if there is one.
func TestFirstBlockOfAStart(t *testing.T) {
	tags := "," + tagOf("b", 2) + "," + tagOf("c", 3)
	at := func(pairs string) frame.Position { return id(t, "v1:"+pairs+tagOf("a", 1)+tags) }
	for _, tc := range []struct {
		start Start
		first string
		then  string
	}{
		{Start{Policy: Policy{From: FromEarliest}}, "retry: 1000\n:\n", "id: 0-29.1-29\n\n"},
		{Start{Foreign: true, Policy: Policy{From: FromEarliest}}, "retry: 1000\n:\n", "id: 0-29.1-29\nevent: resync\ndata: {\"reason\":\"unknown\",\"topics\":{}}\n\n"},
		// What the client chose would be lost with an id that says *; what its route says holds whenever it comes.
		{Start{Position: at("0-50.1-*"), Policy: Policy{FromTime, 90}, Asked: true}, "retry: 1000\n:\n", "id: 0-50.1-89\n\n"},
		{Start{Position: at("0-102.1-*"), Policy: Policy{FromTime, 90}, Asked: true}, "retry: 1000\n:\n", "id: 0-102.1-89\n\n"},
		{
			Start{Position: at("0-5.1-*"), Policy: Policy{FromTime, 90}, Asked: true},
			"retry: 1000\n:\n",
			"id: 0-29.1-89\nevent: resync\ndata: {\"reason\":\"expired\",\"topics\":{\"a\":[{\"partition\":0,\"from\":6,\"to\":29}]}}\n\n",
		},
	} {
		s := withBrokers(t, 30)
		at, first := s.r.Attach(tc.start, 1000, nil)
		if at.Own == nil || at.Resync != "" || blocks(first) != tc.first {
			t.Fatalf("placed at %+v with %q", at, blocks(first))
		}
		b := s.next(at.Own)
		place, then, _ := strings.Cut(tc.then, "\n")
		want := strings.Replace(place, "id: ", "id: v1:", 1) + tagOf("a", 1) + tags + "\n" + then
		if got := blocks(b[:frame.Len(b)]); got != want {
			t.Errorf("then %q, want %q", got, want)
		}
		at.Own.Close()
	}
}
