package chaos

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ledger is the committed log, read by a consumer that knows nothing of the
// gateways.
type ledger struct {
	run *run
	cl  *kgo.Client

	mu    sync.Mutex
	parts [topicsMax]int
	log   [lanesMax][]got
	next  vector // behind the last record read
	bad   error
}

// open begins to read from the beginning of every partition there is.
func (l *ledger) open() {
	l.cl = l.run.client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(200*time.Millisecond))
}

// read reads until ctx ends or enough is true.
func (l *ledger) read(ctx context.Context, enough func() bool) {
	for ctx.Err() == nil && !enough() {
		l.grow()
		poll, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		fetches := l.cl.PollRecords(poll, 10_000)
		cancel()
		l.mu.Lock()
		fetches.EachError(func(topic string, p int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				l.run.count("ledger errors", 1)
				l.bad = fmt.Errorf("the ledger reads %s/%d: %w", topic, p, err)
			}
		})
		fetches.EachRecord(l.add)
		l.mu.Unlock()
	}
}

// grow takes up new partitions.
func (l *ledger) grow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, topic := range l.run.o.topics {
		add := map[int32]kgo.Offset{}
		for ; l.parts[t] < int(l.run.parts[t].Load()); l.parts[t]++ {
			add[int32(l.parts[t])] = kgo.NewOffset().At(0)
		}
		if len(add) > 0 {
			l.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic.name: add})
		}
	}
}

// add takes a record. mu must be held.
func (l *ledger) add(r *kgo.Record) {
	at := l.run.laneOf(r)
	if r.Offset < l.next[at] {
		l.bad = fmt.Errorf("the ledger reads %d of %s again", r.Offset, l.run.lane(at))
		return
	}
	l.next[at] = r.Offset + 1
	l.log[at] = append(l.log[at], gotOf(r))
}

// gotOf is what a client gets of a record.
func gotOf(r *kgo.Record) got {
	g := got{uint32(r.Offset), sum(r.Key, r.Value), keySum(r.Key), r.Value == nil}
	if len(r.Value) > maxEvent {
		g.sum = skipped
	}
	return g
}

// behind returns where the ledger is.
func (l *ledger) behind() vector {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// mismatch is where a client's stream and the log differ.
type mismatch struct {
	client *client
	lane   int
	offset int64 // that was due; the last one if none was
	what   string
}

func (m mismatch) String() string {
	return fmt.Sprintf("client %d (%s), %s: %s", m.client.n, m.client.kind.target, m.client.run.lane(m.lane), m.what)
}

// compare checks everything a client got. It returns the records compared, and
// how many could not be since the log that held them was cut or replaced.
func (l *ledger) compare(c *client) (n, void int, bad []mismatch) {
	if c.kind.state {
		return l.compareState(c)
	}
	for p := range lanesMax {
		w := walk{log: l.wanted(p, c.kind), jumps: c.jumps[p]}
		w.seek(max(c.start[p], 0))
		for i, g := range c.got[p] {
			if w.jump(i); w.void(g) {
				void++
				continue
			}
			if !w.step(g) {
				break
			}
			n++
		}
		w.jump(len(c.got[p]))
		if w.wrong == "" && c.begun && w.at < len(w.log) {
			w.wrong = fmt.Sprintf("ends before %d; %d records are missing", w.log[w.at].offset, len(w.log)-w.at)
		}
		if w.wrong != "" {
			bad = append(bad, mismatch{c, p, w.due(), w.wrong})
		}
	}
	return n, void, bad
}

// wanted is what a client of a kind is to get of a lane.
func (l *ledger) wanted(p int, k kind) []got {
	switch {
	case !k.has(p):
		return nil
	case k.wants == nil:
		return l.log[p]
	}
	var log []got
	for _, g := range l.log[p] {
		if k.wants(g) {
			log = append(log, g)
		}
	}
	return log
}

// compareState checks that what a client has of each key at the end is what the
// log has, and that every record it got is the log's, unless it is compacted away.
func (l *ledger) compareState(c *client) (n, void int, bad []mismatch) {
	for p := range lanesMax {
		want, have := map[uint32]got{}, map[uint32]got{}
		w := walk{log: l.wanted(p, c.kind)}
		for _, g := range w.log {
			apply(want, g)
		}
		for _, g := range c.got[p] {
			if c.kind.wants != nil && !c.kind.wants(g) && w.wrong == "" {
				w.wrong = fmt.Sprintf("got %d, which is not for it", g.offset)
			}
			w.seek(int64(g.offset))
			if w.at < len(w.log) && w.log[w.at].offset == g.offset && !w.step(g) {
				break
			}
			apply(have, g)
			n++
		}
		for key, g := range want {
			if h, ok := have[key]; w.wrong == "" && (!ok || h != g) {
				w.seek(int64(g.offset))
				w.wrong = fmt.Sprintf("lacks %d, the last record of its key; it has %d", g.offset, h.offset)
			}
		}
		for key, g := range have {
			if _, ok := want[key]; w.wrong == "" && !ok {
				w.wrong = fmt.Sprintf("has %d, whose key is deleted", g.offset)
			}
		}
		if w.wrong != "" {
			bad = append(bad, mismatch{c, p, w.due(), w.wrong})
		}
	}
	return n + c.forgotten, void, bad
}

// apply brings a state up to a record.
func apply(state map[uint32]got, g got) {
	if g.gone {
		delete(state, g.key)
		return
	}
	state[g.key] = g
}

// walk is the comparison of one lane.
type walk struct {
	log   []got
	jumps []jump
	at    int // in log: the record that is due
	wrong string
}

func (w *walk) seek(offset int64) {
	w.at = sort.Search(len(w.log), func(i int) bool { return int64(w.log[i].offset) >= offset })
}

// due is the offset that is due, or the last one of the log.
func (w *walk) due() int64 {
	if len(w.log) == 0 {
		return 0
	}
	return int64(w.log[min(w.at, len(w.log)-1)].offset)
}

// void reports whether a record was sent of a log that is no more: it lies
// behind what a later jump goes back to.
func (w *walk) void(g got) bool {
	for _, j := range w.jumps {
		switch j.reason {
		case "recreated":
			return true
		case "truncated":
			if int64(g.offset) >= j.from {
				return true
			}
		}
	}
	return false
}

// jump goes where the client was told to go before its record i.
func (w *walk) jump(i int) {
	for len(w.jumps) > 0 && w.jumps[0].at == i {
		j := w.jumps[0]
		if j.reason == "expired" && w.at < len(w.log) && int64(w.log[w.at].offset) < j.from && w.wrong == "" {
			w.wrong = fmt.Sprintf("told that %d and on have expired, but %d was never sent", j.from, w.log[w.at].offset)
		}
		w.seek(j.to)
		w.jumps = w.jumps[1:]
	}
}

// step takes the client's next record.
func (w *walk) step(g got) bool {
	switch {
	case w.wrong != "":
	case w.at == len(w.log):
		w.wrong = fmt.Sprintf("got %d, which is not in the log", g.offset)
	case w.log[w.at].offset < g.offset:
		w.wrong = fmt.Sprintf("got %d, but %d was due", g.offset, w.log[w.at].offset)
	case w.log[w.at].offset > g.offset:
		w.wrong = fmt.Sprintf("got %d, which was not due or not committed; %d was", g.offset, w.log[w.at].offset)
	case w.log[w.at].sum != g.sum:
		w.wrong = fmt.Sprintf("the value of %d is another", g.offset)
	default:
		w.at++
		return true
	}
	return false
}
