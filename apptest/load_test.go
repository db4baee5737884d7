package apptest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// loadEvery is the pause between two bunches of a load's records.
const loadEvery = 10 * time.Millisecond

// load writes numbered records to every partition of a topic, until it is ended.
type load struct {
	b     *broker
	topic string
	parts int32
	stop  context.CancelFunc
	wg    sync.WaitGroup
	acked atomic.Int64
	bad   atomic.Pointer[error] // the first of a record that was not taken
}

// load begins a load of so many records a second.
func (b *broker) load(topic string, parts int32, perSecond int) *load {
	b.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{b: b, topic: topic, parts: parts, stop: stop}
	cl := b.writer()
	l.wg.Go(func() {
		tick := time.NewTicker(loadEvery)
		defer tick.Stop()
		bunch := max(1, perSecond/int(time.Second/loadEvery))
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				for range bunch {
					l.write(cl, b.numbered(topic, int32(n)%parts, false))
					n++
				}
			}
		}
	})
	b.t.Cleanup(func() { l.stop(); l.wg.Wait() })
	return l
}

func (l *load) write(cl *kgo.Client, r *kgo.Record) {
	cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		if err != nil {
			l.bad.CompareAndSwap(nil, &err)
			return
		}
		l.acked.Add(1)
	})
}

// end stops the load and writes the last record of each partition.
func (l *load) end(t testing.TB) {
	t.Helper()
	l.stop()
	l.wg.Wait()
	cl := l.b.writer()
	for p := range l.parts {
		l.write(cl, l.b.numbered(l.topic, p, true))
	}
	if err := cl.Flush(within(t)); err != nil {
		t.Fatalf("flush: %v", err)
	}
	if err := l.bad.Load(); err != nil {
		t.Fatalf("a record was not taken: %v", *err)
	}
}
