package testkit

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"tailcast/internal/ssetest"
)

// Conn is one connection to a server. What is read of it is kept in Raw and
// taken for an event stream.
type Conn struct {
	net.Conn
	Raw    []byte // everything read so far
	Stream ssetest.Stream

	events []ssetest.Event // read and not yet returned
	end    error           // why nothing more can be read
}

// Dial connects to addr. The connection is closed when the test ends.
func Dial(t testing.TB, addr string) *Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &Conn{Conn: c}
}

// Open connects to addr and asks for target, with header lines besides Host
// ("Last-Event-ID: v1:0-7").
func Open(t testing.TB, addr, target string, header ...string) *Conn {
	t.Helper()
	c := Dial(t, addr)
	c.Ask(t, addr, target, header...)
	return c
}

// Ask asks for target.
func (c *Conn) Ask(t testing.TB, addr, target string, header ...string) {
	t.Helper()
	lines := append([]string{"GET " + target + " HTTP/1.1", "Host: " + addr, "Accept: text/event-stream"}, header...)
	c.Send(t, strings.Join(lines, "\r\n")+"\r\n\r\n")
}

// Send writes text.
func (c *Conn) Send(t testing.TB, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// Head waits for the response head.
func (c *Conn) Head(t testing.TB, within time.Duration) *http.Response {
	t.Helper()
	c.Until(t, within, "response head", func() bool { return c.Stream.Head != nil })
	return c.Stream.Head
}

// Next waits for the next event that a page would see.
func (c *Conn) Next(t testing.TB, within time.Duration) ssetest.Event {
	t.Helper()
	c.Until(t, within, "event", func() bool { return len(c.events) > 0 })
	e := c.events[0]
	c.events = c.events[1:]
	return e
}

// End reads until the server ends the connection. It returns io.EOF after a
// FIN and the socket's error after a reset.
func (c *Conn) End(t testing.TB, within time.Duration) error {
	t.Helper()
	deadline := time.Now().Add(within)
	for c.end == nil {
		if !c.read(t, deadline) {
			t.Fatalf("the connection has not ended within %v; read %.300q", within, c.Raw)
		}
	}
	return c.end
}

// Until reads until done, and ends the test if that takes longer than within
// or the connection ends before; what says what was waited for.
func (c *Conn) Until(t testing.TB, within time.Duration, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !done() {
		switch {
		case c.end != nil:
			t.Fatalf("%s: the connection ended before: %v; read %.300q", what, c.end, c.Raw)
		case !c.read(t, deadline):
			t.Fatalf("%s: not within %v; read %.300q", what, within, c.Raw)
		}
	}
}

// read reads what there is; it is false when nothing came until the deadline.
func (c *Conn) read(t testing.TB, deadline time.Time) bool {
	t.Helper()
	if err := c.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	var buf [16 << 10]byte
	n, err := c.Read(buf[:])
	c.Raw = append(c.Raw, buf[:n]...)
	events, feedErr := c.Stream.Feed(buf[:n])
	if feedErr != nil {
		t.Fatalf("no event stream: %v; read %.300q", feedErr, c.Raw)
	}
	c.events = append(c.events, events...)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return false
	}
	c.end = err
	return true
}
