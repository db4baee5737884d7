package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
)

// dial connects from the attacker's address. The end of ctx ends what is done
// with the connection.
func (a *attacker) dial(ctx context.Context, addr string) (*net.TCPConn, error) {
	return dialFrom(ctx, a.from, addr)
}

func dialFrom(ctx context.Context, from net.IP, addr string) (*net.TCPConn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Control: portLater, KeepAlive: -1}
	c, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoConnection, err)
	}
	if end, ok := ctx.Deadline(); ok {
		err = c.SetDeadline(end)
	}
	return c.(*net.TCPConn), err
}

// open connects and sends text.
func (a *attacker) open(ctx context.Context, text string) (*net.TCPConn, error) {
	c, err := a.dial(ctx, a.at.Plain)
	if err != nil {
		return nil, err
	}
	if _, err = io.WriteString(c, text); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// cut ends a connection by RST, as a client does that is switched off: nothing
// is left of it at either end.
func cut(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// says is an attack that sends text on a connection of its own and waits for
// its end.
func says(text string) func(context.Context, *attacker) (int, error) {
	return func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.open(ctx, text)
		if err != nil {
			return 0, err
		}
		defer cut(c)
		_, err = a.rest(c)
		return 1, err
	}
}

// begins is an attack that sends text, waits for the beginning of an answer,
// and cuts the connection.
func begins(text string) func(context.Context, *attacker) (int, error) {
	return func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.open(ctx, text)
		if err != nil {
			return 0, err
		}
		defer cut(c)
		_, err = c.Read(a.buf)
		return 1, err
	}
}

// rest reads to the end, and counts the answers among what comes.
func (a *attacker) rest(r io.Reader) (answers int, err error) {
	for {
		n, err := r.Read(a.buf)
		answers += bytes.Count(a.buf[:n], statusLine)
		if err != nil {
			return answers, err
		}
	}
}

// statusLine begins an answer. One that is cut in two by a read is not counted.
var statusLine = []byte("HTTP/1.1 ")

// ask sends requests one after the other on a connection, each behind the
// answer to the one before, and counts them.
func (a *attacker) ask(ctx context.Context, requests int, request func(i int) string) (n int, err error) {
	c, err := a.dial(ctx, a.at.Plain)
	if err != nil {
		return 0, err
	}
	defer cut(c)
	for n < requests {
		if _, err = io.WriteString(c, request(n)); err != nil {
			return n, err
		}
		if _, err = c.Read(a.buf); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
