package httpcases

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

const (
	// sendWithin bounds the sending: ten times what the longest input needs
	// byte by byte.
	sendWithin = 30 * time.Second
	// smallMax is the longest input that is cut everywhere; a longer one is
	// cut at each bigStep-th place, and has no pauses when sent byte by byte.
	smallMax = 2 << 10
	bigStep  = 97
)

// play sends c's input in one way and reads until nothing more is to be learnt.
func (opts *Options) play(ctx context.Context, addr string, c *Case, way cut) *outcome {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return &outcome{err: err}
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	p := play{opts: opts, c: c, conn: conn, sent: make(chan struct{})}
	p.answers = answers{interim: c.interim(), heads: c.heads()}
	go p.send(way)
	p.read()
	conn.Close() // ends send, too
	<-p.sent
	if err := ctx.Err(); err != nil {
		p.outcome.err = err
	}
	return &p.outcome
}

// play is one connection of a case.
type play struct {
	opts *Options
	c    *Case
	conn net.Conn
	sent chan struct{} // closed when the input is sent, or can't be

	answers answers
	outcome outcome
}

// send sends the input and then wakes read. A server that has closed already
// may be right, so an error is none.
func (p *play) send(way cut) {
	_ = p.conn.SetWriteDeadline(time.Now().Add(sendWithin))
	in := p.c.Input
	switch {
	case way.at > 0:
		_, _ = p.conn.Write(in[:way.at])
		pause()
		_, _ = p.conn.Write(in[way.at:])
	case way.at < 0:
		for i := range in {
			if _, err := p.conn.Write(in[i : i+1]); err != nil {
				break
			}
			if len(in) <= smallMax {
				pause()
			}
		}
	default:
		_, _ = p.conn.Write(in)
	}
	if p.c.HalfClose {
		_ = p.conn.(*net.TCPConn).CloseWrite()
	}
	close(p.sent)
	_ = p.conn.SetReadDeadline(time.Now())
}

// pause lets the server read what was written. It can't be seen from outside
// whether it has; a pause too short makes the test weaker, not wrong.
func pause() {
	time.Sleep(time.Millisecond) //nolint:forbidigo // see above: there is no condition to wait for
}

// read reads until the connection ends, or until the answers are as they may
// stay and nothing came for a while, or until patience ends.
func (p *play) read() {
	o := &p.outcome
	var buf [16 << 10]byte
	var sentAt, last time.Time // last: when the input was sent, or bytes came
	for o.err == nil {
		if !sentAt.IsZero() { // before, send sets the deadline
			_ = p.conn.SetReadDeadline(last.Add(p.patience()))
		}
		n, err := p.conn.Read(buf[:])
		if n > 0 {
			last = time.Now()
			o.err = p.answers.feed(buf[:n])
			if len(o.answers) == 0 && len(p.answers.list) > 0 && !sentAt.IsZero() {
				o.first = time.Since(sentAt)
			}
			o.answers, o.raw = p.answers.list, p.answers.raw
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && sentAt.IsZero():
			sentAt, last = time.Now(), time.Now()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil:
			o.ended = true
			if o.err == nil && p.answers.torn() {
				o.err = errors.New("the connection ended inside an answer")
			}
			return
		}
	}
}

// patience is how long to wait for the next bytes once the input is sent.
func (p *play) patience() time.Duration {
	switch {
	case len(p.c.judge(&p.outcome, nil)) == 0:
		return p.opts.Quiet
	case p.c.Wait == waitHeaderTimeout:
		return p.opts.HeaderTimeout + p.opts.EndWithin
	case len(p.outcome.answers) == 0:
		return p.opts.AnswerWithin
	}
	return p.opts.EndWithin
}
