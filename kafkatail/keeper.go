package kafkatail

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"tailcast/frame"
	"tailcast/internal/wait"
)

// keeper looks after topics: it asks the brokers what there is, and has the
// reader reconcile what it reads with the answer. It is the one place that
// waits for answers; it changes nothing itself.
type keeper struct {
	t      *Tail
	lister *lister
	failed int       // looks in a row that no broker answered
	since  time.Time // since when something is unsettled
	whole  time.Time // of the last look at every topic
}

// view is what one look found.
type view struct {
	at     time.Time
	topics map[string]topicMeta
	starts map[place]listed
	ends   map[place]listed
	asked  map[place]int64 // where we stood before ends were asked for
	probes map[place]probed
}

// contact is how the last looks went. Tail.mu guards it.
type contact struct {
	reach  reach // empty before the first look
	err    error
	lastOK time.Time
}

func (k *keeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		next := k.round(ctx)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.t.wake:
		}
		timer.Stop()
		wait.For(ctx, time.Until(began.Add(lookGap)))
	}
}

// round is one look and what follows from it. It returns how long to wait for
// the next.
func (k *keeper) round(ctx context.Context) time.Duration {
	t := k.t
	came, gone := t.adopt()
	if came { // a topic that is read already opens at once, even if no broker answers
		k.carryOut(ctx, func(r *reader) { r.announce() })
	}
	if len(gone) > 0 {
		k.carryOut(ctx, func(r *reader) { r.purge(gone) })
	}
	names := k.names(time.Now())
	if names == nil {
		return k.wait(time.Now())
	}
	topics, err := k.lister.metadata(ctx, names)
	if ctx.Err() != nil {
		return 0
	}
	t.reached(err)
	if err != nil {
		if t.warming() { // it may have taken long enough
			k.carryOut(ctx, func(r *reader) { r.announce() })
		}
		k.failed++
		return t.cfg.Timing.backoff(k.failed)
	}
	k.failed = 0
	k.lister.askOthers(ctx, t.unseen(names), topics)
	v := k.look(ctx, topics)
	if zombie := t.zombie(v); zombie != "" {
		k.rebuild(ctx, zombie)
	}
	k.carryOut(ctx, func(r *reader) { r.reconcile(v) })
	return k.wait(v.at)
}

// wait returns how long to wait after a look that was answered. What stays
// unsettled for long, such as a partition whose disk is gone, is no reason to
// go on asking often.
func (k *keeper) wait(now time.Time) time.Duration {
	if !k.t.unsettled() {
		k.since = time.Time{}
		return k.whole.Add(k.t.cfg.Timing.Look).Sub(now)
	}
	if k.since.IsZero() {
		k.since = now
	}
	if now.Sub(k.since) > unsettledMax {
		return k.t.cfg.Timing.Look
	}
	return k.t.cfg.Timing.Soon
}

// look asks for the offsets that reconcile needs.
func (k *keeper) look(ctx context.Context, topics map[string]topicMeta) *view {
	v := &view{at: time.Now(), topics: topics, asked: make(map[place]int64), probes: make(map[place]probed)}
	var places, probes []place
	t := k.t
	t.mu.Lock()
	for name, m := range topics {
		tp := t.topics[name]
		if tp == nil || m.err != nil {
			continue
		}
		for i, leader := range m.leaders {
			if leader == noLeader {
				continue
			}
			pl := place{name, int32(i)}
			places = append(places, pl)
			p := tp.part(pl.partition)
			if m.id != tp.id || p == nil {
				continue
			}
			v.asked[pl] = p.next
			if len(probes) < probesMax && t.suspect(tp, p, v.at) {
				probes = append(probes, pl)
			}
		}
	}
	t.mu.Unlock()
	v.starts, v.ends = k.lister.extents(ctx, places)
	for _, pl := range probes {
		m := topics[pl.topic]
		v.probes[pl] = k.lister.probe(ctx, pl, m.id, m.leaders[pl.partition], v.asked[pl])
	}
	return v
}

// suspect reports whether a look should probe the partition: records seem to
// wait unread, or its topic's fetches were denied. mu must be held.
func (t *Tail) suspect(tp *topic, p *partition, now time.Time) bool {
	if tp.state == Denied && tp.opened {
		return !now.Before(tp.probeAt)
	}
	return p.reading && !p.outOfRange && p.errs == 0 && !p.behindAt.IsZero() && p.behindNext == p.next &&
		p.hole < p.end && now.Sub(p.behindAt) >= t.cfg.Timing.Stalled
}

// zombie says why the reader has to be replaced: a probe read records that it
// does not get, though it reports no error (franz-go issue 1338 was one such).
func (t *Tail) zombie(v *view) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pl, pr := range v.probes {
		tp := t.topics[pl.topic]
		if tp == nil || tp.state != Tailing || pr.err != nil || !pr.records {
			continue
		}
		if p := tp.part(pl.partition); p != nil && p.reading && p.next == pr.from && p.errs == 0 {
			return "records of " + pl.topic + " wait unread"
		}
	}
	return ""
}

// carryOut runs f on the reader; one that does not answer is replaced.
func (k *keeper) carryOut(ctx context.Context, f func(*reader)) {
	t := k.t
	t.mu.Lock()
	r := t.reader
	t.mu.Unlock()
	if r == nil {
		k.rebuild(ctx, "the last one could not be replaced")
		return
	}
	if err := r.do(ctx, func() { f(r) }); errors.Is(err, errStuck) {
		k.rebuild(ctx, err.Error())
	}
}

// rebuild replaces the reader, which knows no partition then: the next look is at
// every topic.
func (k *keeper) rebuild(ctx context.Context, why string) {
	k.whole = time.Time{}
	if err := k.t.rebuild(ctx, why); err != nil {
		k.t.log.LogAttrs(ctx, slog.LevelError, "the Kafka reader can't be replaced", slog.String("error", err.Error()))
	}
}

// adopt takes over new sinks, reports whether there were any, and lets go of
// those that end. gone are the topics that nobody reads any more.
func (t *Tail) adopt() (came bool, gone []string) {
	t.pendingMu.Lock()
	list := t.pending
	t.pending = nil
	t.pendingMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range list {
		tp := t.topics[n.topic]
		if n.ends {
			if tp != nil {
				tp.subs = slices.DeleteFunc(tp.subs, func(s subscription) bool { return s.sink == n.sink })
			}
			continue
		}
		if tp == nil {
			tp = &topic{name: n.topic, state: Opening}
			t.topics[n.topic] = tp
		}
		tp.subs = append(tp.subs, subscription{sink: n.sink})
		came = true
	}
	for _, n := range list {
		if tp := t.topics[n.topic]; tp != nil && len(tp.subs) == 0 {
			delete(t.topics, n.topic)
			t.past += tp.records
			gone = append(gone, n.topic)
		}
	}
	return came, gone
}

// names returns the topics to look at: all, or before that is due those that
// can't wait, of thousands maybe the one that opens; nil if there are none.
func (k *keeper) names(now time.Time) []string {
	t := k.t
	t.mu.Lock()
	defer t.mu.Unlock()
	all := now.Sub(k.whole) >= t.cfg.Timing.Look || t.contact.reach != reachOK
	if all {
		k.whole = now
	}
	names := make([]string, 0, len(t.topics))
	for name, tp := range t.topics {
		if all || tp.asked || tp.unsettled() {
			tp.asked = false
			names = append(names, name)
		}
	}
	if len(names) == 0 && !all {
		return nil
	}
	return names
}

// unseen returns those of names of which nothing was found out yet.
func (t *Tail) unseen(names []string) (unseen []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		if tp := t.topics[name]; tp != nil && tp.id == (frame.TopicID{}) && tp.state != Missing {
			unseen = append(unseen, name)
		}
	}
	return unseen
}

// reached notes how a look went, and logs when that is news.
func (t *Tail) reached(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.contact.reach
	t.counters.looks.Add(1)
	if err == nil {
		t.contact = contact{reach: reachOK, lastOK: time.Now()}
		if was != reachOK {
			t.log.LogAttrs(context.Background(), slog.LevelInfo, "Kafka answers")
		}
		return
	}
	t.counters.failed.Add(1)
	t.contact.reach, t.contact.err = t.cfg.reachOf(err)
	if t.contact.reach != was {
		t.log.LogAttrs(context.Background(), slog.LevelError, "Kafka does not answer; trying on",
			slog.String("reason", string(t.contact.reach)), slog.String("error", t.contact.err.Error()))
	}
}

// unsettled reports whether the next look should come soon.
func (t *Tail) unsettled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tp := range t.topics {
		if tp.unsettled() {
			return true
		}
	}
	return false
}

func (tp *topic) unsettled() bool {
	if tp.state == Opening || tp.warm != nil || !tp.missingSince.IsZero() || tp.state == Failing && kerr.IsRetriable(tp.err) {
		return true
	}
	if tp.state != Tailing {
		return false
	}
	for i := range tp.parts {
		if p := &tp.parts[i]; p.next == frame.Unknown || p.outOfRange || p.leader == noLeader || !p.beyondAt.IsZero() {
			return true
		}
	}
	return false
}

// isMissing and isDenied sort the errors of a topic's metadata.
func isMissing(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

func isDenied(err error) bool { return errors.Is(err, kerr.TopicAuthorizationFailed) }
