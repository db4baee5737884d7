package loop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tailcast/frame"
	"tailcast/hub"
	"tailcast/route"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// gnet's worker pool is one per process and never ends.
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	)
}

// topicID is the incarnation of the tests' topic.
var topicID = frame.TopicID{7}

// tail is the test's side of a feed: what kafkatail is in the product.
type tail struct {
	sink hub.Sink
	next map[int32]int64
}

func (s *tail) Tail(_ string, sink hub.Sink) { s.sink = sink }

// open makes n partitions known, all empty.
func (s *tail) open(n int32) {
	s.next = map[int32]int64{}
	var parts []frame.Partition
	for p := range n {
		s.next[p] = 0
		parts = append(parts, frame.Partition{ID: p})
	}
	s.sink.Open(topicID, parts)
}

// produce appends one record a value to a partition, and makes them readable.
func (s *tail) produce(p int32, values ...string) {
	for _, v := range values {
		s.sink.Append(p, []frame.Record{{
			Topic: "t", Partition: p, Offset: s.next[p], Time: time.Now().UnixMilli(), Value: []byte(v),
		}})
		s.next[p]++
	}
	s.sink.Flush()
}

// site is a running server with one feed at /events.
type site struct {
	*tail
	t    *testing.T
	srv  *Server
	hub  *hub.Hub
	feed *hub.Feed
	addr string
}

func defaults() Config {
	return Config{
		Loops: 1, MaxConns: 1000, NotSentLowat: 16 << 10, MaxLag: 4 << 20, Stall: 20 * time.Second,
		HeaderTimeout: 5 * time.Second, Retry: 2 * time.Second, Drain: 5 * time.Second,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// start runs a server until the test ends. The feed is not open yet.
func start(t *testing.T, change func(*Config, *hub.Options)) *site {
	t.Helper()
	cfg := defaults()
	opts := hub.Options{LogBytes: 64 << 20, LogBytesTotal: 1 << 30, Heartbeat: 15 * time.Second}
	if change != nil {
		change(&cfg, &opts)
	}
	srv, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{tail: &tail{}, t: t, srv: srv, hub: hub.New(opts, srv.Mailboxes())}
	if s.feed, err = s.hub.Open(hub.Spec{Topics: []string{"t"}}, s.tail); err != nil {
		t.Fatal(err)
	}
	cors, err := route.NewCORS([]string{"https://app.test"}, false)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := route.NewTable([]route.Route{{Path: "/events", Feed: 0, CORS: cors}, {Path: "/", Feed: 0}})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Serve("127.0.0.1:0", Site{Routes: routes, Feeds: []*hub.Feed{s.feed}, CORS: cors}); err != nil {
		t.Fatal(err)
	}
	s.addr = srv.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		srv.Stop(ctx)
	})
	return s
}

// client is one connection of a test.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (s *site) dial() *client {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	return &client{s.t, c, bufio.NewReader(c)}
}

// get asks for a stream and reads its head.
func (s *site) get(path string, fields ...string) *client {
	s.t.Helper()
	c := s.dial()
	c.send("GET %s HTTP/1.1\r\nHost: gw.test\r\n%s\r\n", path, lines(fields))
	if head := c.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		s.t.Fatalf("GET %s: %q", path, head)
	}
	return c
}

func lines(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return strings.Join(fields, "\r\n") + "\r\n"
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

// head reads through the empty line.
func (c *client) head() string {
	c.t.Helper()
	var b strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			c.t.Fatalf("head %q: %v", b.String(), err)
		}
		if line == "\r\n" {
			return b.String()
		}
	}
}

// block reads one chunk; io.EOF is the last one.
func (c *client) block() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	var n int
	if _, err := fmt.Sscanf(line, "%x\r\n", &n); err != nil {
		return "", fmt.Errorf("chunk head %q: %w", line, err)
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return "", err
	}
	if string(b[n:]) != "\r\n" {
		return "", fmt.Errorf("chunk ends in %q", b[n:])
	}
	if n == 0 {
		return "", io.EOF
	}
	return string(b[:n]), nil
}

// expect reads blocks until as many came as are named; each must contain its text.
func (c *client) expect(texts ...string) {
	c.t.Helper()
	for i, want := range texts {
		got, err := c.block()
		if err != nil || !strings.Contains(got, want) {
			c.t.Fatalf("block %d: %.200q, %v; want one with %q", i, got, err, want)
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not so within 20 s: %s", what)
		}
		<-tick.C
	}
}
