package apptest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// What TestHostile does by default is small; make hostile asks for more.
var (
	hostileStreams   = flag.Int("hostile.streams", 20, "honest streams of TestHostile")
	hostileAttackers = flag.Int("hostile.attackers", 20, "attackers at a time")
	hostileDuration  = flag.Duration("hostile.duration", 500*time.Millisecond, "how long each attack goes on")
	hostileJudge     = flag.Bool("hostile.judge", false, "hold latency and memory to their bounds, which needs a quiet machine")
)

// Bounds of -hostile.judge.
const (
	hostileSlower = 1.5              // honest p99 during an attack, as a multiple of that before
	hostileFloor  = time.Millisecond // differences below it are not the attack's
	hostileGrowth = 64 << 20         // bytes of RSS
)

// target is the gateway under attack.
type target struct {
	plain, tls string // addresses
}

// attack is what one of many attackers does again and again: one go is counted.
type attack struct {
	name string
	once func(ctx context.Context, at target) error // its error is how the gateway defended itself
}

// from dials from an address of the attackers'.
func from(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	// What ends an attack ends its reads.
	context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	return c, nil
}

// says sends text on a connection of its own and reads what comes to the end.
func says(text string) func(context.Context, target) error {
	return func(ctx context.Context, at target) error {
		c, err := from(ctx, at.plain)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err = io.WriteString(c, text); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, c)
		return err
	}
}

const getEvents = "GET /events HTTP/1.1\r\nHost: gw.test\r\n"

var attacks = []attack{
	{"slow heads", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.plain)
		if err != nil {
			return err
		}
		defer c.Close()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for _, b := range []byte(getEvents + "X: " + strings.Repeat("x", 10_000)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
		return nil
	}},
	{"connections", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.plain)
		if err != nil {
			return err
		}
		return c.Close()
	}},
	{"silent connections", says("")},
	{"streams not read", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.plain)
		if err != nil {
			return err
		}
		defer c.Close()
		if err = c.(*net.TCPConn).SetReadBuffer(4096); err == nil {
			_, err = io.WriteString(c, getEvents+"Last-Event-ID: v1:\r\n\r\n") // all there is
		}
		if err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}},
	{"streams cut off", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.plain)
		if err != nil {
			return err
		}
		defer c.Close()
		_, _ = io.WriteString(c, getEvents+"\r\n")
		_, err = c.Read(make([]byte, 100))
		_ = c.(*net.TCPConn).SetLinger(0)
		return err
	}},
	{"huge heads", says(getEvents + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 64))},
	{"bytes behind a stream", says(getEvents + "\r\n" + strings.Repeat("x", 128<<10))},
	{"requests", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.plain)
		if err != nil {
			return err
		}
		defer c.Close()
		many := strings.Repeat("GET /nope HTTP/1.1\r\nHost: gw.test\r\n\r\n", 50)
		for range 10 {
			if _, err = io.WriteString(c, many); err != nil {
				return err
			}
			if _, err = c.Read(make([]byte, 32<<10)); err != nil {
				return err
			}
		}
		return nil
	}},
	{"smuggling", func(ctx context.Context, at target) error {
		for _, text := range []string{
			"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
			"POST /events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
			"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
			"POST /events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
			"GET /events HTTP/1.1\nHost: a\rX: b\n\n",
			"GET /events HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		} {
			if err := says(text)(ctx, at); err != nil {
				return err
			}
		}
		return nil
	}},
	{"garbage for TLS", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.tls)
		if err != nil {
			return err
		}
		defer c.Close()
		b := make([]byte, 2000)
		_, _ = rand.Read(b) // it can't fail
		copy(b, "\x16\x03\x01\x07\x00\x01")
		_, _ = c.Write(b)
		_, err = io.Copy(io.Discard, c)
		return err
	}},
	{"handshakes", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.tls)
		if err != nil {
			return err
		}
		defer c.Close()
		return tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec // an attacker
	}},
	{"half handshakes", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.tls)
		if err != nil {
			return err
		}
		defer c.Close()
		_, _ = c.Write([]byte("\x16\x03\x01\x02\x00\x01\x00"))
		_, err = io.Copy(io.Discard, c)
		return err
	}},
	{"deep ids", func(ctx context.Context, at target) error {
		c, err := from(ctx, at.plain)
		if err != nil {
			return err
		}
		defer c.Close()
		_, _ = io.WriteString(c, getEvents+"Last-Event-ID: v1:\r\n\r\n")
		_, err = io.CopyN(io.Discard, c, 256<<10)
		return err
	}},
	{"wild ids", says("GET /events?lastEventId=v1:" + strings.Repeat("0-1.", 2000) + " HTTP/1.0\r\nHost: a\r\nLast-Event-ID: v1:0-9223372036854775806\r\n\r\n")},
}

// TestHostile attacks a gateway, one way after the other, while honest streams
// go on: each gets every record, once and in order, and none is cut off. With
// -hostile.judge they also get them as fast as before, and the gateway stays
// as small.
func TestHostile(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "honest")
	w := b.writer()
	for range 2000 { // for deep ids to read; more than memory holds
		w.Produce(context.Background(), &kgo.Record{Topic: "honest", Value: bytes.Repeat([]byte("old "), 250)}, nil)
	}
	if err := w.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	perIP := max(*hostileStreams, *hostileAttackers) + 20
	s, secure, _ := secured(t, b, "--route", "/events=honest", "--log-bytes", "512KiB", "--max-event", "64KiB", "--header-timeout", "1s",
		"--stall", "2s", "--max-conns-per-ip", strconv.Itoa(perIP))
	at := target{s.Addr, secure}
	crowd := newCrowd(t, s.Addr, secure, *hostileStreams)
	stop := crowd.feed(w)
	defer stop()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-22s %9s %12s %12s %10s %10s  %s\n", "attack", "rate/s", "p99 before", "p99 during", "MB before", "MB during", "result")
	for _, a := range attacks {
		before := crowd.phase(*hostileDuration)
		small := rss(t, s)
		count, during, large := crowd.under(t, s, a, at)
		result := "held"
		slow := *hostileJudge && during > time.Duration(float64(before)*hostileSlower) && during-before > hostileFloor
		if err := crowd.wrong(); err != nil || s.Exited() || slow || *hostileJudge && large-small > hostileGrowth {
			result = fmt.Sprint("BROKEN ", err)
			t.Errorf("%s: %s", a.name, result)
		}
		fmt.Fprintf(&table, "%-22s %9.0f %12v %12v %10.1f %10.1f  %s\n", a.name, float64(count)/hostileDuration.Seconds(),
			before.Round(10*time.Microsecond), during.Round(10*time.Microsecond), float64(small)/1e6, float64(large)/1e6, result)
		if s.Exited() {
			break
		}
	}
	t.Log(table.String())
}

// under attacks, and returns how often, the honest p99 and the most memory.
func (h *crowd) under(t *testing.T, s *testkit.Server, a attack, at target) (count int64, p99 time.Duration, most int64) {
	ctx, cancel := context.WithTimeout(context.Background(), *hostileDuration)
	defer cancel()
	var n atomic.Int64
	var attackers sync.WaitGroup
	for range *hostileAttackers {
		attackers.Go(func() {
			for ctx.Err() == nil {
				_ = a.once(ctx, at) // it is told, or cut off: as it should be
				n.Add(1)
			}
		})
	}
	watched := make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			most = max(most, rss(t, s))
			<-tick.C
		}
		watched <- most
	}()
	p99 = h.phase(*hostileDuration)
	most = <-watched
	attackers.Wait()
	return n.Load(), p99, most
}

// rss is the memory of the gateway, 0 if it is gone.
func rss(t testing.TB, s *testkit.Server) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID()))
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Error(err)
	}
	return pages * int64(os.Getpagesize())
}

// crowd is the honest streams, the last quarter of them by TLS.
type crowd struct {
	mu    sync.Mutex
	took  []time.Duration // of records, in the phase that runs
	fault error           // the first
}

func newCrowd(t *testing.T, plain, secure string, n int) *crowd {
	t.Helper()
	h := &crowd{}
	var open sync.WaitGroup
	for i := range n {
		c, err := net.Dial("tcp", []string{plain, plain, plain, secure}[i*4/n])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if i*4/n == 3 {
			c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is tested elsewhere
		}
		if _, err := io.WriteString(c, getEvents+"\r\n"); err != nil {
			t.Fatal(err)
		}
		open.Add(1)
		go h.read(c, sync.OnceFunc(open.Done))
	}
	open.Wait()
	return h
}

// read reads a stream until it breaks; placed is called when it has its place.
func (h *crowd) read(c net.Conn, placed func()) {
	defer placed()
	var stream ssetest.Stream
	buf, next := make([]byte, 16<<10), int64(0)
	for {
		n, err := c.Read(buf)
		now := time.Now()
		events, ferr := stream.Feed(buf[:n])
		if stream.Parser.LastEventID() != "" {
			placed()
		}
		for _, e := range events {
			var seq, at int64
			if _, err := fmt.Sscanf(e.Data, "%d %d", &seq, &at); err != nil || seq != next {
				h.fail(fmt.Errorf("event %.50q, want number %d", e.Data, next))
				return
			}
			next++
			h.mu.Lock()
			h.took = append(h.took, now.Sub(time.Unix(0, at)))
			h.mu.Unlock()
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

func (h *crowd) wrong() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault
}

// feed writes 20 records a second, numbered, until stop. The streams break when
// the test ends, behind that.
func (h *crowd) feed(w *kgo.Client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	writing.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for seq := 0; ; seq++ {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				w.Produce(ctx, &kgo.Record{Topic: "honest", Value: fmt.Appendf(nil, "%d %d", seq, now.UnixNano())}, nil)
			}
		}
	})
	return func() { cancel(); writing.Wait() }
}

// phase waits for d, and on a busy machine until something came, and returns the
// 99th percentile of what came meanwhile.
func (h *crowd) phase(d time.Duration) time.Duration {
	h.mu.Lock()
	h.took = h.took[:0]
	h.mu.Unlock()
	begin := time.Now()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		h.mu.Lock()
		came, since := len(h.took) > 0 || h.fault != nil, time.Since(begin)
		h.mu.Unlock()
		if since >= d && came || since > patience {
			tick.Stop()
			break
		}
		<-tick.C
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.took) == 0 {
		if h.fault == nil {
			h.fault = fmt.Errorf("nothing came in %v", patience)
		}
		return 0
	}
	slices.Sort(h.took)
	return h.took[len(h.took)*99/100]
}
