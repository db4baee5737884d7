package loop

import (
	"time"

	"tailcast/frame"
	"tailcast/http1"
)

// end begins the clean end of a stream: the frame it is in is finished, then
// its farewell follows, for endMax together. It must not be called for the
// connection whose OnTraffic runs.
func (l *Loop) end(c *conn, why closeReason) {
	c.reason = why
	c.unlease()
	l.wheel.set(c, l.now+l.srv.waits.end)
	var got pumpResult
	if c.list == &c.stream.waiting || c.own != nil { // between two frames
		got = l.finish(c)
	} else {
		c.state, c.endAt = stateEnding, c.stream.reader.Boundary(c.place)
		got = l.pump(c)
	}
	switch got {
	case pumpEnded:
		l.ended(c)
	case pumpFull, pumpMore:
		l.lag(c)
	default:
		l.drop(c, why)
	}
}

// finish writes the last bytes of a stream that is at a frame boundary: when
// to come back, and the end of the response.
func (l *Loop) finish(c *conn) pumpResult {
	c.state = stateLast
	retry := l.retry()
	if c.reason == closeRefused || c.reason == closeFeed {
		retry = l.shedRetry()
	}
	l.out = l.farewell(l.out[:0], c, retry)
	c.hold(l.out)
	if got := l.flush(c); got != pumpCaughtUp {
		return got
	}
	return l.notify(c)
}

// ended shuts our side of a stream whose last bytes are written.
func (l *Loop) ended(c *conn) {
	l.unlist(c)
	l.detach(c)
	if !l.linger(c, c.reason) {
		l.close(c, c.reason)
	}
}

// farewell appends the end of a response.
func (l *Loop) farewell(dst []byte, c *conn, retry int) []byte {
	say := frame.AppendRetry
	if c.stream == nil || c.resume != nil || c.own != nil {
		say = frame.AppendRetryLine // it may have been told no id
	}
	if c.plain {
		return append(dst, frame.Unchunk(say(nil, retry))...)
	}
	return append(say(dst, retry), frame.LastChunk...)
}

// shed ends a stream right behind its head, which is in l.out: the client is
// to come back later, and for EventSource any status but 200 means never.
func (l *Loop) shed(c *conn, why shedReason) bool {
	l.counts.shed[why]++
	if l.req.Method != http1.MethodHead {
		l.out = l.farewell(l.out, c, l.shedRetry())
	}
	return l.answered(c, l.out, false)
}

// shedRetry is the reconnection time of a stream that is not served now.
func (l *Loop) shedRetry() int { return shedRetryMin + l.rand.IntN(shedRetryMax-shedRetryMin+1) }

// retry is the reconnection time of one stream in milliseconds: spread, so
// that the streams a node loses at once do not come back at once.
func (l *Loop) retry() int {
	r := l.srv.cfg.Retry
	return int((r/2 + time.Duration(l.rand.Int64N(int64(r)+1))) / time.Millisecond)
}
