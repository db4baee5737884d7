package kafkatail

import (
	"context"
	"log/slog"
	"time"

	"tailcast/frame"
)

// warmup is the reading of a topic's newest records before its streams start.
// It is for a topic's first opening alone: later partitions and incarnations
// are read whole, and what its log holds stays.
type warmup struct {
	to    []int64 // by partition: where it ended when the topic opened; 0: it is not warmed
	began time.Time

	left    int64 // at the last look at it
	movedAt time.Time
}

// newWarmup is nil where there is nothing to read.
func newWarmup(parts []partition, now time.Time) *warmup {
	w := &warmup{to: make([]int64, len(parts)), began: now, movedAt: now}
	for i := range parts {
		if parts[i].next != frame.Unknown {
			w.to[i] = parts[i].end
		}
	}
	if w.left = w.rest(parts); w.left == 0 {
		return nil
	}
	return w
}

// rest is how many offsets there are still to read; some may hold no record.
func (w *warmup) rest(parts []partition) int64 {
	var n int64
	for i, to := range w.to {
		if p := &parts[i]; p.next < to && p.hole < to {
			n += to - p.next
		}
	}
	return n
}

// outcome says how the warm-up ended, or nothing if it has not.
func (w *warmup) outcome(parts []partition, now time.Time, t Timing) string {
	rest := w.rest(parts)
	if rest < w.left {
		w.movedAt = now
	}
	w.left = rest
	switch {
	case rest == 0:
		return "complete"
	case now.Sub(w.began) >= t.WarmMax:
		return "took too long"
	case now.Sub(w.movedAt) >= t.WarmStall:
		return "came to a halt"
	}
	return ""
}

// warmed opens the sinks of a topic whose warm-up has ended; streams wait for
// it. Reader only; mu must be held.
func (t *Tail) warmed(tp *topic, now time.Time) {
	if tp.warm == nil {
		return
	}
	outcome := tp.warm.outcome(tp.parts, now, t.cfg.Timing)
	if outcome == "" {
		return
	}
	level := slog.LevelInfo
	if tp.warm.left > 0 {
		level = slog.LevelWarn
	}
	t.log.LogAttrs(context.Background(), level, "a topic is warmed up", slog.String("topic", tp.name), slog.String("outcome", outcome),
		slog.Uint64("records", tp.records), slog.Int64("offsets_left", tp.warm.left), slog.Duration("took", now.Sub(tp.warm.began)))
	tp.warm = nil
	if tp.state == Warming {
		t.setState(tp, Tailing, nil)
	}
	tp.announce()
}

// warming reports whether streams wait for a warm-up.
func (t *Tail) warming() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tp := range t.topics {
		if tp.warm != nil {
			return true
		}
	}
	return false
}
