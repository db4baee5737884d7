package hostile

import (
	"context"
	"io"
	"net"
	"strings"
	"time"

	"tailcast/internal/wait"
)

// get is the head of a request for the open route, but for its end.
const get = "GET " + EventsPath + " HTTP/1.1\r\nHost: gw.test\r\n"

// slowEvery is how often a slow head gets a byte.
const slowEvery = 100 * time.Millisecond

var onConnections = []Attack{
	{Name: "none: connections to themselves", Unit: "connections", elsewhere: true, once: says(get + "\r\n")},
	{Name: "connections, closed at once", Unit: "connections", once: func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.dial(ctx, a.at.Plain)
		if err != nil {
			return 0, err
		}
		return 1, c.Close()
	}},
	{Name: "connections, reset at once", Unit: "connections", once: func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.dial(ctx, a.at.Plain)
		if err != nil {
			return 0, err
		}
		cut(c)
		return 1, nil
	}},
	{Name: "silent connections", Unit: "connections", Holds: true, once: says("")},
	{Name: "slow heads", Unit: "bytes", Holds: true, once: func(ctx context.Context, a *attacker) (n int, err error) {
		c, err := a.dial(ctx, a.at.Plain)
		if err != nil {
			return 0, err
		}
		defer cut(c)
		for _, b := range []byte(get + "X: " + strings.Repeat("x", 10_000)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return n, err
			}
			n++
			wait.For(ctx, slowEvery)
		}
		return n, nil
	}},
	{Name: "PROXY headers", Unit: "headers", once: func(ctx context.Context, a *attacker) (n int, err error) {
		for _, head := range proxyHeads {
			c, err := dialFrom(ctx, net.ParseIP(BalancerIP), a.at.Plain)
			if err != nil {
				return n, err
			}
			if _, err = io.WriteString(c, head+get+"\r\n"); err == nil {
				_, err = c.Read(a.buf)
			}
			cut(c)
			if n++; ctx.Err() != nil {
				return n, err
			}
		}
		return n, nil
	}},
}

// proxyHeads are PROXY headers that are none, or not whole, or of far too much.
var proxyHeads = []string{
	"PROXY TCP4 1.2.3.4\r\n",
	"PROXY TCP4 1.2.3.4 5.6.7.8 99999 1\r\n",
	"PROXY TCP9 " + strings.Repeat("x", 200) + "\r\n",
	"PROXY UNKNOWN " + strings.Repeat("y", 80) + "\r\n",
	"PROXY TCP6 ::1 ::2 1 2\r\n",
	proxySign + "\x21\x11\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x00\x01\x00\x02",
	proxySign + "\x21\x11\xff\xff" + strings.Repeat("z", 5000),
	proxySign + "\x2f\xff\x00\x00",
	proxySign + "\x21\x11\x0f\xff" + strings.Repeat("\x04\x00\x00", 1365), // extensions of no length
	proxySign + "\x20\x00\x00\x00",
}

// proxySign begins a header of version 2.
const proxySign = "\r\n\r\n\x00\r\nQUIT\n"
