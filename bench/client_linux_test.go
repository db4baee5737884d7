package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve answers every request with the head of an event stream and then play,
// and closes; lastID is the request's Last-Event-ID.
func serve(t *testing.T, play func(c net.Conn, lastID string)) (url string) {
	return serveRaw(t, func(c net.Conn, lastID string) {
		send(c, testHead)
		play(c, lastID)
	})
}

func serveRaw(t *testing.T, play func(c net.Conn, lastID string)) (url string) {
	t.Helper()
	return serveRequests(t, func(c net.Conn, _, lastID string) { play(c, lastID) })
}

func serveRequests(t *testing.T, play func(c net.Conn, line, lastID string)) (url string) {
	t.Helper()
	return "http://" + serveOn(t, listen(t), play) + "/events"
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serveOn answers the requests of those that l accepts, and closes it in the
// end.
func serveOn(t *testing.T, l net.Listener, play func(c net.Conn, line, lastID string)) (addr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		l.Close()
		served.Wait()
	})
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				r := textproto.NewReader(bufio.NewReader(c))
				line, err := r.ReadLine()
				if err != nil {
					return
				}
				h, err := r.ReadMIMEHeader()
				if err != nil {
					return
				}
				play(c, line, h.Get("Last-Event-ID"))
			})
		}
	})
	return l.Addr().String()
}

func send(c net.Conn, text string) bool {
	_, err := c.Write([]byte(text))
	return err == nil
}

// idle waits until the client is gone.
func idle(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.Verify, cfg.Sample = true, 1
	if cfg.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", cfg.Seed)
	cl, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	return cl
}

func (cl *Client) mustOpen(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := cl.Open(ctx); err != nil {
		t.Fatal(err)
	}
}

// runUntilTrue reads until what is true, at most 20 s.
func (cl *Client) runUntilTrue(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := cl.runUntil(t.Context(), 20*time.Second, done); err != nil {
		t.Fatal(err)
	}
	if !done() {
		t.Fatalf("%s: not within 20 s; %+v; %q", what, cl.tally.counts, cl.tally.faults)
	}
}

func TestRightStream(t *testing.T) {
	const records = 300
	url := serve(t, func(c net.Conn, _ string) {
		send(c, chunk("retry: 1000\nid: v1:0-99.1-99\n\n"))
		for i := range int64(records) {
			if !send(c, chunk(record(int32(i%3), i/3))) {
				return
			}
		}
		send(c, chunk(":\n"))
		idle(c)
	})
	cl := newClient(t, Config{URL: url, Conns: 100, Opening: 16})
	cl.mustOpen(t)
	if err := cl.RunTotal(t.Context(), records, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	cl.runUntilTrue(t, "heartbeats", func() bool { return cl.tally.counts.Comments == 100 })
	r := cl.Result()
	if n := r.Counts; n.Faults() != 0 || n.Events != 100*records || n.IDBlocks != 100 || n.Opened != 100 {
		t.Errorf("%+v; %q", n, r.Faults)
	}
	for p, got := range r.Partitions {
		if want := (Partition{p, 100, 0, 0, 99, 99}); got != want {
			t.Errorf("partition %d: %+v, want %+v", p, got, want)
		}
	}
	if g, want := r.Groups[Normal], (Group{100, 100, 0, records, records}); len(r.Partitions) != 3 || g != want {
		t.Errorf("group %+v, want %+v", g, want)
	}
}

// TestDetects shows that each fault of a server is seen, and counted as what it
// is.
func TestDetects(t *testing.T) {
	at := func(offset int, seq int64) string {
		return strings.Replace(record(0, seq), "v1:0-"+strconv.FormatInt(100+seq, 10), "v1:0-"+strconv.Itoa(offset), 1)
	}
	for _, tt := range []struct {
		name, in string
		want     Counts // Events apart
	}{
		{"gap", record(0, 0) + record(0, 1) + record(0, 4) + record(0, 5), Counts{Gaps: 1, Missing: 2}},
		{"two gaps", record(0, 0) + record(0, 2) + record(0, 4), Counts{Gaps: 2, Missing: 2}},
		{"gap in one partition of two", record(0, 0) + record(1, 0) + record(0, 1) + record(1, 2), Counts{Gaps: 1, Missing: 1}},
		{"duplicate", record(0, 0) + record(0, 1) + record(0, 1) + record(0, 2), Counts{Duplicates: 1}},
		{"all again", record(0, 0) + record(0, 1) + record(0, 0) + record(0, 1), Counts{Duplicates: 2}},
		{"swapped", record(0, 0) + record(0, 2) + record(0, 1) + record(0, 3), Counts{Gaps: 1, Reordered: 1}},
		{"id does not grow", at(100, 0) + at(100, 1), Counts{BadIDs: 1}},
		{"id goes back", at(100, 0) + at(99, 1), Counts{BadIDs: 1}},
		{"no id", strings.SplitAfterN(record(0, 0), "\n", 2)[1], Counts{BadIDs: 1}},
		{"id of no known form", strings.Replace(record(0, 0), "v1:", "w1:", 1), Counts{BadIDs: 1}},
		{"no payload", "id: v1:0-4\ndata: hello\n\n", Counts{Unreadable: 1}},
		{"payload torn apart", strings.Replace(record(0, 0), `,"pad"`, "\ndata: ", 1), Counts{Unreadable: 1}},
		{"resync", record(0, 0) + record(0, 1) + "event: resync\nid: v1:0-150\ndata: {\"reason\":\"unknown\"}\n\n" + record(0, 60), Counts{Resyncs: 1}},
		{"gap after a resync", record(0, 0) + "event: resync\ndata: {}\n\n" + record(0, 60) + record(0, 62), Counts{Resyncs: 1, Gaps: 1, Missing: 1}},
		{"skipped", record(0, 0) + "event: skipped\nid: v1:0-101\ndata: {\"topic\":\"t\",\"partition\":0,\"offset\":101}\n\n" + record(0, 2), Counts{Skipped: 1}},
		{"delete, live, other", "event: delete\ndata: k\n\nevent: live\ndata:\n\nevent: x\n" + record(0, 0), Counts{Deletes: 1, Live: 1, Named: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := serve(t, func(c net.Conn, _ string) {
				send(c, chunk(tt.in)+chunk(": done\n"))
				idle(c)
			})
			cl := newClient(t, Config{URL: url, Conns: 1})
			cl.mustOpen(t)
			cl.runUntilTrue(t, "last line", func() bool { return cl.tally.counts.Comments == 1 })
			got := cl.Result().Counts
			got.Events, got.Bytes, got.Comments, got.Opened = 0, 0, 0, 0
			if got != tt.want {
				t.Errorf("got %+v\nwant %+v\nfaults %q", got, tt.want, cl.tally.faults)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, head string }{
		{"unavailable", "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n"},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n"},
		{"other type", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := serveRaw(t, func(c net.Conn, _ string) {
				send(c, tt.head)
				idle(c)
			})
			cl := newClient(t, Config{URL: url, Conns: 3, Reopen: true})
			err := cl.Open(t.Context())
			if n := cl.Result().Counts; n.Refused != 3 || n.Opened != 0 || err == nil || !strings.Contains(err.Error(), "3 of 3 streams") {
				t.Errorf("%+v, error %v; want 3 refused", n, err)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l := listen(t)
	l.Close()
	cl := newClient(t, Config{URL: "http://" + l.Addr().String() + "/", Conns: 2})
	if err := cl.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error %v, want connection refused", err)
	}
	if n := cl.Result().Counts.ConnectFails; n != 2 {
		t.Errorf("%d failed connections, want 2", n)
	}
}

// TestServerEnds shows that each way to end a stream is told apart, and that
// streams come back with their last id.
func TestServerEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(c net.Conn)
		want func(Counts) int64
	}{
		{"last chunk", func(c net.Conn) { send(c, "0\r\n\r\n"); idle(c) }, func(n Counts) int64 { return n.EndedClean }},
		{"FIN", func(net.Conn) {}, func(n Counts) int64 { return n.EndedEOF }},
		{"RST", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, func(n Counts) int64 { return n.EndedReset }},
		{"in mid-event", func(c net.Conn) { send(c, "20\r\nid: v1:0-999\nda") }, func(n Counts) int64 { return n.EndedEOF }},
		{"broken chunk", func(c net.Conn) { send(c, "zz\r\n"); idle(c) }, func(n Counts) int64 { return n.Malformed }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var wrong atomic.Int64
			url := serve(t, func(c net.Conn, lastID string) {
				switch lastID {
				case "":
					send(c, chunk("retry: 3600000\nid: v1:0-99\n\n")+chunk(record(0, 0))) // capped to RetryMax
					tt.end(c)
				case "v1:0-100~ab3f9":
					send(c, chunk(record(0, 1)))
					idle(c)
				default:
					wrong.Add(1)
				}
			})
			cl := newClient(t, Config{URL: url, Conns: 5, Reopen: true, RetryMax: 10 * time.Millisecond})
			cl.mustOpen(t)
			if err := cl.RunTotal(t.Context(), 2, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			n := cl.Result().Counts
			if tt.want(n) != 5 || n.Opened != 10 || n.Events != 10 || n.Gaps+n.Duplicates+n.Reordered != 0 || wrong.Load() != 0 {
				t.Errorf("%+v, %d came with another id; %q", n, wrong.Load(), cl.tally.faults)
			}
		})
	}
}

// TestDoesNotComeBack shows that without Reopen an ended stream stays away.
func TestDoesNotComeBack(t *testing.T) {
	url := serve(t, func(c net.Conn, _ string) { send(c, "0\r\n\r\n") })
	cl := newClient(t, Config{URL: url, Conns: 4})
	if err := cl.Open(t.Context()); err == nil {
		t.Error("no error, want one that says the streams are gone")
	}
	if err := cl.Run(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if g := cl.Result().Groups[Normal]; g.Gone != 4 || g.Open != 0 || cl.tally.counts.Opened != 4 {
		t.Errorf("%+v, opened %d; want 4 opened and gone", g, cl.tally.counts.Opened)
	}
}

// toResume is how many records a stream of resumes has.
const toResume = 2000

// resumes plays a stream of records that goes on skew records too late.
func resumes(skew int64) func(c net.Conn, lastID string) {
	return func(c net.Conn, lastID string) {
		seq := int64(0)
		if _, offset, ok := strings.Cut(strings.TrimSuffix(lastID, "~ab3f9"), "v1:0-"); ok {
			seq, _ = strconv.ParseInt(offset, 10, 64)
			seq += 1 - 100 + skew
		}
		for ; seq < toResume; seq++ {
			if !send(c, chunk(record(0, seq))) {
				return
			}
		}
		idle(c)
	}
}

// haveAll reports whether every stream has the last record of resumes.
func (cl *Client) haveAll(skew int64) bool {
	for i := range cl.conns {
		if m := cl.conns[i].marks; len(m) == 0 || m[0].last < toResume-1-max(0, skew) {
			return false
		}
	}
	return true
}

// TestCut cuts connections at any byte, over and over, against a server that
// resumes rightly, one record early, and one late.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		skew int64
		ok   func(Counts) bool
	}{
		{"exact", 0, func(n Counts) bool { return n.Faults() == 0 }},
		{"early", -1, func(n Counts) bool { return n.Duplicates > 0 && n.Gaps == 0 && n.Reordered == 0 }},
		{"late", +1, func(n Counts) bool { return n.Gaps > 0 && n.Missing == n.Gaps && n.Duplicates == 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cl := newClient(t, Config{URL: serve(t, resumes(tt.skew)), Conns: 20, Reconnecting: 10, ReconnectEvery: 5 * time.Millisecond})
			cl.mustOpen(t)
			cl.runUntilTrue(t, "all records", func() bool { return cl.haveAll(tt.skew) && cl.tally.counts.Cut > 20 })
			n := cl.Result().Counts
			if !tt.ok(n) {
				t.Errorf("%+v; %q", n, cl.tally.faults)
			}
		})
	}
}

// TestCutOnCommand shows that Cut also takes normal streams, and silent ones.
func TestCutOnCommand(t *testing.T) {
	url := serve(t, func(c net.Conn, lastID string) {
		if lastID == "" {
			send(c, chunk("id: v1:0-99\n\n"))
		}
		idle(c)
	})
	cl := newClient(t, Config{URL: url, Conns: 8})
	cl.mustOpen(t)
	cl.runUntilTrue(t, "first blocks", func() bool { return cl.tally.counts.IDBlocks == 8 })
	cl.Cut(3)
	cl.runUntilTrue(t, "reconnections", func() bool { return cl.tally.counts.Opened == 11 })
	if n := cl.Result().Counts; n.Cut != 3 || n.IDBlocks != 8 {
		t.Errorf("%+v, want 3 cut and back with an id", n)
	}
}

// TestUsers shows that each stream asks for its user, and that another user's
// record is a fault.
func TestUsers(t *testing.T) {
	var asked sync.Map
	url := serveRequests(t, func(c net.Conn, line, _ string) {
		user, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(line, "GET /users/"), "/feed?x=1 HTTP/1.1"), 10, 64)
		if _, twice := asked.LoadOrStore(user, true); err != nil || twice {
			t.Errorf("request %q", line)
		}
		send(c, testHead)
		for seq := range int64(3) {
			if user == 4 && seq == 2 {
				user = 5
			}
			p := Payload{Partition: int32(user % 2), Seq: seq, User: user}.Append(nil, 0)
			send(c, chunk(fmt.Sprintf("id: v1:0-%d.1-%d\ndata: %s\n\n", 10*seq, 10*seq, p)))
		}
		send(c, chunk(":\n"))
		idle(c)
	})
	cl := newClient(t, Config{URL: strings.TrimSuffix(url, "/events") + "/users/{user}/feed?x=1", Conns: 6})
	cl.mustOpen(t)
	cl.runUntilTrue(t, "last line", func() bool { return cl.tally.counts.Comments == 6 })
	if n := cl.Result().Counts; n.Events != 18 || n.Foreign != 1 || n.Faults() != 1 {
		t.Errorf("%+v; want one foreign record: %q", n, cl.tally.faults)
	}
}

// TestAwayAndBack shows that all streams go at once, and come back for what
// they have missed.
func TestAwayAndBack(t *testing.T) {
	url := serve(t, func(c net.Conn, lastID string) {
		if lastID == "" {
			send(c, chunk(record(0, 0)))
		} else {
			send(c, chunk(record(0, 1))+chunk(record(0, 2)))
		}
		idle(c)
	})
	cl := newClient(t, Config{URL: url, Conns: 30})
	cl.mustOpen(t)
	cl.runUntilTrue(t, "first records", func() bool { return cl.Behind(1) == 0 })
	cl.Away()
	if g := cl.Result().Groups[Normal]; g.Open != 0 {
		t.Errorf("%+v, want none open", g)
	}
	if err := cl.Run(t.Context(), 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if n := cl.tally.counts.Opened; n != 30 {
		t.Errorf("%d opened while away", n-30)
	}
	cl.Back()
	cl.mustOpen(t)
	cl.runUntilTrue(t, "the rest", func() bool { return cl.Behind(3) == 0 })
	if n := cl.Result().Counts; n.Events != 90 || n.Opened != 60 || n.Cut != 30 || n.Faults() != 0 {
		t.Errorf("%+v: %q", n, cl.tally.faults)
	}
}

// TestStall shows that streams stop to read on cue, and no earlier.
func TestStall(t *testing.T) {
	more := make(chan bool)
	url := serve(t, func(c net.Conn, _ string) {
		send(c, chunk(record(0, 0)))
		<-more
		send(c, chunk(record(0, 1)))
		idle(c)
	})
	cl := newClient(t, Config{URL: url, Conns: 5, Stalled: 2, StallOnCue: true})
	cl.mustOpen(t)
	cl.runUntilTrue(t, "first records", func() bool { return cl.tally.counts.Events == 5 })
	if err := cl.Stall(); err != nil {
		t.Fatal(err)
	}
	close(more)
	cl.runUntilTrue(t, "second records", func() bool { return cl.Behind(2) == 0 })
	if g := cl.Result().Groups; g[Stalled].Conns != 2 || g[Stalled].EventsMax != 1 || g[Normal].EventsMin != 2 {
		t.Errorf("%+v", g)
	}
}

// TestSlices shows that the slices of the measured part add up.
func TestSlices(t *testing.T) {
	url := serve(t, func(c net.Conn, _ string) {
		pace := time.NewTicker(5 * time.Millisecond) // of the events; nothing is waited for
		defer pace.Stop()
		for seq := int64(0); send(c, chunk(record(0, seq))); seq++ {
			<-pace.C
		}
	})
	cl := newClient(t, Config{URL: url, Conns: 3})
	cl.mustOpen(t)
	cl.Measure()
	cl.runUntilTrue(t, "slices", func() bool { return len(cl.window.result.Slices) == 2 })
	cl.Measured()
	w, sum := cl.Window(), int64(0)
	for _, s := range w.Slices {
		sum += s.Events
	}
	if len(w.Slices) != 3 || sum != w.Events || w.LatencyMS.Samples != w.Events || len(w.Curve) == 0 {
		t.Errorf("%d events in %+v, window %+v", sum, w.Slices, w)
	}
	for range slicesMax {
		cl.endSlice()
	}
	if n := len(cl.window.result.Slices); n > slicesMax || cl.window.every == sliceEvery {
		t.Errorf("%d slices of %v are kept", n, cl.window.every)
	}
}

// TestSlow shows that a slow stream is slow by bytes, not by reading seldom.
func TestSlow(t *testing.T) {
	const rate, enough = 5000, 2500
	var sent atomic.Int64
	url := serve(t, func(c net.Conn, _ string) {
		for seq := int64(0); send(c, chunk(record(0, seq))); seq++ {
			sent.Add(1)
		}
	})
	cl := newClient(t, Config{URL: url, Conns: 1, Slow: 1, SlowRate: rate})
	began := time.Now()
	cl.mustOpen(t)
	cl.Measure()
	cl.runUntilTrue(t, "bytes", func() bool { return cl.tally.counts.Bytes >= enough })
	n, most := cl.Result().Counts, int64(time.Since(began).Seconds()*rate)
	if n.Bytes > most || n.Faults() != 0 || n.Events < 10 {
		t.Errorf("%+v; want at most %d bytes", n, most)
	}
	if cl.Measured(); cl.Result().Window.LatencyMS.Samples != 0 {
		t.Errorf("latencies of a slow stream count: %+v", cl.Result().Window.LatencyMS)
	}
	// The server had far more to say.
	if wrote := sent.Load() * int64(len(chunk(record(0, 0)))); wrote < 4*n.Bytes {
		t.Errorf("the server wrote %d bytes: too few to show anything", wrote)
	}
}

// TestStalled shows that a stalled stream reads nothing, and that its end by
// the server is seen all the same.
func TestStalled(t *testing.T) {
	var full atomic.Int64
	url := serve(t, func(c net.Conn, lastID string) {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			if _, err := c.Write(make([]byte, 64<<10)); err != nil {
				full.Add(1)
				break
			}
		}
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	cl := newClient(t, Config{URL: url, Conns: 3, Stalled: 3})
	cl.mustOpen(t)
	cl.runUntilTrue(t, "resets", func() bool { return cl.tally.counts.EndedReset == 3 })
	if n, g := cl.Result().Counts, cl.Result().Groups[Stalled]; n.Bytes != 0 || g.Gone != 3 || full.Load() != 3 {
		t.Errorf("%+v, %+v; want no byte read and 3 gone", n, g)
	}
}

func TestLatency(t *testing.T) {
	const old = 50 * time.Millisecond
	url := serve(t, func(c net.Conn, _ string) {
		pace := time.NewTicker(time.Millisecond) // of the events; nothing is waited for
		defer pace.Stop()
		for seq := int64(0); ; seq++ {
			p := Payload{Seq: seq, Time: time.Now().Add(-old).UnixNano()}.Append(nil, 100)
			if !send(c, chunk(fmt.Sprintf("id: v1:0-%d\ndata: %s\n\n", seq, p))) {
				return
			}
			<-pace.C
		}
	})
	cl := newClient(t, Config{URL: url, Conns: 5})
	cl.mustOpen(t)
	cl.Measure()
	if err := cl.RunTotal(t.Context(), 100, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	cl.Measured()
	w := cl.Result().Window
	if w.LatencyMS.Samples < 400 || w.LatencyMS.P50 < 50 || w.LatencyMS.P50 > 20_000 || // a wrong unit, not a slow machine
		w.LatencyMS.Max < w.LatencyMS.P99 {
		t.Errorf("%+v, want 50 ms and a little", w.LatencyMS)
	}
	if w.Events < 400 || w.EventsPerSec <= 0 || w.BytesPerEvent < 100 || w.BytesPerEvent > 200 {
		t.Errorf("%+v", w)
	}
}

// TestArrivals: with Config.Arrivals a latency ends when the bytes came, however
// late the client is to read them.
func TestArrivals(t *testing.T) {
	const late = 200 * time.Millisecond
	for _, arrivals := range []bool{false, true} {
		next, sent := make(chan struct{}), make(chan struct{})
		url := serve(t, func(c net.Conn, _ string) {
			for seq := int64(0); ; seq++ {
				if _, ok := <-next; !ok {
					return
				}
				p := Payload{Seq: seq, Time: time.Now().UnixNano()}.Append(nil, 100)
				send(c, chunk(fmt.Sprintf("id: v1:0-%d\ndata: %s\n\n", seq, p)))
				sent <- struct{}{}
			}
		})
		cl := newClient(t, Config{URL: url, Conns: 1, Arrivals: arrivals})
		cl.mustOpen(t)
		for n := int64(1); ; n++ {
			cl.Measure()
			next <- struct{}{}
			<-sent
			time.Sleep(late) // no wait for anything: how late the client is, which must not count
			if err := cl.RunTotal(t.Context(), n, 20*time.Second); err != nil {
				t.Fatal(err)
			}
			cl.Measured()
			w := cl.Window().LatencyMS
			if w.Samples == 1 && w.Negative == 0 && (w.Max < float64(late.Milliseconds())) == arrivals {
				break
			}
			if !arrivals || n == 50 { // the kernel begins to stamp a moment after the first is asked for
				t.Fatalf("arrivals %t: %+v", arrivals, w)
			}
		}
		close(next)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{URL: "ftp://127.0.0.1:1/", Conns: 1}, "want http://host:port/path or https"},
		{Config{URL: "http://127.0.0.1/", Conns: 1}, "want http://host:port/path"},
		{Config{URL: "http://[::1]:80/", Conns: 1}, "[::1]:80"},
		{Config{URL: "http://127.0.0.1:1/"}, "0 streams"},
		{Config{URL: "http://127.0.0.1:1/", Conns: 3_000_000}, "at most"},
		{Config{URL: "http://127.0.0.1:1/", Conns: 5, Stalled: 3, Slow: 3, SlowRate: 1}, "3 stalled, 3 slow"},
		{Config{URL: "http://127.0.0.1:1/", Conns: 5, Slow: 1}, "0 bytes a second"},
	} {
		if _, err := New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.cfg, err, tt.want)
		}
	}
}
