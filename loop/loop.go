// Package loop holds the connections: it accepts them, reads requests, and
// writes the hub's logs to the sockets of the streams. Each loop is one gnet
// event loop with its own connections, lists, timers and scratch; nothing of
// it is shared, so nothing of it is locked. gnet is met here alone.
//
// It does not encode records, know Kafka, or hold more than one unfinished
// request or one re-framed event a connection.
package loop

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"

	"tailcast/http1"
	"tailcast/hub"
	"tailcast/internal/share"
	"tailcast/route"
)

// Loop is one event loop. Its methods run on its own goroutine, but for
// order, which may be called from any.
type Loop struct {
	gnet.BuiltinEventEngine

	// Fixed before the first connection.
	srv    *Server
	box    *hub.Mailbox
	waker  *waker
	client *gnet.Client
	timer  *time.Timer // takes a turn when nothing else asks for one
	began  time.Time

	// Owned by the loop.
	el       gnet.EventLoop
	now      time.Duration // since began, as of the last tell
	armed    time.Duration // when the timer fires, 0: it does not
	turned   time.Duration // when the last turn ended
	turnCost time.Duration // what it took
	gave     time.Duration // when the loop gave way last
	inside   bool          // a turn or an event of a connection is under way
	answers  int           // of the read under way
	all      []*conn       // every connection
	feeds    map[*hub.Feed]*streams
	passes   []*streams    // with streams to serve, in the order they will be
	lagging  roster        // the socket refused bytes, or there is more than a turn may write
	looking  bool          // a walk through lagging is under way
	lookDue  time.Duration // when the next one begins
	lookCost time.Duration // of asking the kernel, in the one under way
	lookRest time.Duration // the least time between it and the next
	polled   []unix.PollFd
	wheel    wheel
	draining drain
	rand     *rand.Rand
	counts   counts
	ownHeld  int      // bytes that personal streams hold
	judged   []judged // checks that are done and whose requests wait
	asks     int      // requests that wait for an answer from elsewhere

	// Scratch of one turn or event.
	req    http1.Request
	values route.Values // of the request, once its route is found; the path's alias path
	marked []*hub.Reader
	owns   []*hub.Own
	found  []*hub.Watch
	finds  []find // of found, by index
	pieces []piece
	times  []int64
	out    []byte // an answer, a head with its first block, re-framed events
	sealed []byte // records that a session made, until its socket took them
	opened []byte // what a session read, recordMax bytes; nil without --listen-tls
	path   []byte // the decoded path, then the decoded id
	fields []byte // the CORS lines of the answer
	idle   []*inbound

	touched int64 // keeps the compiler from leaving out what only fills caches
	date    date

	// Written by the loop, read by others.
	stats    stats
	verdicts inbox[judged]  // checks that are done: one a connection at most, as many as may wait in all (auth)
	heardOf  inbox[*asking] // requests whose questions are answered; at most asksMax, and those that wait no longer
	orders   atomic.Int32   // the highest order given
}

// OnOpen takes a connection. Its context is the conn; the wake socket has none.
func (l *Loop) OnOpen(gc gnet.Conn) ([]byte, gnet.Action) {
	c, ok := gc.Context().(*conn)
	if !ok {
		l.el = gc.EventLoop()
		l.tell()
		l.settle()
		return nil, gnet.None
	}
	l.inside = true
	l.tell()
	c.gc, c.fd = gc, int32(gc.Fd())
	c.all = int32(len(l.all))
	l.all = append(l.all, c)
	l.wheel.set(c, l.now+l.srv.cfg.HeaderTimeout)
	ok = true
	if c.edge != nil {
		l.box.Enter()
		ok = l.begin(c)
		l.box.Leave()
	}
	return nil, l.eventOver(c, ok)
}

// OnTraffic reads what a client sent, or takes a turn.
func (l *Loop) OnTraffic(gc gnet.Conn) gnet.Action {
	b, _ := gc.Next(-1)
	c, ok := gc.Context().(*conn)
	if !ok {
		l.turn()
		return gnet.None
	}
	l.inside, l.answers = true, 0
	l.tell()
	l.box.Enter()
	if s := c.session(); s != nil {
		ok = l.unseal(c, s, b)
	} else {
		ok = l.receive(c, b)
	}
	l.box.Leave()
	return l.eventOver(c, ok)
}

// eventOver ends what gnet called for, and the connection unless ok.
func (l *Loop) eventOver(c *conn, ok bool) gnet.Action {
	if c.state == stateAway {
		l.handOver(c)
	}
	l.settle()
	l.inside = false
	if !ok || !l.keepPace(c) {
		return gnet.Close
	}
	return gnet.None
}

// keepPace takes a turn between two events of sockets when one is due: gnet
// brings up to 1,024 of them before it looks for more, the wake among them, and
// streams are not to wait behind whatever so many strangers have sent. Turns get
// half of the time at most, and passes three quarters of it. It is false if c, whose event is over, was closed by
// the turn; nil is for none.
func (l *Loop) keepPace(c *conn) bool {
	if l.inside {
		return true
	}
	if !l.waker.awake.Load() {
		l.giveWay()
		return true
	}
	rest := l.turnCost
	if len(l.passes) > 0 {
		rest /= 3
	}
	if l.tell(); l.now-l.turned >= max(l.srv.waits.turn, rest) {
		l.turn()
	}
	return c == nil || c.state != stateGone
}

// giveWay lets other threads have the processor now and then while nothing is to
// be written: a record is on its way through some of them, and strangers' requests
// are not to hold it up.
func (l *Loop) giveWay() {
	if l.now-l.gave >= giveWayEvery {
		share.GiveWay()
		l.tell()
		l.gave = l.now
	}
}

// begin takes what of a new connection is here already. It is false when the
// connection is to be closed.
func (l *Loop) begin(c *conn) bool {
	first, s := c.edge.first, c.edge.tls
	c.edge.first = nil
	if s != nil {
		l.resume(s)
	} else if c.edge.proxy {
		c.state = stateProxy
	}
	if first != nil && !l.receive(c, first) {
		return false
	}
	return s == nil || l.unseal(c, s, nil)
}

// OnClose forgets a connection, whoever ended it.
func (l *Loop) OnClose(gc gnet.Conn, err error) gnet.Action {
	if c, ok := gc.Context().(*conn); ok {
		if err != nil && c.reason == closePeer { // not decided by anyone before
			c.failed(err)
		}
		l.forget(c)
		l.keepPace(nil)
	}
	return gnet.None
}

// tell reads the clock.
func (l *Loop) tell() { l.now = time.Since(l.began) }

// tick is the time in the wheel's ticks, for what is kept in every connection.
func (l *Loop) tick() int64 { return int64(l.now / wheelTick) }

// since is the time since a tick.
func (l *Loop) since(tick int64) time.Duration { return l.now - time.Duration(tick)*wheelTick }

// turn does what the loop was woken for. What does not fit into its limits is
// left to the next turn, which comes when the sockets have been looked at.
func (l *Loop) turn() {
	l.inside = true
	l.waker.woken()
	l.tell()
	began := l.now
	if l.armed > 0 && l.armed <= l.now {
		l.armed = 0
	}
	l.box.Enter()
	l.marked = l.box.Take(l.marked[:0])
	for _, r := range l.marked {
		l.pass(r)
	}
	clear(l.marked)
	l.takeOwn()
	l.takeAnswers()
	busy := l.takeVerdicts()
	busy = l.runPasses() || busy
	busy = l.look() || busy
	busy = l.wheel.advance(l.now, expireMax, l.expired) || busy
	l.obey()
	l.box.Leave()
	l.counts.turns++
	l.settle()
	l.inside = false
	l.turned = time.Since(l.began)
	l.turnCost = l.turned - began
	if busy {
		l.waker.wake()
		// A loop that always has more to do would hold its thread for the
		// scheduler's 10 ms at a time, and the tail passes a record through
		// several goroutines.
		runtime.Gosched()
	}
}

// settle ends a turn or an event: it makes sure that a turn comes when the
// lagging list, a deadline or the drain needs one, and publishes the counts.
func (l *Loop) settle() {
	l.counts.connections, l.counts.lagging = len(l.all), l.lagging.len()
	l.stats.publish(&l.counts, l.now)
	next := l.now + idleTurn
	if l.wheel.n > 0 {
		next = min(next, l.wheel.next())
	}
	if l.lagging.len() > 0 {
		next = min(next, l.lookDue)
	}
	if l.draining.due > 0 {
		next = min(next, l.draining.due)
	}
	if l.armed > 0 && l.armed <= next {
		return
	}
	l.armed = next
	l.timer.Reset(max(next-l.now, time.Millisecond))
}

// close ends a connection at once and counts why. It must not be called for
// the connection whose OnTraffic runs: that one returns false instead.
func (l *Loop) close(c *conn, why closeReason) {
	c.reason = why
	_ = l.el.Close(c.gc) // it is gone either way; OnClose has run when Close returns
}

// hangUp ends a connection that is at rest, saying so where TLS has a word
// for it. It must not be called for the connection whose OnTraffic runs.
func (l *Loop) hangUp(c *conn, why closeReason) {
	l.notify(c)
	l.close(c, why)
}

// forget takes c out of everything that knows it.
func (l *Loop) forget(c *conn) {
	last := len(l.all) - 1
	l.all[c.all] = l.all[last]
	l.all[c.all].all = c.all
	l.all[last] = nil
	l.all = l.all[:last]
	l.unlist(c)
	l.detach(c)
	c.unlease()
	l.ownHeld -= int(c.ownHeld)
	l.wheel.clear(c)
	c.release()
	if c.in != nil {
		if c.in.check != nil {
			c.in.check.Abandon()
		}
		l.putInbound(c)
	}
	c.state = stateGone
	l.counts.closed[c.reason]++
	l.noteEnd(c)
	if c.reason != closeAway {
		l.srv.gone(c)
	}
}

// unlist takes c out of the list it is in.
func (l *Loop) unlist(c *conn) {
	if c.list != nil {
		c.list.remove(c)
	}
}

// expired is called when the deadline of c has come.
func (l *Loop) expired(c *conn) {
	switch c.state {
	case stateHead:
		l.headLate(c)
	case stateGuard:
		l.answerLate(c)
	case stateAsking:
		c.in.asking.late = true
		l.again(c)
	case stateStream:
		l.streamDue(c)
	case stateEnding, stateLast:
		l.drop(c, c.reason)
	case stateLinger:
		l.close(c, c.reason)
	default:
		l.hangUp(c, closeTimeout)
	}
}
