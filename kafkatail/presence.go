package kafkatail

import (
	"context"
	"sync"
	"time"

	"tailcast/internal/wait"
)

// Presence is whether a topic that a request names exists, as far as known.
type Presence uint8

// The presences.
const (
	Unasked   Presence = iota // nobody knows: Ask
	Present                   // it exists
	Absent                    // it does not
	Forbidden                 // an ACL forbids to say, or to read it
	Away                      // no broker answers, so nobody can know
)

const (
	// presentAgeMax is how long a topic that exists is believed to. One that is
	// deleted meanwhile is opened and waits, as those of other routes do.
	presentAgeMax = time.Minute
	// absentAgeMax is the same of one that does not, and of brokers that are
	// away: long enough for the requests that waited for the answer.
	absentAgeMax = time.Second
	// presencesMax bounds the names that are remembered, 300 bytes each.
	presencesMax = 10_000
	// askedMax bounds the names that are asked about at a time; more are Away,
	// and requests for them wait like those for a topic that comes later.
	askedMax = 4096
	// askGap is the least time between two questions, each about all names
	// that came up meanwhile.
	askGap = 20 * time.Millisecond
	// askMax bounds the wait for an answer; it is that of a browser.
	askMax = 3 * time.Second
)

// presences answers whether topics exist without making anybody wait. Safe
// from any goroutine.
type presences struct {
	wake chan struct{} // there is something to ask; holds one

	mu      sync.Mutex
	known   map[string]presence
	asked   map[string]struct{} // not answered yet; at most askedMax
	waiting []question
}

type presence struct {
	what Presence
	at   time.Time
}

// question is who waits until none of names is Unasked.
type question struct {
	names []string
	ready func()
}

func (p *presences) init() {
	p.wake = make(chan struct{}, 1)
	p.known = map[string]presence{}
	p.asked = map[string]struct{}{}
}

// Presence returns what is known of a topic.
func (t *Tail) Presence(topic string) Presence {
	t.presences.mu.Lock()
	defer t.presences.mu.Unlock()
	return t.presences.of(topic, time.Now())
}

// of is Presence. mu must be held.
func (p *presences) of(topic string, now time.Time) Presence {
	known, ok := p.known[topic]
	most := absentAgeMax
	if known.what == Present {
		most = presentAgeMax
	}
	if !ok || now.Sub(known.at) > most {
		return Unasked
	}
	return known.what
}

// Ask finds out which topics exist, and calls ready, from another goroutine or
// at once, when Presence knows each of them for a moment. It waits for nothing.
func (t *Tail) Ask(topics []string, ready func()) {
	p := &t.presences
	now := time.Now()
	p.mu.Lock()
	var names []string
	for _, name := range topics {
		if p.of(name, now) != Unasked {
			continue
		}
		if _, ok := p.asked[name]; !ok && len(p.asked) >= askedMax {
			p.learn(name, Away, now)
			continue
		}
		p.asked[name] = struct{}{}
		names = append(names, name)
	}
	if len(names) > 0 {
		p.waiting = append(p.waiting, question{names, ready})
	}
	p.mu.Unlock()
	if len(names) == 0 {
		ready()
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// learn notes an answer. mu must be held.
func (p *presences) learn(topic string, what Presence, now time.Time) {
	if len(p.known) >= presencesMax {
		clear(p.known)
	}
	p.known[topic] = presence{what, now}
}

// answer asks brokers until ctx ends. What comes while a question is under way
// is the next one.
func (t *Tail) answer(ctx context.Context, list *lister) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.presences.wake:
		}
		began := time.Now()
		t.askAll(ctx, list)
		wait.For(ctx, time.Until(began.Add(askGap)))
	}
}

// askAll asks about every name that is wanted, and tells those who wait.
func (t *Tail) askAll(ctx context.Context, list *lister) {
	p := &t.presences
	p.mu.Lock()
	names := make([]string, 0, len(p.asked))
	for name := range p.asked {
		names = append(names, name)
	}
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	metas, err := t.metadata(ctx, list, names)
	now := time.Now()
	p.mu.Lock()
	for _, name := range names {
		delete(p.asked, name)
		what := Present
		switch m := metas[name]; {
		case err != nil:
			what = Away
		case m.err != nil && isMissing(m.err):
			what = Absent
		case m.err != nil && isDenied(m.err):
			what = Forbidden
		case m.err != nil:
			what = Away
		}
		p.learn(name, what, now)
	}
	p.mu.Unlock()
	for _, q := range waiting {
		q.ready()
	}
}

// metadata asks unless no broker answered the last look: then none is waited for.
func (t *Tail) metadata(ctx context.Context, list *lister, names []string) (map[string]topicMeta, error) {
	t.mu.Lock()
	reach, err := t.contact.reach, t.contact.err
	t.mu.Unlock()
	if len(names) == 0 || reach != reachOK && reach != "" {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	topics, err := list.metadata(ctx, names)
	if err == nil {
		list.askOthers(ctx, names, topics)
	}
	return topics, err
}
