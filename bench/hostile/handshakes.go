package hostile

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
)

// recordHead is the head of a TLS record of a ClientHello, and that of the
// ClientHello itself.
const recordHead = "\x16\x03\x01\x07\x00\x01"

var onTLS = []Attack{
	{Name: "garbage for TLS", Unit: "connections", once: func(ctx context.Context, a *attacker) (int, error) {
		b := make([]byte, 2000)
		_, _ = a.rand.Read(b) // it can't fail
		copy(b, recordHead)
		return a.sealed(ctx, b)
	}},
	{Name: "half handshakes", Unit: "connections", Holds: true, once: func(ctx context.Context, a *attacker) (int, error) {
		return a.sealed(ctx, []byte("\x16\x03\x01\x02\x00\x01\x00"))
	}},
	{Name: "handshakes", Unit: "handshakes", once: func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.dial(ctx, a.at.TLS)
		if err != nil {
			return 0, err
		}
		defer cut(c)
		if err := tls.Client(c, believing).HandshakeContext(ctx); err != nil {
			return 0, err
		}
		return 1, nil
	}},
	// What costs the attacker nothing: the same bytes each time, and no look at
	// the answer, which the gateway has to sign.
	{Name: "hellos", Unit: "hellos", once: func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.dial(ctx, a.at.TLS)
		if err != nil {
			return 0, err
		}
		defer cut(c)
		if _, err = c.Write(hello()); err == nil {
			_, err = c.Read(a.buf)
		}
		return 1, err
	}},
}

// believing is the configuration of a client that asks for no proof.
var believing = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // an attacker

// sealed sends b to the TLS listener and waits for the end.
func (a *attacker) sealed(ctx context.Context, b []byte) (int, error) {
	c, err := a.dial(ctx, a.at.TLS)
	if err != nil {
		return 0, err
	}
	defer cut(c)
	if _, err = c.Write(b); err == nil {
		_, err = a.rest(c)
	}
	return 1, err
}

// hello is the first record of a client.
var hello = sync.OnceValue(func() []byte {
	var c recorder
	_ = tls.Client(&c, believing).Handshake() // it ends when there is a hello
	return c.first
})

// recorder is a connection that keeps what is written first, and ends.
type recorder struct {
	net.Conn
	first []byte
}

var errRecorded = errors.New("recorded")

func (r *recorder) Write(b []byte) (int, error) {
	r.first = append([]byte(nil), b...)
	return 0, errRecorded
}

func (r *recorder) Close() error { return nil }
