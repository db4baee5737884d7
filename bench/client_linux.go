package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readBytes is how much one read takes: many events, and still at home in
	// the second-level cache.
	readBytes = 64 << 10
	// choreEvery is how often slow streams read, streams come back and cuts
	// are looked for.
	choreEvery = 5 * time.Millisecond
	// readyMax bounds what one wait reports, and so the time between chores.
	readyMax = 1024
)

// Client holds many streams on one epoll instance. It belongs to one
// goroutine, and makes progress only inside Open and Run. Where streams speak
// TLS that goroutine stays on its thread (runtime.LockOSThread) either always or
// never: their handshakes are coroutines of it.
type Client struct {
	cfg     Config
	to      target
	fields  string // what every request has behind the user
	request []byte // scratch
	rng     *rand.Rand
	tally   tally
	status  map[int]int64
	window  window
	seen    atomic.Int64 // events, for Seen

	ep      int
	ready   []unix.EpollEvent
	buf     []byte
	control [stampBytes]byte // scratch, of Config.Arrivals
	// opened is what was under TLS, a record at a time; nil without.
	opened []byte
	conns  []conn

	start   time.Time
	now     time.Duration // since start; read once a turn
	chores  time.Duration // when they are due
	queue   []int32       // streams to connect as soon as fewer than cfg.Opening wait
	waiting []int32       // streams that come back at their due time
	opening int           // connections that wait for their response head
	settled int           // streams that have opened once, or never will
	cuts    int           // cut by Cut, and still open
	gone    int           // streams that have ended for good
	openFor time.Duration // what the first opening took
}

// New makes a client; it connects nothing yet.
func New(cfg Config) (*Client, error) {
	to, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	cl := &Client{
		cfg: cfg, to: to,
		fields: to.rest + " HTTP/1.1\r\nHost: " + to.host + "\r\nAccept: text/event-stream\r\nCache-Control: no-cache\r\n",
		rng:    rand.New(rand.NewPCG(cfg.Seed, 0)),
		tally:  tally{verify: cfg.Verify, ids: !cfg.OtherIDs, start: time.Now()},
		status: map[int]int64{},
		ready:  make([]unix.EpollEvent, readyMax),
		buf:    make([]byte, readBytes),
		conns:  make([]conn, cfg.Conns),
	}
	cl.start = cl.tally.start
	if to.tls != nil {
		cl.opened = make([]byte, recordMax)
	}
	if cl.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	for i := range cl.conns {
		c := &cl.conns[i]
		c.fd, c.kind = -1, cfg.kind(i)
		c.judge = judge{tally: &cl.tally, stream: i, sample: c.reads() && i%cfg.Sample == 0}
		if to.each {
			c.user, c.anyUser = int64(i)+1, cfg.AnyUser
		}
		if cfg.Keys > 0 {
			c.keys = make([]keyState, cfg.Keys+1)
		}
		if i < cfg.CutOnce {
			c.cutAt = 1 + cl.rng.Int64N(cfg.CutBefore)
		}
		c.out = &c.judge
		cl.queue = append(cl.queue, int32(i))
	}
	return cl, nil
}

// Open connects every stream and returns when each has its response head. An
// error means that some have not; the client may still be used.
func (cl *Client) Open(ctx context.Context) error {
	began := time.Now()
	for cl.settled < len(cl.conns) && ctx.Err() == nil {
		if err := cl.turn(choreEvery); err != nil {
			return err
		}
	}
	cl.openFor = time.Since(began)
	if bad := cl.gone + len(cl.conns) - cl.settled; bad > 0 {
		return fmt.Errorf("%d of %d streams did not open: %s", bad, len(cl.conns), cl.whyNot(ctx))
	}
	return nil
}

func (cl *Client) whyNot(ctx context.Context) string {
	switch {
	case len(cl.tally.faults) > 0:
		return cl.tally.faults[0]
	case ctx.Err() != nil:
		return "no response head in time"
	}
	return "see the counts"
}

// Run reads for the time d, or until ctx is done.
func (cl *Client) Run(ctx context.Context, d time.Duration) error {
	return cl.runUntil(ctx, d, func() bool { return false })
}

// RunUntil reads until done, which is asked every few milliseconds, says so. It
// returns an error if that takes longer than d.
func (cl *Client) RunUntil(ctx context.Context, d time.Duration, done func() bool) error {
	if err := cl.runUntil(ctx, d, done); err != nil {
		return err
	}
	if !done() {
		return fmt.Errorf("not within %v", d)
	}
	return nil
}

// Seen is how many events have come so far. Safe from any goroutine.
func (cl *Client) Seen() int64 { return cl.seen.Load() }

// RunTotal reads until every normal and reconnecting stream has got n events
// since the start. It returns an error if that takes longer than d.
func (cl *Client) RunTotal(ctx context.Context, n int64, d time.Duration) error {
	enough := func() bool { return cl.Behind(n) == 0 }
	if err := cl.runUntil(ctx, d, enough); err != nil {
		return err
	}
	if bad := cl.Behind(n); bad > 0 {
		return fmt.Errorf("%d streams have not got %d events after %v", bad, n, d)
	}
	return nil
}

// Behind is how many of the streams that read all have fewer than n events.
func (cl *Client) Behind(n int64) (bad int) {
	for i := range cl.conns {
		c := &cl.conns[i]
		if (c.kind == Normal || c.kind == Reconnecting) && c.events < n {
			bad++
		}
	}
	return bad
}

// Live is how many of the streams with keys were told that they have caught up.
func (cl *Client) Live() int { return int(cl.tally.live.count) }

// Short is how many streams were not told by an id that they are at these next
// offsets, by partition.
func (cl *Client) Short(ends []int64) (n int) {
	var whole []byte // an id that says so: most have the same
	for i := range cl.conns {
		id := cl.conns[i].lastID
		switch {
		case len(whole) > 0 && bytes.Equal(id, whole):
		case covers(id, ends):
			whole = id
		default:
			n++
		}
	}
	return n
}

// covers reports whether an id of one topic is at these next offsets.
func covers(id []byte, ends []int64) bool {
	for p, end := range ends {
		if last, ok := readID(id, int32(p)); !ok || end > 0 && last < end-1 {
			return false
		}
	}
	return true
}

// CompareKeys compares what each stream has of each key with what it should
// have, and counts the differences.
func (cl *Client) CompareKeys(want *Changes) {
	for i := range cl.conns {
		cl.conns[i].compareKeys(want.state)
	}
}

// runUntil looks for enough each time chores are due, not each turn.
func (cl *Client) runUntil(ctx context.Context, d time.Duration, enough func() bool) error {
	end := time.Now().Add(d)
	for ctx.Err() == nil {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		due := cl.chores
		if err := cl.turn(min(left, choreEvery)); err != nil {
			return err
		}
		if cl.chores != due && enough() {
			return nil
		}
	}
	return ctx.Err()
}

// Cut makes n streams, chosen at random among the normal and reconnecting ones
// that are open, cut their connection at the next bytes that come, and come
// back.
func (cl *Client) Cut(n int) {
	for _, i := range cl.rng.Perm(len(cl.conns)) {
		c := &cl.conns[i]
		if n == 0 {
			return
		}
		if c.state == open && c.reads() && !c.cutting {
			cl.toCut(c)
			n--
		}
	}
}

// toCut has c cut its connection at the next bytes that come.
func (cl *Client) toCut(c *conn) {
	c.cutting, c.due, c.cutAt = true, cl.now, 0
	cl.cuts++
}

// Gone is how many streams have ended for good.
func (cl *Client) Gone() int { return cl.gone }

// Stall has the streams stop to read that Config.StallOnCue is for.
func (cl *Client) Stall() error {
	for i := len(cl.conns) - cl.cfg.Stalled; i < len(cl.conns); i++ {
		c := &cl.conns[i]
		c.kind = Stalled
		if c.state != open {
			continue
		}
		if err := cl.watch(c, unix.EPOLLRDHUP); err != nil {
			return err
		}
	}
	return nil
}

// Away closes every connection, as if the network had gone. Streams keep their
// last ids.
func (cl *Client) Away() {
	for i := range cl.conns {
		if c := &cl.conns[i]; c.fd >= 0 {
			cl.drop(c, &cl.tally.counts.Cut, true)
		}
	}
	cl.waiting = cl.waiting[:0]
}

// Back has every stream connect again, those that have ended for good, too.
// Open waits for them.
func (cl *Client) Back() {
	cl.queue, cl.waiting = cl.queue[:0], cl.waiting[:0]
	cl.settled, cl.gone = 0, 0
	for i := range cl.conns {
		c := &cl.conns[i]
		c.settled, c.gone = false, false
		cl.queue = append(cl.queue, int32(i))
	}
}

// Close closes every connection.
func (cl *Client) Close() error {
	for i := range cl.conns {
		if c := &cl.conns[i]; c.fd >= 0 {
			c.shut()
		}
	}
	return unix.Close(cl.ep)
}

// turn is one round of the loop: start connections, wait, read.
func (cl *Client) turn(wait time.Duration) error {
	began := time.Since(cl.start)
	if cl.tally.measuring {
		cl.tally.turns.record(began - cl.now)
	}
	cl.now = began
	if cl.now >= cl.chores {
		cl.doChores()
		cl.chores = cl.now + choreEvery
	}
	for len(cl.queue) > 0 && cl.opening < cl.cfg.Opening {
		i := cl.queue[0]
		cl.queue = cl.queue[1:]
		if err := cl.connect(i); err != nil {
			return err
		}
	}
	ms := int((wait + time.Millisecond - 1) / time.Millisecond)
	n, err := unix.EpollWait(cl.ep, cl.ready, ms)
	cl.now = time.Since(cl.start)
	if err != nil {
		if err == unix.EINTR {
			return nil
		}
		return fmt.Errorf("epoll_wait: %w", err)
	}
	for _, ev := range cl.ready[:n] {
		if c := &cl.conns[ev.Fd]; c.turn == ev.Pad { // else it closed a moment ago
			if err := cl.handle(c, ev.Events); err != nil {
				return err
			}
		}
	}
	return nil
}

// doChores does what is due by time.
func (cl *Client) doChores() {
	cl.seen.Store(cl.tally.counts.Events)
	if cl.tally.measuring && cl.now >= cl.window.cut {
		cl.endSlice()
	}
	still := cl.waiting[:0]
	for _, i := range cl.waiting {
		if cl.conns[i].due <= cl.now {
			cl.queue = append(cl.queue, i)
		} else {
			still = append(still, i)
		}
	}
	cl.waiting = still
	if cl.cfg.Slow == 0 && cl.cfg.Reconnecting == 0 && cl.cuts == 0 {
		return
	}
	for i := range cl.conns {
		c := &cl.conns[i]
		if c.state != open {
			continue
		}
		switch {
		case c.kind == Slow:
			cl.readSlowly(c)
		case c.cutting && cl.now > c.due+cutWithin:
			cl.drop(c, &cl.tally.counts.Cut, true)
		case c.kind == Reconnecting && !c.cutting && cl.cfg.ReconnectEvery > 0 && cl.now >= c.due:
			cl.toCut(c)
		}
	}
}

// handle acts on what epoll says of c.
func (cl *Client) handle(c *conn, events uint32) error {
	switch {
	case c.state == connecting:
		return cl.ask(c)
	case c.state == shaking:
		return cl.shake(c)
	case c.kind == Stalled || c.kind == Slow: // they ask only for the end
		cl.drop(c, cl.endOf(c), false)
	case c.cutting:
		cl.read(c, 1+cl.rng.IntN(cutBytesMax))
		if c.state == open {
			cl.drop(c, &cl.tally.counts.Cut, true)
		}
	default:
		cl.read(c, readBytes)
		if c.cutAt > 0 && c.events >= c.cutAt && c.state == open {
			cl.toCut(c)
		}
	}
	return nil
}

// endOf tells a reset from a FIN for a stream that doesn't read.
func (cl *Client) endOf(c *conn) *int64 {
	errno, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && errno == 0 {
		return &cl.tally.counts.EndedEOF
	}
	return &cl.tally.counts.EndedReset
}
