package loop

import (
	"bufio"
	"context"
	"crypto/tls"
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
	"tailcast/internal/testkit"
	"tailcast/route"
)

func TestMain(m *testing.M) {
	if os.Getenv(fewDescriptorsEnv) != "" {
		if err := runWithFewDescriptors(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
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
	topic string
	sink  hub.Sink
	next  map[int32]int64
}

func (s *tail) Tail(_ string, sink hub.Sink) { s.sink = sink }
func (s *tail) End(string, hub.Sink)         {}

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

// openAt makes partition p known, at offset next.
func (s *tail) openAt(p int32, next int64) {
	s.next = map[int32]int64{p: next}
	s.sink.Open(topicID, []frame.Partition{{ID: p, Next: next}})
}

// produce appends one record a value to a partition, and makes them readable.
func (s *tail) produce(p int32, values ...string) {
	for _, v := range values {
		s.sink.Append(p, []frame.Record{{
			Topic: s.topic, Partition: p, Offset: s.next[p], Time: time.Now().UnixMilli(), Value: []byte(v),
		}})
		s.next[p]++
	}
	s.sink.Flush(nil)
}

// patience bounds every wait of a test; it is no pause, and only a failing test
// spends it. Machines are slow at times, and tests run side by side.
const patience = 90 * time.Second

// setup is what a test may change before its server starts.
type setup struct {
	serving Serving // of every route, but for the feed
	Config
	hub     hub.Options
	waits   waits
	feeds   int // at /f0, /f1 and so on; the first is at /events too
	origins []string
	files   func(*Server) Files
	filters []pathFilter // of more routes of the first feed
	byHand  bool         // time stands still for the hub but for site.ticks
}

// pathFilter is a route with a filter; an item is terms field=template.
type pathFilter struct {
	path  string
	items [][]string
}

func (p pathFilter) filter(t testing.TB) (x Filter) {
	t.Helper()
	for _, terms := range p.items {
		var item []FilterTerm
		for _, term := range terms {
			field, value, _ := strings.Cut(term, "=")
			f := hub.Field{Kind: hub.KeyField}
			if name, ok := strings.CutPrefix(field, "headers."); ok {
				f = hub.Field{Kind: hub.HeaderField, Name: name}
			} else if name, ok := strings.CutPrefix(field, "json."); ok {
				f = hub.Field{Kind: hub.JSONField, Name: name}
			}
			template, err := route.ParseTemplate(value)
			if err != nil {
				t.Fatal(err)
			}
			item = append(item, FilterTerm{Field: f, Value: template})
		}
		x = append(x, item)
	}
	return x
}

// site is a running server. Its tail is that of the first feed.
type site struct {
	*tail
	t     testing.TB
	srv   *Server
	feeds []*hub.Feed
	tails []*tail
	addr  string
	tls   *tls.Config // of the clients; nil: they speak plainly
	hub   *hub.Hub
	clock time.Time // of a hub by hand

	isStopped bool // by the test
}

func defaults() setup {
	return setup{
		Config: Config{
			Loops: 1, MaxConns: 1000, NotSentLowat: 16 << 10, MaxLag: 4 << 20, Stall: 20 * time.Second,
			HeaderTimeout: 5 * time.Second, Retry: 2 * time.Second, Drain: 5 * time.Second,
		},
		hub:   hub.Options{LogBytes: 64 << 20, LogBytesTotal: 1 << 30, Heartbeat: 15 * time.Second},
		waits: defaultWaits, feeds: 1, origins: []string{"https://app.test"},
	}
}

// start runs a server until the test ends. The feeds are not open yet.
func start(t testing.TB, change func(*setup)) *site {
	t.Helper()
	as := defaults()
	as.HeaderTimeout = patience // the clients have the same processors
	as.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	if change != nil {
		change(&as)
	}
	srv, err := New(as.Config)
	if err != nil {
		t.Fatal(err)
	}
	srv.waits = as.waits
	s := &site{t: t, srv: srv, hub: hub.New(as.hub, srv.Mailboxes())}
	served := s.serve(s.hub, &as)
	if as.files != nil {
		served.Files = as.files(srv)
	}
	at := Listen{Plain: "127.0.0.1:0"}
	if as.TLS != nil {
		at, s.tls = Listen{TLS: "127.0.0.1:0"}, clientTLS()
	}
	if err := srv.Serve(at, served); err != nil {
		t.Fatal(err)
	}
	if as.TLS == nil {
		s.addr = srv.Addr().String()
	} else {
		s.addr = srv.AddrTLS().String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !as.byHand {
			s.hub.Run(ctx)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if !s.isStopped {
			srv.Stop(ctx)
		}
	})
	return s
}

// ticks lets half a second pass for a hub by hand, n times.
func (s *site) ticks(n int) {
	for range n {
		s.clock = s.clock.Add(time.Second / 2)
		s.hub.Tick(s.clock)
	}
}

// looks waits until the loops have looked at their streams a few times.
func (s *site) looks() {
	s.t.Helper()
	turns := s.stats().Turns
	eventually(s.t, "some turns", func() bool { return s.stats().Turns > turns+5 })
}

// serve makes the feeds and their routes.
func (s *site) serve(h *hub.Hub, as *setup) Site {
	cors, err := route.NewCORS(as.origins, false)
	if err != nil {
		s.t.Fatal(err)
	}
	routes := []route.Route{{Path: "/events", CORS: cors}, {Path: "/a b", CORS: cors}}
	for i := range as.feeds {
		tl := &tail{topic: fmt.Sprint("t", i)}
		spec := hub.Spec{Topics: []string{tl.topic}}
		if i == 0 {
			for _, p := range as.filters {
				spec.Fields = append(spec.Fields, p.filter(s.t).Fields()...)
			}
		}
		f, err := h.Open(spec, tl)
		if err != nil {
			s.t.Fatal(err)
		}
		s.feeds, s.tails = append(s.feeds, f), append(s.tails, tl)
		routes = append(routes, route.Route{Path: fmt.Sprint("/f", i), Feed: i, CORS: cors})
	}
	s.tail = s.tails[0]
	for i, p := range as.filters {
		routes = append(routes, route.Route{Path: p.path, Feed: as.feeds + i, CORS: cors})
	}
	table, err := route.NewTable(routes)
	if err != nil {
		s.t.Fatal(err)
	}
	serves := make([]Serving, 0, len(s.feeds))
	for _, f := range s.feeds {
		serve := as.serving
		serve.Feed = f
		serves = append(serves, serve)
	}
	for _, p := range as.filters {
		serve := as.serving
		serve.Feed, serve.Filter = s.feeds[0], p.filter(s.t)
		serves = append(serves, serve)
	}
	return Site{Routes: table, Serves: serves, CORS: cors}
}

// stats are the counts of all loops together.
func (s *site) stats() Stats {
	sum := Stats{Closed: map[string]uint64{}, Answers: map[int]uint64{}}
	for _, l := range s.srv.Stats() {
		sum.Connections += l.Connections
		sum.Streams += l.Streams
		sum.Lagging += l.Lagging
		sum.Events += l.Events
		sum.Bytes += l.Bytes
		sum.Turns += l.Turns
		sum.Negative += l.Negative
		sum.LatencySum += l.LatencySum
		for why, n := range l.Closed {
			sum.Closed[why] += n
		}
		for status, n := range l.Answers {
			sum.Answers[status] += n
		}
		if sum.Latency == nil {
			sum.Latency = make([]uint64, len(l.Latency))
		}
		for i, n := range l.Latency {
			sum.Latency[i] += n
		}
	}
	return sum
}

// closed waits until n connections were closed for that reason.
func (s *site) closed(why closeReason, n uint64) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d closed: %s", n, closeNames[why]), func() bool { return s.stats().Closed[closeNames[why]] == n })
}

// client is one connection of a test.
type client struct {
	t testing.TB
	net.Conn
	r   *bufio.Reader
	tcp *net.TCPConn // what Conn is, or is over
}

func (s *site) dial() *client {
	s.t.Helper()
	c, err := s.from("127.0.0.1")
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// from connects from an address.
func (s *site) from(ip string) (*client, error) {
	return s.connect(net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}})
}

func (s *site) connect(d net.Dialer) (*client, error) {
	c, err := d.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn)
	s.t.Cleanup(func() { tcp.Close() })
	if s.tls != nil {
		c = tls.Client(tcp, s.tls)
	}
	return &client{s.t, c, bufio.NewReader(c), tcp}, c.SetDeadline(time.Now().Add(patience))
}

// get asks for a stream and reads its head.
func (s *site) get(path string, fields ...string) *client {
	s.t.Helper()
	c := s.dial()
	c.send(req("GET "+path+" HTTP/1.1", fields...))
	if head := c.head(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		s.t.Fatalf("GET %s: %q", path, head)
	}
	return c
}

// req is a request with Host and the given lines.
func req(line string, fields ...string) string {
	return line + "\r\nHost: gw.test\r\n" + lines(fields) + "\r\n"
}

func lines(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return strings.Join(fields, "\r\n") + "\r\n"
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
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
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Eventually(t, patience, what, cond)
}
