package kafkatail

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A reader of few partitions fetches without a pause, one of very many with one
// that people do not notice.
func TestFetchGap(t *testing.T) {
	for n, want := range map[int]bool{1: false, 12: false, 100: false, gapFreePartitions: false, gapFreePartitions + 1: true, 100_000: true} {
		if gap := fetchGap(n); gap > 0 != want || gap > fetchGapMax {
			t.Errorf("%d partitions are fetched every %v", n, gap)
		}
	}
}

// TestPacer: fetches go out a gap apart, and nothing else is held up.
func TestPacer(t *testing.T) {
	const gap = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go io.Copy(io.Discard, far)
		life, end := context.WithCancel(t.Context())
		p := &pacer{life: life, dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
		conn, err := p.connect(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p.gap.Store(int64(gap))
		pause := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the bubble's clock: nothing waits
		f := kmsg.NewRequestFormatter()
		fetch, other := f.AppendRequest(nil, kmsg.NewPtrFetchRequest(), 1), f.AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 2)
		for _, s := range []struct {
			name   string
			before func()
			b      []byte
			waits  time.Duration
		}{
			{"the first", func() {}, fetch, 0},
			{"no fetch", func() {}, other, 0},
			{"the next", func() {}, fetch, gap},
			{"the one behind", func() {}, fetch, gap},
			{"part of a gap later", func() { pause(gap / 5) }, fetch, gap - gap/5},
			{"after silence", func() { pause(time.Second) }, fetch, 0},
			{"bytes that are no request", func() {}, []byte{0, 0, 0, 1, 0}, 0},
			{"few partitions", func() { p.follow(1) }, fetch, 0},
			{"many", func() { p.follow(1 << 30) }, fetch, fetchGapMax},
			{"at the end", end, fetch, 0},
		} {
			s.before()
			began := time.Now()
			if n, err := conn.Write(s.b); n != len(s.b) || err != nil {
				t.Fatalf("%s: wrote %d of %d bytes, %v", s.name, n, len(s.b), err)
			}
			if waited := time.Since(began); waited != s.waits {
				t.Errorf("%s: waited %v, want %v", s.name, waited, s.waits)
			}
		}
	})
}

// TestManyTopics: of hundreds of topics that get a record each now and then,
// every record comes once and in order, in far fewer polls than records.
func TestManyTopics(t *testing.T) {
	const topics, rounds = 600, 4
	var names []string
	for i := range topics {
		names = append(names, fmt.Sprint("t", i))
	}
	c := newCluster(t, kfake.SeedTopics(1, names...))
	cl := c.client()
	tail := startTail(t, c.ListenAddrs())
	recs := make([]*recorder, topics)
	for i, name := range names {
		recs[i] = newRecorder(t)
		tail.Tail.Tail(name, recs[i])
	}
	for _, rec := range recs {
		waitOpen(t, rec)
	}
	before := tail.Status().Counters.Polls
	for range rounds {
		for _, name := range names {
			cl.Produce(t.Context(), &kgo.Record{Topic: name, Value: []byte("x")}, nil)
		}
		if err := cl.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, rec := range recs {
		wantOffsets(t, rec, 0, upTo(0, rounds))
	}
	if n := tail.Status().Counters.Polls - before; n > topics*rounds/4 {
		t.Errorf("%d polls for %d records", n, topics*rounds)
	}
}
