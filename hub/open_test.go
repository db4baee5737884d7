package hub

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tailcast/frame"
)

func TestOpenRefuses(t *testing.T) {
	// The tags of names are 12 bits: among so many, two are equal.
	twins := func() (a, b string) {
		seen := map[frame.Tag]string{}
		for i := 0; ; i++ {
			name := fmt.Sprint("topic-", i)
			tag := frame.MakeTag(name, frame.TopicID{})
			if was, ok := seen[tag]; ok {
				return was, name
			}
			seen[tag] = name
		}
	}
	a, b := twins()
	many := func(n int) (names []string) {
		seen := map[frame.Tag]bool{}
		for i := 0; len(names) < n; i++ {
			name := fmt.Sprint("topic-", i)
			if tag := frame.MakeTag(name, frame.TopicID{}); !seen[tag] {
				seen[tag] = true
				names = append(names, name)
			}
		}
		return names
	}
	for _, c := range []struct {
		name string
		spec Spec
		want []string // in the error; none: no error
	}{
		{"no topic", Spec{}, []string{"topics", "none"}},
		{"one", Spec{Topics: []string{"a"}}, nil},
		{"two", Spec{Topics: []string{"a", "b"}}, nil},
		{"one twice", Spec{Topics: []string{"a", "b", "a"}}, []string{"topics", `"a"`, "twice"}},
		{"two with the same tag", Spec{Topics: []string{"x", a, "y", b}}, []string{"topics", `"` + a + `"`, `"` + b + `"`}},
		{"as many as an id holds", Spec{Topics: many(topicsMax)}, nil},
		{"too many", Spec{Topics: many(topicsMax + 1)}, []string{"topics", "65", "64"}},
		{"a wrong format", Spec{Topics: []string{"a"}, Format: frame.Format{Binary: "hex"}}, []string{"binary", "hex"}},
	} {
		tails := 0
		h := New(testOptions, nil)
		f, err := h.Open(c.spec, sourceFunc(func(string, Sink) { tails++ }))
		if len(c.want) == 0 {
			if err != nil || f == nil || tails != len(c.spec.Topics) {
				t.Errorf("%s: %v, %d topics tailed", c.name, err, tails)
				continue
			}
			if _, err := frame.ParseID([]byte(f.Snapshot().ID)); err != nil {
				t.Errorf("%s: the feed's id can't be read: %v", c.name, err)
			}
			continue
		}
		if err == nil || f != nil || tails != 0 || len(h.Feeds()) != 0 {
			t.Errorf("%s: no error, or a feed in spite of it: %v, %d topics tailed", c.name, err, tails)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
	}
}

func TestEqualSpecsShareAFeed(t *testing.T) {
	h := New(testOptions, nil)
	var tailed atomic.Int64
	src := sourceFunc(func(string, Sink) { tailed.Add(1) })
	feeds := make([]*Feed, 16)
	var wg sync.WaitGroup
	for i := range feeds {
		wg.Go(func() {
			names := []string{"a", "b"}
			f, err := h.Open(Spec{Topics: names}, src)
			if err != nil {
				t.Error(err)
			}
			names[0] = "?"
			feeds[i] = f
		})
	}
	wg.Wait()
	for _, f := range feeds {
		if f != feeds[0] {
			t.Fatal("two feeds of one spec")
		}
	}
	if n := tailed.Load(); n != 2 {
		t.Errorf("its 2 topics are tailed %d times", n)
	}
	if got := strings.Join(feeds[0].Topics(), " "); got != "a b" {
		t.Errorf("the feed's topics are %s", got)
	}
	for _, other := range []Spec{
		{Topics: []string{"b", "a"}}, {Topics: []string{"a"}}, {Topics: []string{"a", "b"}, Format: frame.Format{Envelope: true}},
	} {
		if f, err := h.Open(other, src); err != nil || f == feeds[0] {
			t.Errorf("%v: %v, the same feed", other, err)
		}
	}
	if n := len(h.Feeds()); n != 4 {
		t.Errorf("%d feeds", n)
	}
}

// TestRun: heartbeats, lag marks and the ceiling of all logs follow the clock,
// which is a fake one here.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions
		opts.LogBytesTotal = 2 * segmentBytes
		g := newRig(t, opts, "t")
		g.sinks[0].Open(topicID(1), parts(0))
		fillLog(g.sinks[0], 3)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); g.hub.Run(ctx) }()

		head := g.r.Head()
		time.Sleep(tickEvery + time.Millisecond) //nolint:forbidigo // the bubble's clock: nothing waits
		synctest.Wait()
		if n := g.feed.Snapshot().LogBytes; n != 2*segmentBytes {
			t.Errorf("the log holds %d bytes, the ceiling of all is %d", n, opts.LogBytesTotal)
		}
		time.Sleep(opts.Heartbeat) //nolint:forbidigo // the bubble's clock: nothing waits
		synctest.Wait()
		if n := g.beats(head); n != 1 || g.r.LagMark() != head {
			t.Errorf("%d heartbeats, lag mark %d, head %d", n, g.r.LagMark(), head)
		}
		cancel()
		<-done
	})
}
