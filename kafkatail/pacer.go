package kafkatail

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/internal/wait"
)

// pacer holds up the fetches of a reader that has many partitions (ADR 8). The
// library builds each fetch from all of them, and of many partitions with
// little to say there is nearly always one with a record, so that they would be
// fetched again for each. A fetch that goes out later costs the same and brings
// more records.
//
// It holds up requests on their way to a broker, not polls: the library
// fetches ahead, so what it fetched right behind one poll would wait for the
// next. A broker that was silent for the gap is asked at once, and answers a
// record that comes alone at once.
type pacer struct {
	dial dialFunc
	life context.Context //nolint:containedctx // that of the reader, whose end no connection may outlast
	gap  atomic.Int64    // nanoseconds from one fetch to the next; written by the reader
}

// dialFunc connects to a broker, as kgo.Dialer takes it.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// connect is a dialFunc.
func (p *pacer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &pacedConn{Conn: conn, pacer: p}, nil
}

// follow sets the gap for n partitions: see gapFreePartitions. Safe from any goroutine.
func (p *pacer) follow(n int) { p.gap.Store(int64(fetchGap(n))) }

// fetchGap is the least time between two fetches from a broker, of a reader that
// has n partitions.
func fetchGap(n int) time.Duration {
	return min(fetchGapMax, time.Duration(max(0, n-gapFreePartitions))*fetchGapEach)
}

// pacedConn is a connection to a broker. The library writes to it from one
// goroutine, a request a call, and fetches have a connection of their own.
type pacedConn struct {
	net.Conn
	pacer *pacer
	wrote time.Time // the last fetch
}

func (c *pacedConn) Write(b []byte) (int, error) {
	if isFetch(b) {
		wait.For(c.pacer.life, time.Until(c.wrote.Add(time.Duration(c.pacer.gap.Load()))))
		c.wrote = time.Now()
	}
	return c.Conn.Write(b)
}

// isFetch reports whether b begins with the head of a fetch request: its length,
// then its kind (Kafka protocol, "Request Header").
func isFetch(b []byte) bool {
	return len(b) >= 6 && kmsg.Key(binary.BigEndian.Uint16(b[4:])) == kmsg.Fetch
}
