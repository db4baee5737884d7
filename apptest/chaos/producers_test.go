package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxEvent is the gateways' --max-event; now and then a record is larger.
const maxEvent = 4 << 10

// acked are the records that brokers confirmed, and whose transactions were
// committed: all of them must be in the log.
type acked struct {
	run *run

	mu  sync.Mutex
	log [lanesMax][]got
	bad int // records whose fate is not known
}

func (a *acked) add(recs ...*kgo.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range recs {
		at := a.run.laneOf(r)
		a.log[at] = append(a.log[at], gotOf(r))
	}
}

func (a *acked) lost(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bad += n
}

// forget drops the records of a topic, whose log is no more.
func (a *acked) forget(topic int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.log[laneOf(topic, 0):laneOf(topic+1, 0)])
}

// missing returns how many of them the log has, how many were compacted away
// before it was read, so that it has a later one of the key, and how many it
// lacks for another reason.
func (a *acked) missing(l *ledger) (have, gone, missing int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := range a.log {
		in, last := map[got]bool{}, map[uint32]uint32{}
		for _, g := range l.log[p] {
			in[g], last[g.key] = true, g.offset
		}
		for _, g := range a.log[p] {
			switch {
			case in[g]:
				have++
			case !l.run.o.compacted || last[g.key] <= g.offset:
				missing++
			default:
				gone++
			}
		}
	}
	return have, gone, missing
}

// maker makes records no two of which are equal. One goroutine.
type maker struct {
	run  *run
	name string
	draw *rand.Rand
	n    int
}

const filler = "é€ lorem ipsum dolor sit amet, consetetur sadipscing elitr, sed diam nonumy eirmod tempor invidunt ut labore et dolore magna aliquyam erat"

func (m *maker) next() *kgo.Record {
	m.n++
	name := fmt.Sprintf("%s-%d", m.name, m.n)
	key := fmt.Sprint("user-", m.draw.IntN(m.run.o.keys))
	t := m.draw.IntN(len(m.run.o.topics))
	r := &kgo.Record{Topic: m.run.o.topics[t].name, Partition: m.draw.Int32N(m.run.parts[t].Load()), Key: []byte(key)}
	switch k := m.draw.IntN(1000); {
	case k < 10, m.run.o.compacted && k < 200: // tombstone
	case k < 13 && !m.run.o.compacted:
		r.Value = []byte(name + strings.Repeat("x", maxEvent+m.draw.IntN(maxEvent)))
	default:
		r.Value = fmt.Appendf(nil, "%s/%d %s", name, m.draw.Uint32(), filler[:len("é€")+m.draw.IntN(len(filler)-len("é€"))])
	}
	return r
}

// plain writes records one by one, so many a second.
func (r *run) plain(ctx context.Context, name string, perSecond int) {
	m := maker{run: r, name: name, draw: r.rand(name)}
	cl := r.client(kgo.RecordRetries(1000), kgo.RecordDeliveryTimeout(patience), kgo.UnknownTopicRetries(-1))
	r.paced(ctx, perSecond, func() {
		cl.Produce(context.Background(), m.next(), func(rec *kgo.Record, err error) {
			if err != nil {
				r.acked.lost(1)
				return
			}
			r.acked.add(rec)
		})
	})
	flush, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = cl.Flush(flush) // what is not confirmed is not expected
}

// paced calls do so many times a second until ctx ends.
func (r *run) paced(ctx context.Context, perSecond int, do func()) {
	const every = 5 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	began, done := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		due := int(time.Since(began).Seconds() * float64(perSecond))
		for ; done < due; done++ {
			do()
		}
	}
}

// transactions writes transactions, of which it aborts one in three and holds
// one in fifty open for a while.
func (r *run) transactions(ctx context.Context, name string, perSecond int) {
	m := maker{run: r, name: name, draw: r.rand(name)}
	var cl *kgo.Client
	renew := func() {
		if cl != nil {
			cl.Close()
		}
		cl = r.client(kgo.TransactionalID(name), kgo.TransactionTimeout(20*time.Second), kgo.RecordRetries(1000), kgo.RecordDeliveryTimeout(10*time.Second))
	}
	renew()
	const size = 4 // records of a transaction, on the average
	tick := time.NewTicker(time.Second * size / time.Duration(perSecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.transaction(ctx, cl, &m, 1+m.draw.IntN(2*size-1)); err != nil {
			r.count("transactions failed", 1)
			renew()
		}
	}
}

func (r *run) transaction(ctx context.Context, cl *kgo.Client, m *maker, n int) error {
	how, hang := m.draw.IntN(3), m.draw.IntN(50) == 0
	within, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = m.next()
	}
	err := cl.ProduceSync(within, recs...).FirstErr()
	if hang && err == nil {
		r.count("transactions held open", 1)
		hold := time.NewTimer(time.Duration(500+m.draw.IntN(2500)) * time.Millisecond)
		select {
		case <-hold.C:
		case <-ctx.Done():
			hold.Stop()
		}
	}
	if err != nil || how == 0 {
		if err := cl.EndTransaction(within, kgo.TryAbort); err != nil {
			return err
		}
		r.count("transactions aborted", 1)
		return err
	}
	if err := cl.EndTransaction(within, kgo.TryCommit); err != nil {
		r.acked.lost(n)
		return err
	}
	r.count("transactions committed", 1)
	r.acked.add(recs...)
	return nil
}
