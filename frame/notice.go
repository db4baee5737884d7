package frame

import "strconv"

// retryMin is the shortest reconnection time that is ever sent, in
// milliseconds: with 0 a browser would reconnect in a tight loop.
const retryMin = 1000

// AppendPreamble appends the first frame of a stream: how long a browser
// waits before it reconnects, in milliseconds (at least 1000), and the
// stream's position. It has no data, so no event fires; but a stream that
// breaks before its first event has an id to resume from.
//
// A nil id means that the position is not known yet: a comment takes its
// place, and AppendIDBlock follows when it is. There is no empty line then:
// a reader that begins a connection without an id (WHATWG HTML 9.2.6) would
// forget the one it has at the end of a block.
func AppendPreamble(dst []byte, retryMillis int, id []byte) []byte {
	dst, c := beginChunk(dst, len("retry: 10000\n")+len(idField)+len(id)+len("\n\n"))
	dst = appendRetry(dst, retryMillis)
	if id == nil {
		return c.end(append(dst, ":\n"...))
	}
	return c.end(append(appendIDLine(dst, id), '\n'))
}

// Live is a frame with the event that says that a stream has caught up with
// what is produced now. It has no id: the position is that of the event before.
const Live = "16\r\nevent: live\ndata: {}\n\n\r\n"

// AppendRetry appends a frame that only sets the reconnection time: the last
// word to a stream that is ended on purpose. The position stays.
func AppendRetry(dst []byte, retryMillis int) []byte {
	dst, c := beginChunk(dst, len("retry: 10000\n\n"))
	return c.end(append(appendRetry(dst, retryMillis), '\n'))
}

// AppendRetryLine is AppendRetry without the end of the block: for a stream
// that was told no id yet, and before a resync event, whose block it joins.
func AppendRetryLine(dst []byte, retryMillis int) []byte {
	dst, c := beginChunk(dst, len("retry: 10000\n"))
	return c.end(appendRetry(dst, retryMillis))
}

// AppendIDBlock appends a frame that moves a stream's position and fires
// nothing (WHATWG HTML 9.2.6: a block without data only sets the id).
func AppendIDBlock(dst, id []byte) []byte {
	dst, b := beginBlock(dst, id, nil, 0)
	dst, _ = b.end(dst)
	return dst
}

func appendRetry(dst []byte, millis int) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, int64(max(millis, retryMin)), 10)
	return append(dst, '\n')
}

// AppendChallenge appends the event that asks a client for its next token: what
// to send, to the stream's own path. answer is the value of the header by which
// the challenge is known again: letters, digits, dots, dashes and underscores.
// The event has no id.
func AppendChallenge(dst []byte, answer string) []byte {
	const (
		before = "event: challenge\ndata: " +
			`{"method":"POST","headers":{"content-type":"application/x-challenge-response","x-challenge":"`
		after = "\"}}\n\n"
	)
	dst, c := beginChunk(dst, len(before)+len(answer)+len(after))
	dst = append(dst, before...)
	dst = append(dst, answer...)
	return c.end(append(dst, after...))
}
