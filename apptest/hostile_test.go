package apptest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/bench/hostile"
	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// How much TestHostile attacks; tailcast bench hostile is the large one.
const (
	honestStreams  = 20
	attackers      = 10
	attackDuration = 150 * time.Millisecond
	// attackedLogMax bounds what the gateway may log, whatever is sent to it: a
	// line for each kind of refusal, every 10 s at most.
	attackedLogMax = 32 << 10
)

// TestHostile attacks a gateway, one way after the other, while honest streams
// go on: each gets every record, once and in order, and none is cut off. The log
// stays short, and the issuer of tokens is asked for its keys no more often than
// it has to be.
func TestHostile(t *testing.T) {
	for _, tc := range []struct {
		name    string
		flags   []string
		preface string   // what honest clients send first
		attacks []string // none: all
	}{
		{"direct", nil, "", nil},
		{
			"behind a balancer",
			[]string{"--proxy-protocol", "required", "--proxy-trusted", "127.0.0.0/8", "--max-conns-per-ip", "100"},
			"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n",
			[]string{"connections, closed at once", "silent connections", "slow heads", "PROXY headers", "half handshakes", "garbage for TLS"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := started(t, 1, "honest")
			w := b.writer()
			for range 2000 { // for deep ids to read; more than memory holds
				w.Produce(context.Background(), &kgo.Record{Topic: "honest", Value: bytes.Repeat([]byte("old "), 250)}, nil)
			}
			if err := w.Flush(within(t)); err != nil {
				t.Fatal(err)
			}
			site, err := hostile.NewSite(t.TempDir(), "honest")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { site.Close() })
			secure, began := testkit.FreeAddr(t), time.Now()
			s := ready(t, b, slices.Concat([]string{"--listen-tls", secure}, site.Args, tc.flags)...)
			at := site.Target(s.Addr, secure)
			crowd := newCrowd(t, tc.preface, s.Addr, secure)
			stop := crowd.feed(w)
			defer stop()
			for _, a := range hostile.Attacks() {
				if tc.attacks != nil && !slices.Contains(tc.attacks, a.Name) {
					continue
				}
				attack(t, a, at)
				if err := crowd.goesOn(); err != nil || s.Exited() {
					t.Fatalf("%s: %v; the gateway has ended: %t", a.Name, err, s.Exited())
				}
			}
			if n := len(s.Stderr.String()); n > attackedLogMax {
				t.Errorf("%d bytes were logged:\n%.2000s", n, s.Stderr.String())
			}
			if most := 2 + int64(time.Since(began)/(5*time.Second)); site.Asked() > most {
				t.Errorf("the issuer was asked %d times, want %d at most", site.Asked(), most)
			}
		})
	}
}

// attack makes an attack, until something came of it: attackers wait for their
// processor, too.
func attack(t *testing.T, a hostile.Attack, at hostile.Target) {
	t.Helper()
	var made hostile.Made
	for end := within(t); made.Count == 0; {
		if made = a.Run(end, at, attackers, attackDuration); end.Err() != nil {
			t.Fatalf("%s: none was made, %d found no connection", a.Name, made.Failed)
		}
	}
}

// crowd is the honest streams, the last quarter of them by TLS.
type crowd struct {
	sent atomic.Int64    // records that the broker has
	got  []*atomic.Int64 // by each stream

	mu    sync.Mutex
	fault error // the first
}

// newCrowd opens the streams and returns when each has its place.
func newCrowd(t *testing.T, preface, plain, secure string) *crowd {
	t.Helper()
	h := &crowd{}
	var open sync.WaitGroup
	for i := range honestStreams {
		sealed := i >= honestStreams*3/4
		addr := plain
		if sealed {
			addr = secure
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err = io.WriteString(c, preface); err == nil && sealed {
			c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is tested elsewhere
		}
		if err == nil {
			_, err = io.WriteString(c, "GET "+hostile.EventsPath+" HTTP/1.1\r\nHost: gw.test\r\n\r\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		got := new(atomic.Int64)
		h.got = append(h.got, got)
		open.Add(1)
		go h.read(c, got, sync.OnceFunc(open.Done))
	}
	open.Wait()
	return h
}

// read reads a stream until it breaks; placed is called when it has its place.
func (h *crowd) read(c net.Conn, got *atomic.Int64, placed func()) {
	defer placed()
	var stream ssetest.Stream
	for buf := make([]byte, 16<<10); ; {
		n, err := c.Read(buf)
		events, ferr := stream.Feed(buf[:n])
		if stream.Parser.LastEventID() != "" {
			placed()
		}
		for _, e := range events {
			if want := strconv.FormatInt(got.Load(), 10); e.Data != want {
				h.fail(fmt.Errorf("event %.50q, want number %s", e.Data, want))
				return
			}
			got.Add(1)
		}
		if err != nil || ferr != nil {
			h.fail(fmt.Errorf("an honest stream ended: %w, %w", err, ferr))
			return
		}
	}
}

func (h *crowd) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault == nil {
		h.fault = err
	}
}

// feed writes 20 records a second, numbered, until stop. The streams break when
// the test ends, behind that.
func (h *crowd) feed(w *kgo.Client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	writing.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.Produce(ctx, &kgo.Record{Topic: "honest", Value: fmt.Append(nil, n)}, func(_ *kgo.Record, err error) {
					if err == nil {
						h.sent.Add(1)
					}
				})
			}
		}
	})
	return func() { cancel(); writing.Wait() }
}

// goesOn waits until each stream has a record that is not written yet.
func (h *crowd) goesOn() error {
	want, end := h.sent.Load()+1, time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		h.mu.Lock()
		fault := h.fault
		h.mu.Unlock()
		behind := slices.IndexFunc(h.got, func(got *atomic.Int64) bool { return got.Load() < want })
		switch {
		case fault != nil || behind < 0:
			return fault
		case time.Now().After(end):
			return fmt.Errorf("stream %d has %d of %d records %v later", behind, h.got[behind].Load(), want, patience)
		}
		<-tick.C
	}
}
