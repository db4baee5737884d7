package loop

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tailcast/http1"
)

const (
	// journalMax bounds the lines that wait to be written; a disk or a terminal
	// that does not keep up costs lines, not streams.
	journalMax = 1024
	// auditEvery is the least time between two lines about one kind of refusal.
	auditEvery = 10 * time.Second
	// loggedPathMax bounds a path in a line.
	loggedPathMax = 256
)

// journal writes the lines about connections: the access log, if it is on, and
// refusals. Loops hand them to a goroutine, for a write to a log may block. It
// never holds a query, a header or a body: there are the secrets.
type journal struct {
	log    *slog.Logger
	sample int // one of so many requests is logged; 0: none
	lines  chan line
	done   chan struct{} // closed by stop
	lost   atomic.Uint64
	wg     sync.WaitGroup

	mu       sync.Mutex
	refusals map[string]*refusals // by reason, of which there are as many as in the code
}

// line is one line to be written.
type line struct {
	at    time.Time
	level slog.Level
	what  string
	attrs []slog.Attr
}

// refusals are those for one reason since the last line about them.
type refusals struct {
	count  uint64
	logged time.Time
}

func newJournal(log *slog.Logger, sample int) *journal {
	return &journal{log: log, sample: sample, lines: make(chan line, journalMax), done: make(chan struct{}), refusals: map[string]*refusals{}}
}

func (j *journal) start() { j.wg.Go(j.write) }

// stop ends the goroutine when it has written what waits. What is put later is
// lost.
func (j *journal) stop() {
	close(j.done)
	j.wg.Wait()
}

func (j *journal) write() {
	for {
		select {
		case l := <-j.lines:
			j.print(l)
			continue
		default:
		}
		if n := j.lost.Swap(0); n > 0 {
			j.log.Warn("log lines were lost: the log is too slow", slog.Uint64("count", n))
		}
		select {
		case l := <-j.lines:
			j.print(l)
		case <-j.done:
			return
		}
	}
}

func (j *journal) print(l line) {
	ctx := context.Background()
	if !j.log.Enabled(ctx, l.level) {
		return
	}
	r := slog.NewRecord(l.at, l.level, l.what, 0)
	r.AddAttrs(l.attrs...)
	_ = j.log.Handler().Handle(ctx, r) // there is nowhere to say it
}

// put has a line written, if there is room. Safe from any goroutine.
func (j *journal) put(l line) {
	select {
	case j.lines <- l:
	default:
		j.lost.Add(1)
	}
}

// refused notes that a connection or request of addr was refused. One line says
// how many were, and who the last one is. Safe from any goroutine.
func (j *journal) refused(reason string, addr netip.Addr) {
	now := time.Now()
	j.mu.Lock()
	r := j.refusals[reason]
	if r == nil {
		r = &refusals{}
		j.refusals[reason] = r
	}
	r.count++
	count := r.count
	due := now.Sub(r.logged) >= auditEvery
	if due {
		r.logged, r.count = now, 0
	}
	j.mu.Unlock()
	if due {
		j.put(line{now, slog.LevelWarn, "refused", []slog.Attr{
			slog.String("reason", reason), slog.String("address", addr.String()), slog.Uint64("count", count),
		}})
	}
}

// samples draws whether a request is logged.
func (j *journal) samples(r *rand.Rand) bool {
	return j.sample == 1 || j.sample > 1 && r.IntN(j.sample) == 0
}

// request logs an answer.
func (j *journal) request(addr netip.Addr, method, path string, status int) {
	j.put(line{time.Now(), slog.LevelInfo, "request", []slog.Attr{
		slog.String("address", addr.String()), slog.String("method", method),
		slog.String("path", path[:min(len(path), loggedPathMax)]), slog.Int("status", status),
	}})
}

// refusalOf names an answer among the reasons for refusals.
var refusalOf = func() map[int]string {
	all := map[int]string{}
	for _, status := range statuses {
		if status >= 400 && status != 404 { // which everybody gets who mistypes
			all[status] = "status " + strconv.Itoa(status)
		}
	}
	return all
}()

// note counts an answer and logs it, if it is drawn; r is nil if the request
// could not be read.
func (l *Loop) note(c *conn, r *http1.Request, status int) (logged bool) {
	l.counts.answered(status)
	j := l.srv.journal
	if reason := refusalOf[status]; reason != "" {
		j.refused(reason, c.addr())
	}
	if !j.samples(l.rand) {
		return false
	}
	var method, path string
	if r != nil {
		method, path = string(r.MethodName), string(r.Path)
	}
	j.request(c.addr(), method, path, status)
	return true
}

// noteOpen has the end of a stream logged, as its beginning was.
func (l *Loop) noteOpen(c *conn) {
	if c.edge == nil {
		c.edge = &edge{}
	}
	c.edge.opened = max(1, l.tick())
}

// noteEnd logs the end of such a stream.
func (l *Loop) noteEnd(c *conn) {
	if c.edge == nil || c.edge.opened == 0 {
		return
	}
	l.srv.journal.put(line{time.Now(), slog.LevelInfo, "stream ended", []slog.Attr{
		slog.String("address", c.addr().String()), slog.String("reason", closeNames[c.reason]),
		slog.Duration("after", l.since(c.edge.opened).Round(wheelTick)),
	}})
}

// Answered logs a request that Site.Files answered. The path is without query.
// Safe from any goroutine.
func (s *Server) Answered(addr net.Addr, method, path string, status int) {
	if s.journal.sample == 0 || s.journal.sample > 1 && rand.IntN(s.journal.sample) != 0 {
		return
	}
	var ip netip.Addr
	if tcp, ok := addr.(*net.TCPAddr); ok {
		ip = tcp.AddrPort().Addr().Unmap()
	}
	s.journal.request(ip, method, path, status)
}
