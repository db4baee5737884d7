package kafkatail

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"tailcast/frame"
)

// keeper looks after topics: it asks the brokers what there is, and has the
// reader reconcile what it reads with the answer. It is the one place that
// waits for answers; it changes nothing itself.
type keeper struct {
	t      *Tail
	lister *lister
	failed int       // looks in a row that no broker answered
	since  time.Time // since when something is unsettled
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
		wait := k.round(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.t.wake:
		}
		timer.Stop()
		pace(ctx, time.Until(began.Add(lookGap)))
	}
}

// pace waits for d, or less if ctx ends.
func pace(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// round is one look and what follows from it. It returns how long to wait for
// the next.
func (k *keeper) round(ctx context.Context) time.Duration {
	t := k.t
	if t.adopt() { // a topic that is read already opens at once, even if no broker answers
		k.carryOut(ctx, func(r *reader) { r.announce() })
	}
	topics, err := k.lister.metadata(ctx, t.names())
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
	v := k.look(ctx, topics)
	if zombie := t.zombie(v); zombie != "" {
		if err := t.rebuild(ctx, zombie); err != nil {
			t.log.LogAttrs(ctx, slog.LevelError, "the Kafka reader can't be replaced", slog.String("error", err.Error()))
		}
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
		return k.t.cfg.Timing.Look
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
		if err := t.rebuild(ctx, "the last one could not be replaced"); err != nil {
			t.log.LogAttrs(ctx, slog.LevelError, "the Kafka reader can't be replaced", slog.String("error", err.Error()))
		}
		return
	}
	if err := r.do(ctx, func() { f(r) }); errors.Is(err, errStuck) {
		if err := t.rebuild(ctx, err.Error()); err != nil {
			t.log.LogAttrs(ctx, slog.LevelError, "the Kafka reader can't be replaced", slog.String("error", err.Error()))
		}
	}
}

// adopt takes over new sinks and reports whether there were any.
func (t *Tail) adopt() bool {
	t.pendingMu.Lock()
	list := t.pending
	t.pending = nil
	t.pendingMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range list {
		tp := t.topics[n.topic]
		if tp == nil {
			tp = &topic{name: n.topic, state: Opening}
			t.topics[n.topic] = tp
		}
		tp.subs = append(tp.subs, subscription{sink: n.sink})
	}
	return len(list) > 0
}

func (t *Tail) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.topics))
	for name := range t.topics {
		names = append(names, name)
	}
	return names
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
		if tp.state == Opening || tp.warm != nil || !tp.missingSince.IsZero() || tp.state == Failing && kerr.IsRetriable(tp.err) {
			return true
		}
		if tp.state != Tailing {
			continue
		}
		for i := range tp.parts {
			if p := &tp.parts[i]; p.next == frame.Unknown || p.outOfRange || p.leader == noLeader || !p.beyondAt.IsZero() {
				return true
			}
		}
	}
	return false
}

// isMissing and isDenied sort the errors of a topic's metadata.
func isMissing(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

func isDenied(err error) bool { return errors.Is(err, kerr.TopicAuthorizationFailed) }
