package loop

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/ssetest"
)

// TestChurn lets clients connect, read, stop reading for a while, leave in any
// way and come back with their last id, to the same node or to another one
// where the same partitions interleave differently. Every client must get
// every record of every partition once and in order, from where its first id
// says it begins. What the clients do is seeded; who runs when is not, so every
// run is another one.
func TestChurn(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprintf("nodes=%d", nodes), func(t *testing.T) { churn(t, nodes, uint64(nodes)) })
	}
}

const (
	churnClients    = 200
	churnPartitions = 3
	churnRecords    = 400 // that a client reads: a second or two
)

func churn(t *testing.T, nodes int, seed uint64) {
	var sites []*site
	for range nodes {
		s := start(t, func(as *setup) {
			as.Loops = 2
			as.HeaderTimeout = time.Minute // the clients have the same cores
		})
		s.open(churnPartitions)
		sites = append(sites, s)
	}
	var clients sync.WaitGroup
	for i := range churnClients {
		c := &churner{sites: sites, rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		clients.Go(func() {
			if err := c.run(); err != nil {
				t.Errorf("client %d, at %v: %v", i, c.next, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	produceInBursts(sites, rand.New(rand.NewPCG(seed, churnClients)), done)
	for _, s := range sites {
		eventually(t, "all have left", func() bool {
			got := s.stats()
			return s.srv.accepter.count()+int64(got.Connections)+int64(got.Streams)+int64(got.Lagging) == 0
		})
		for _, why := range append([]string{"error", "timeout", "request"}, SlowReasons...) {
			if n := s.stats().Closed[why]; n != 0 {
				t.Errorf("%d connections closed: %s", n, why)
			}
		}
	}
}

// produceInBursts makes records until nobody is left to read them. The nodes
// get the same ones of every partition, each in an order and at a time of its own.
func produceInBursts(sites []*site, rnd *rand.Rand, done <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var made [churnPartitions]int64
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		for range rnd.IntN(20) {
			made[rnd.IntN(churnPartitions)]++
		}
		for _, s := range sites {
			for range rnd.IntN(40) {
				if p := rnd.Int32N(churnPartitions); s.next[p] < made[p] {
					s.produce(p, churnValue(p, s.next[p]))
				}
			}
		}
	}
}

// churnValue is the value of a record.
func churnValue(partition int32, offset int64) string {
	return fmt.Sprint(partition, " ", offset, " ", strings.Repeat("z", int(offset%61)))
}

// churner is one client that comes and goes.
type churner struct {
	sites []*site
	rand  *rand.Rand
	id    string                 // of its last event
	next  [churnPartitions]int64 // by that id
	read  int
}

// run connects until it has read enough.
func (c *churner) run() error {
	for c.read < churnRecords {
		if c.rand.IntN(10) == 0 {
			c.id = "" // a new client
		}
		if err := c.connect(); err != nil {
			return err
		}
	}
	return nil
}

// connect makes one connection and reads some events.
func (c *churner) connect() error {
	conn, err := net.Dial("tcp", c.sites[c.rand.IntN(len(c.sites))].addr)
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
	if _, err := io.WriteString(conn, req("GET /events "+version, "Last-Event-ID: "+c.id)); err != nil {
		return err
	}
	switch c.rand.IntN(20) {
	case 0: // leaves before the answer
		return conn.(*net.TCPConn).SetLinger(0)
	case 1, 2: // does not read for a while
		<-time.After(time.Duration(c.rand.IntN(200)) * time.Millisecond)
	}
	return c.stream(conn)
}

// stream reads events until it has had enough of them.
func (c *churner) stream(conn net.Conn) error {
	var stream ssetest.Stream
	begun := false
	buf := make([]byte, 1+c.rand.IntN(16<<10))
	for left := 1 + c.rand.IntN(500); left > 0; {
		n, err := conn.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			piece := len(b)
			if !begun {
				piece = 1 // to see the first id before the first event
			}
			events, serr := stream.Feed(b[:piece])
			if serr != nil {
				return serr
			}
			b = b[piece:]
			if id := stream.Parser.LastEventID(); !begun && id != "" {
				begun = true
				if err := c.begin(id); err != nil {
					return err
				}
			}
			for _, e := range events {
				left--
				if err := c.check(e); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	if c.rand.IntN(2) == 0 {
		return conn.(*net.TCPConn).SetLinger(0)
	}
	return nil
}

// begin checks the first id of a stream: the client's own, or where it begins.
func (c *churner) begin(id string) error {
	next, err := vector(id)
	if err != nil {
		return err
	}
	if c.id != "" && next != c.next {
		return fmt.Errorf("goes on at %v", next)
	}
	c.next, c.id = next, id
	return nil
}

// check checks one event: the next of its partition, with an id that has moved
// by it alone.
func (c *churner) check(e ssetest.Event) error {
	var p int32
	var offset int64
	if _, err := fmt.Sscan(e.Data, &p, &offset); err != nil {
		return errors.New(e.Type + " event: " + e.Data)
	}
	if p < 0 || p >= churnPartitions || offset != c.next[p] || e.Data != churnValue(p, offset) {
		return fmt.Errorf("got %q", e.Data)
	}
	c.next[p]++
	c.read++
	next, err := vector(e.LastEventID)
	if err != nil {
		return err
	}
	if next != c.next {
		return fmt.Errorf("%q has id %v", e.Data, next)
	}
	c.id = e.LastEventID
	return nil
}

// vector is the next offset of every partition by an id.
func vector(id string) (next [churnPartitions]int64, err error) {
	pos, err := frame.ParseID([]byte(id))
	if err != nil {
		return next, err
	}
	for _, p := range pos[0].Parts {
		next[p.ID] = p.Next
	}
	return next, nil
}
