package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
)

// The requests that attackers send by the thousand.
const (
	nowhere   = "OPTIONS /nowhere HTTP/1.1\r\nHost: gw.test\r\n\r\n" // it keeps the connection
	preflight = "OPTIONS " + EventsPath + " HTTP/1.1\r\nHost: gw.test\r\nOrigin: https://app.test\r\nAccess-Control-Request-Method: GET\r\n" +
		"Access-Control-Request-Headers: last-event-id\r\n\r\n"
	// pipelined is how many requests are sent in one go.
	pipelined = 20_000
)

var onRequests = []Attack{
	{Name: "requests", Unit: "requests", once: func(ctx context.Context, a *attacker) (int, error) {
		return a.ask(ctx, 50, func(int) string { return nowhere })
	}},
	{Name: "pipelined requests", Unit: "requests", once: pipeline(nowhere)},
	{Name: "preflights", Unit: "requests", once: pipeline(preflight)},
	{Name: "largest heads", Unit: "requests", once: pipeline("OPTIONS /nowhere HTTP/1.1\r\nHost: gw.test\r\n" + manyFields + "\r\n")},
	{Name: "answers not read", Unit: "bytes", once: func(ctx context.Context, a *attacker) (n int, err error) {
		c, err := a.dial(ctx, a.at.Plain)
		if err != nil {
			return 0, err
		}
		defer cut(c)
		if err = c.SetReadBuffer(4096); err != nil {
			return 0, err
		}
		many := strings.Repeat(nowhere, 100)
		for err == nil {
			var sent int
			sent, err = io.WriteString(c, many)
			n += sent
		}
		return n, err
	}},
	{Name: "huge heads", Unit: "connections", once: says(get + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 64))},
	{Name: "bodies in small chunks", Unit: "requests", once: pipeline("POST " + EventsPath + " HTTP/1.1\r\nHost: gw.test\r\nTransfer-Encoding: chunked\r\n\r\n" +
		strings.Repeat("1\r\nx\r\n", 2000) + "0\r\n\r\n")},
	{Name: "smuggling", Unit: "connections", once: func(ctx context.Context, a *attacker) (n int, err error) {
		for _, text := range smuggled {
			made, err := says(text)(ctx, a)
			if n += made; ctx.Err() != nil {
				return n, err
			}
		}
		return n, nil
	}},
}

// manyFields are as many header fields as a head may have.
var manyFields = func() string {
	var b strings.Builder
	for i := range 90 {
		fmt.Fprintf(&b, "X-%d: %s\r\n", i, strings.Repeat("x", 120))
	}
	return b.String()
}()

// pipeline is an attack that sends requests without waiting for answers, and
// reads those that come.
func pipeline(request string) func(context.Context, *attacker) (int, error) {
	return func(ctx context.Context, a *attacker) (int, error) {
		c, err := a.dial(ctx, a.at.Plain)
		if err != nil {
			return 0, err
		}
		written := make(chan struct{})
		go func() {
			defer close(written)
			sendMany(c, request)
		}()
		n, err := a.rest(c)
		cut(c)
		<-written
		return n, err
	}
}

// sendMany sends a request again and again, in pieces of some 64 KB.
func sendMany(c *net.TCPConn, request string) {
	each := max(1, 64<<10/len(request))
	piece := strings.Repeat(request, each)
	for range pipelined / each {
		if _, err := io.WriteString(c, piece); err != nil {
			return
		}
	}
	_ = c.CloseWrite()
}

// smuggled are requests that two readers could take for different ones.
var smuggled = []string{
	"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
	"POST /events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
	"POST /events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
	"GET /events HTTP/1.1\nHost: a\rX: b\n\n",
	"GET /events HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
