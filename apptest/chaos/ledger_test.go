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
	parts int
	log   [partsMax][]got
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
		fetches.EachError(func(_ string, p int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				l.run.count("ledger errors", 1)
				l.bad = fmt.Errorf("the ledger reads partition %d: %w", p, err)
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
	add := map[int32]kgo.Offset{}
	for ; l.parts < int(l.run.parts.Load()); l.parts++ {
		add[int32(l.parts)] = kgo.NewOffset().At(0)
	}
	if len(add) > 0 {
		l.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{l.run.o.topic: add})
	}
}

// add takes a record. mu must be held.
func (l *ledger) add(r *kgo.Record) {
	if r.Offset < l.next[r.Partition] {
		l.bad = fmt.Errorf("the ledger reads %d/%d again", r.Partition, r.Offset)
		return
	}
	l.next[r.Partition] = r.Offset + 1
	l.log[r.Partition] = append(l.log[r.Partition], gotOf(r))
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
	client, partition int
	offset            int64 // that was due; the last one if none was
	what              string
}

func (m mismatch) String() string {
	return fmt.Sprintf("client %d, partition %d: %s", m.client, m.partition, m.what)
}

// compare checks everything a client got. It returns the records compared, and
// how many could not be since the log that held them was cut or replaced.
func (l *ledger) compare(c *client) (n, void int, bad []mismatch) {
	if c.kind.state {
		return l.compareState(c)
	}
	for p := range partsMax {
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
			bad = append(bad, mismatch{c.n, p, w.due(), w.wrong})
		}
	}
	return n, void, bad
}

// wanted is what a client of a kind is to get of a partition.
func (l *ledger) wanted(p int, k kind) []got {
	if k.wants == nil {
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
	for p := range partsMax {
		want, have := map[uint32]got{}, map[uint32]got{}
		for _, g := range l.log[p] {
			apply(want, g)
		}
		w := walk{log: l.log[p]}
		for _, g := range c.got[p] {
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
			bad = append(bad, mismatch{c.n, p, w.due(), w.wrong})
		}
	}
	return n, void, bad
}

// apply brings a state up to a record.
func apply(state map[uint32]got, g got) {
	if g.gone {
		delete(state, g.key)
		return
	}
	state[g.key] = g
}

// walk is the comparison of one partition.
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
