package loop

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tailcast/internal/ssetest"
)

// TestChurn lets clients connect, read, stop reading for a while, leave in any
// way and come back with their last id, while records are made in bursts. The
// records are numbered in the order in which the feed got them, so every
// client can tell that it gets exactly the log from its position on. Run a
// seed again with -run 'TestChurn/seed=N'.
func TestChurn(t *testing.T) {
	for _, seed := range []uint64{1, rand.Uint64N(1 << 20)} {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := start(t, func(as *setup) {
				as.Loops = 2
				as.HeaderTimeout = time.Minute // the clients have the same two cores
			})
			s.open(3)
			var made atomic.Int64
			var clients sync.WaitGroup
			for i := range 200 {
				c := &churner{s: s, made: &made, rand: rand.New(rand.NewPCG(seed, uint64(i))), next: -1}
				clients.Go(func() {
					if err := c.run(); err != nil {
						t.Errorf("client %d, at record %d: %v", i, c.next, err)
					}
				})
			}
			done := make(chan struct{})
			go func() { clients.Wait(); close(done) }()
			produceInBursts(s, rand.New(rand.NewPCG(seed, 1000)), &made, done)
			eventually(t, "all have left", func() bool {
				got := s.stats()
				return s.srv.accepter.open()+int64(got.Connections)+int64(got.Streams)+int64(got.Lagging) == 0
			})
			for _, why := range append([]string{"error", "timeout", "request"}, SlowReasons...) {
				if n := s.stats().Closed[why]; n != 0 {
					t.Errorf("%d connections closed: %s", n, why)
				}
			}
		})
	}
}

// churnRecords is how far a client of TestChurn goes: a few seconds' worth.
const churnRecords = 1500

// produceInBursts makes records until nobody is left to read them.
func produceInBursts(s *site, rnd *rand.Rand, made *atomic.Int64, done <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for range rnd.IntN(20) {
			s.produce(rnd.Int32N(3), fmt.Sprint(n, " ", strings.Repeat("z", rnd.IntN(60))))
			n++
			made.Store(int64(n))
		}
	}
}

// churner is one client that comes and goes.
type churner struct {
	s    *site
	made *atomic.Int64
	rand *rand.Rand
	id   string // of its last event
	next int64  // the record it must get next; -1: any
}

// run connects until the last record has come.
func (c *churner) run() error {
	for c.next < churnRecords {
		if c.rand.IntN(10) == 0 {
			c.id, c.next = "", -1 // a new client
		}
		if err := c.connect(); err != nil {
			return err
		}
	}
	return nil
}

// connect makes one connection and reads some events.
func (c *churner) connect() error {
	conn, err := net.Dial("tcp", c.s.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		return err
	}
	version := "HTTP/1.1"
	if c.rand.IntN(4) == 0 {
		version = "HTTP/1.0"
	}
	before := c.made.Load()
	if _, err := io.WriteString(conn, req("GET /events "+version, "Last-Event-ID: "+c.id)); err != nil {
		return err
	}
	switch c.rand.IntN(20) {
	case 0: // leaves before the answer
		return conn.(*net.TCPConn).SetLinger(0)
	case 1, 2: // does not read for a while
		<-time.After(time.Duration(c.rand.IntN(200)) * time.Millisecond)
	}
	return c.read(conn, before)
}

// read reads events until it has had enough of them. before is how many
// records were made when the client connected.
func (c *churner) read(conn net.Conn, before int64) error {
	var stream ssetest.Stream
	buf := make([]byte, 1+c.rand.IntN(16<<10))
	fresh := c.next < 0
	for left := 1 + c.rand.IntN(600); left > 0 && c.next < churnRecords; {
		n, err := conn.Read(buf)
		events, serr := stream.Feed(buf[:n])
		for _, e := range events {
			if err := c.check(e, before, fresh); err != nil {
				return err
			}
			left--
			fresh = false
		}
		if err := errors.Join(err, serr); err != nil {
			return err
		}
	}
	if c.rand.IntN(2) == 0 {
		return conn.(*net.TCPConn).SetLinger(0)
	}
	return nil
}

func (c *churner) check(e ssetest.Event, before int64, fresh bool) error {
	word, _, _ := strings.Cut(e.Data, " ")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return fmt.Errorf("%s event: %.100q", e.Type, e.Data)
	}
	if fresh && n < before || !fresh && n != c.next {
		return fmt.Errorf("got record %d, want %d; %d were made before", n, c.next, before)
	}
	c.next, c.id = n+1, e.LastEventID
	return nil
}
