package loop

import "time"

// Limits of one loop. Each says what it protects and where its number is from.
const (
	// turnMax bounds the time a turn spends on passes, and again on lagging
	// streams, before the loop looks at its sockets again: accepts and requests
	// wait no longer behind a pass over tens of thousands of streams.
	turnMax = 3 * time.Millisecond
	// lookShareMin is what a look at lagging streams has of a turn at least, beside
	// passes: some ten writes of a segment's worth, or a hundred of an event.
	lookShareMin = turnMax / 8
	// giveWayEvery is how long a loop serves strangers at most before threads that
	// bring a record have the processor, which a record needs some five times. It
	// costs a thousandth.
	giveWayEvery = 200 * time.Microsecond
	// clockEvery is after how many streams a pass, or a look at the lagging
	// ones, reads the clock: about half a millisecond of writes.
	clockEvery = 64
	// pumpBytesMax bounds what one stream may write before the next has its
	// turn: one segment of the log.
	pumpBytesMax = 256 << 10
	// pendingBytesMax bounds the bytes a stream holds for itself (its head,
	// its first block, re-framed events) beside the one event that may be larger.
	pendingBytesMax = 64 << 10
	// surplusBytesMax bounds what a client may send on a connection that
	// streams; it has nothing to say there. A few pipelined requests pass.
	surplusBytesMax = 64 << 10
	// discardBytesMax bounds what is read and thrown away after the last
	// answer, so that a client still sending gets to read it (RFC 9112 9.6).
	discardBytesMax = 16 << 20
	// bodyBytesMax bounds the body of a request that is read to keep the
	// connection; a larger one is refused.
	bodyBytesMax = 64 << 10
	// asksMax bounds the requests of a loop that wait for an answer from
	// elsewhere: 16 MiB of heads at most. More are sent away.
	asksMax = 1024
	// askMax bounds their wait; a browser shows nothing meanwhile.
	askMax = 5 * time.Second
	// pipelinedMax bounds the requests that are answered of one read: a write
	// each, and so half a millisecond before the next connection has its turn.
	// A client that sends more gets the connection closed behind the last
	// answer, and asks again for the others (RFC 9112 9.3.2). Browsers pipeline
	// nothing.
	pipelinedMax = 64
	// expireMax bounds the deadlines that a turn acts on: about turnMax of
	// closing connections.
	expireMax = 256
	// lookEvery is the least time between two looks at the sockets that
	// refused bytes, and lookSoon the one behind a look that found some ready:
	// each takes --notsent-lowat or somewhat more, so this bounds what a
	// client gets that catches up: 16 MB/s at least. lookCostFactor keeps the
	// looks below a twentieth of the loop. lookRestMax is the longest time:
	// asking for 100,000 sockets takes 10 ms, and what took longer was waiting
	// for a CPU.
	lookSoon       = time.Millisecond
	lookEvery      = 10 * time.Millisecond
	lookCostFactor = 20
	lookRestMax    = 200 * time.Millisecond
	// watchMax is the longest time to the deadline of a guarded stream, which
	// is by another clock than its token: that clock may be set, or the machine
	// may have slept. It is looked at again then.
	watchMax = time.Minute
	// beatEvery is the least time between two heartbeats to a stream that waits
	// for its feed: the feed also marks when one of its topics is there already.
	beatEvery = 500 * time.Millisecond
	// idleTurn is the longest time without a turn, so that health checks can
	// tell a loop with nothing to do from one that is stuck.
	idleTurn = time.Second
	// readBuffer is one per loop; it holds the largest head.
	readBuffer = 64 << 10
	// enrolParallel is how many accepted connections a loop is offered at a
	// time. gnet registers one per iteration of the loop and enroller, so a
	// loop in the middle of passes of turnMax still takes 5,000 a second; each
	// may cost a thread.
	enrolParallel = 16
	// shedRetryMin and shedRetryMax bound the retry of a stream that is ended
	// because the node is full or draining, in milliseconds.
	shedRetryMin, shedRetryMax = 5000, 15000
	// acceptBackoffMin and acceptBackoffMax bound the pause after accept was
	// refused by the system (no file descriptors left).
	acceptBackoffMin, acceptBackoffMax = 5 * time.Millisecond, time.Second
	// refusedLogEvery is the least time between two log lines about that.
	refusedLogEvery = 10 * time.Second
)

// waits are the times that connections may take; tests shorten them.
type waits struct {
	linger    time.Duration // for the peer, after our side was shut
	end       time.Duration // for a stream's last frame to be taken
	keepAlive time.Duration // between two requests
	guard     time.Duration // for the verdict on a token: two askings of the issuer
	turn      time.Duration // of the loop, at least between two turns while there are events of sockets
}

var defaultWaits = waits{
	linger: 5 * time.Second, end: 5 * time.Second, keepAlive: 60 * time.Second, guard: 15 * time.Second,
	turn: time.Millisecond,
}
