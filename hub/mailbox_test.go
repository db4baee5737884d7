package hub

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tailcast/frame"
)

// testLoop is a loop that does nothing but read.
type testLoop struct {
	box  *Mailbox
	wake chan struct{}
	took []*Reader
}

func newTestLoop() *testLoop {
	l := &testLoop{wake: make(chan struct{}, 1)}
	l.box = NewMailbox(func() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	})
	return l
}

// take waits for a wake and takes what it was for. It fails the test if the
// wake was lost.
func (l *testLoop) take(t *testing.T) []*Reader {
	select {
	case <-l.wake:
	case <-time.After(30 * time.Second):
		t.Error("no wake came")
		return nil
	}
	l.took = l.box.Take(l.took[:0])
	return l.took
}

func TestWakeOnceWhileNotEmpty(t *testing.T) {
	g := newRig(t, testOptions, "a")
	f2, sinks := openFeed(t, g.hub, Spec{Topics: []string{"b"}})
	r2 := f2.Reader(g.box)
	a, b := g.sinks[0], sinks[0]
	a.Open(topicID(1), nil)
	b.Open(topicID(2), nil)

	steps := []struct {
		name  string
		do    func()
		wakes int
	}{
		{"opened", func() {}, 1},
		{"taken", func() { g.box.Take(nil) }, 1},
		{"nothing new", func() { a.Flush(nil); b.Flush(nil) }, 1},
		{"new on one", func() { produce(a, 0, 0, 3) }, 2},
		{"more on it", func() { produce(a, 0, 3, 6) }, 2},
		{"new on the other", func() { produce(b, 0, 0, 3) }, 2},
		{"taken again", func() {
			if got := g.box.Take([]*Reader{nil}); len(got) != 3 || got[1] != g.r || got[2] != r2 {
				t.Errorf("Take appended %v", got[1:])
			}
			if got := g.box.Take(nil); len(got) != 0 {
				t.Errorf("Take told %v twice", got)
			}
		}, 2},
		{"new again", func() { produce(b, 0, 3, 4) }, 3},
	}
	for _, s := range steps {
		if s.do(); g.wakes != s.wakes {
			t.Fatalf("%s: %d wakes, want %d", s.name, g.wakes, s.wakes)
		}
	}
}

// TestMarkBetweenTheTakes: a feed is marked when the loop has taken the readers
// and is about to take the personal streams. Nothing else may come for long, so
// it is woken.
func TestMarkBetweenTheTakes(t *testing.T) {
	g := newRig(t, testOptions, "a")
	g.sinks[0].Open(topicID(1), nil)
	g.box.Take(nil)
	g.box.own(&Own{})
	if g.wakes != 2 {
		t.Fatalf("%d wakes, want 2", g.wakes)
	}
	if got := g.box.Take(nil); len(got) != 0 {
		t.Fatalf("took %v", got)
	}
	produce(g.sinks[0], 0, 0, 1)
	if got := g.box.TakeOwn(nil); len(got) != 1 {
		t.Fatalf("took %v", got)
	}
	if g.wakes != 3 {
		t.Errorf("%d wakes, want 3: nobody looks at what is new", g.wakes)
	}
	if got := g.box.Take(nil); len(got) != 1 {
		t.Errorf("then took %v", got)
	}
}

func TestMarksOnlyLoopsThatRead(t *testing.T) {
	one, two := newTestLoop(), newTestLoop()
	h := New(testOptions, []*Mailbox{one.box, two.box})
	fa, sa := openFeed(t, h, Spec{Topics: []string{"a"}})
	fb, sb := openFeed(t, h, Spec{Topics: []string{"b"}})
	sa[0].Open(topicID(1), nil)
	sb[0].Open(topicID(2), nil)
	ra1, ra2, rb2 := fa.Reader(one.box), fa.Reader(two.box), fb.Reader(two.box)

	marked := func(want1, want2 []*Reader) {
		t.Helper()
		if got := one.box.Take(nil); fmt.Sprint(got) != fmt.Sprint(want1) {
			t.Errorf("the first loop has %v, want %v", got, want1)
		}
		if got := two.box.Take(nil); fmt.Sprint(got) != fmt.Sprint(want2) {
			t.Errorf("the second loop has %v, want %v", got, want2)
		}
	}
	none := []*Reader{}
	produce(sb[0], 0, 0, 1)
	marked(none, []*Reader{rb2})
	produce(sa[0], 0, 0, 1)
	marked([]*Reader{ra1}, []*Reader{ra2})

	produce(sa[0], 0, 1, 2)
	ra1.Close() // its mark stays, once
	ra1.Close()
	marked([]*Reader{ra1}, []*Reader{ra2})
	produce(sa[0], 0, 2, 3)
	marked(none, []*Reader{ra2})
	if ra2.Feed() != fa {
		t.Error("a reader does not know its feed")
	}
}

// audience are loops that read feeds as they are told to, each on a goroutine.
type audience struct {
	t     *testing.T
	loops []*testLoop
	feeds []*Feed
	seen  [][]atomic.Int64 // head that a loop read, by feed and loop
	over  atomic.Bool
	news  *sync.Cond // a loop has read
	wg    sync.WaitGroup
}

// newAudience has every loop read every feed, until done.
func newAudience(t *testing.T, loops []*testLoop, feeds []*Feed) *audience {
	a := &audience{t: t, loops: loops, feeds: feeds, news: sync.NewCond(&sync.Mutex{})}
	for i, f := range feeds {
		a.seen = append(a.seen, make([]atomic.Int64, len(loops)))
		for _, l := range loops {
			f.Reader(l.box).Streams = i
		}
	}
	for k := range loops {
		a.wg.Go(func() { a.read(k) })
	}
	return a
}

// read is loop k.
func (a *audience) read(k int) {
	for l := a.loops[k]; !a.over.Load(); {
		l.box.Enter()
		for _, r := range l.take(a.t) {
			a.seen[r.Streams.(int)][k].Store(r.Head())
		}
		l.box.Leave()
		if a.t.Failed() {
			a.over.Store(true)
		}
		a.news.L.Lock()
		a.news.Broadcast()
		a.news.L.Unlock()
	}
}

// await returns when every loop has read what feed i has now, or a wake was lost.
func (a *audience) await(i int) {
	head := a.feeds[i].log.head.Load()
	a.news.L.Lock()
	defer a.news.L.Unlock()
	for k := range a.loops {
		for !a.over.Load() && a.seen[i][k].Load() < head {
			a.news.Wait()
		}
	}
}

// done ends the loops.
func (a *audience) done() {
	a.over.Store(true)
	for _, l := range a.loops {
		l.box.wake() // let it see that it is over
	}
	a.wg.Wait()
	for i, f := range a.feeds {
		if a.t.Failed() {
			a.t.Logf("feed %d: head %d, loops read %d and %d", i, f.log.head.Load(), a.seen[i][0].Load(), a.seen[i][1].Load())
		}
	}
}

// TestNoWakeIsLost: each published head is waited for by every loop before the
// next is published, so one wake that is lost stops the test.
func TestNoWakeIsLost(t *testing.T) {
	const feeds, rounds = 3, 2000
	loops := []*testLoop{newTestLoop(), newTestLoop()}
	h := New(testOptions, []*Mailbox{loops[0].box, loops[1].box})
	var all []*Feed
	for i := range feeds {
		f, sinks := openFeed(t, h, Spec{Topics: []string{fmt.Sprint("t", i)}})
		sinks[0].Open(topicID(1), nil)
		all = append(all, f)
	}
	a := newAudience(t, loops, all)
	var writers sync.WaitGroup
	for i, f := range all {
		writers.Go(func() {
			s := &sink{feed: f}
			for o := range int64(rounds) {
				s.Append(0, []frame.Record{record(0, o)})
				s.Flush(nil)
				if i > 0 { // the first feed is written at full speed
					a.await(i)
				}
			}
			a.await(i)
		})
	}
	writers.Wait()
	a.done()
}

// TestNoWakeIsLostInRounds is TestNoWakeIsLost with several tails, which flush
// many feeds a round, some of them several tails' in common, and now and then one
// at once. Each waits for what it flushed when its round is over.
func TestNoWakeIsLostInRounds(t *testing.T) {
	const tails, feeds, rounds = 3, 2 * wakesHeld, 150
	loops := []*testLoop{newTestLoop(), newTestLoop()}
	h := New(testOptions, []*Mailbox{loops[0].box, loops[1].box})
	var all []*Feed
	sinks := make([][]Sink, tails) // by feed
	for i := range feeds {
		spec := Spec{}
		for k := range tails {
			spec.Topics = append(spec.Topics, fmt.Sprint("t", i, ".", k))
		}
		f, s := openFeed(t, h, spec)
		all = append(all, f)
		for k := range s {
			s[k].Open(topicID(1), nil)
			sinks[k] = append(sinks[k], s[k])
		}
	}
	a := newAudience(t, loops, all)
	var writers sync.WaitGroup
	for k := range tails {
		writers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(k), 9))
			next := make([]int64, feeds)
			var w Wakes
			for range rounds {
				some := rnd.Perm(feeds)[:1+rnd.IntN(1+rnd.IntN(feeds))]
				for _, i := range some {
					sinks[k][i].Append(0, []frame.Record{record(0, next[i])})
					next[i]++
					if rnd.IntN(50) == 0 {
						sinks[k][i].Flush(nil)
					} else {
						sinks[k][i].Flush(&w)
					}
				}
				w.Wake()
				for _, i := range some {
					a.await(i)
				}
			}
		})
	}
	writers.Wait()
	a.done()
}
