package apptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// follower is a client that reads numbered records and reconnects where it
// was, as a browser does. It judges every event: the record is the next one of
// its partition, whole, and the id is exactly where the follower stands then.
type follower struct {
	addrs   []string // of nodes, asked in turn
	path    string
	parts   int        // partitions that end
	byQuery bool       // resumes with ?lastEventId=, as a page does; else with the header
	cuts    *rand.Rand // cuts its own connections at random places; nil: never

	id      string          // of the last whole block
	have    map[int32]int64 // last offset seen, by partition
	ended   int             // partitions whose last record came
	reasons []string        // of resyncs

	// So far, for others to wait for.
	records, streams, resyncs atomic.Int64
	failed                    atomic.Pointer[error] // what it objects to
}

// run follows until every partition has ended.
func (f *follower) run(ctx context.Context) error {
	for f.ended < f.parts {
		if err := f.stream(ctx); err != nil {
			return fmt.Errorf("stream %d, last id %q, have %v: %w", f.streams.Load(), f.id, f.have, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d partitions have ended after %d streams; have %v", f.ended, f.parts, f.streams.Load(), f.have)
		}
	}
	return nil
}

// dialAgain is the pause before a dial that follows one that failed.
const dialAgain = 5 * time.Millisecond

// stream follows one connection until it ends, is cut, or nothing more is due.
func (f *follower) stream(ctx context.Context) error {
	var d net.Dialer
	addr := f.addrs[int(f.streams.Load())%len(f.addrs)]
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(dialAgain):
		}
		return nil
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, f.request(addr)); err != nil {
		return nil
	}
	f.streams.Add(1)
	left := -1 // bytes to read before the cut
	if f.cuts != nil {
		if left = 1 + f.cuts.IntN(6000); f.cuts.IntN(2) == 0 {
			_ = conn.(*net.TCPConn).SetLinger(0) // the cut is RST
		}
	}
	s := reading{f: f}
	var buf [16 << 10]byte
	for left != 0 && f.ended < f.parts {
		b := buf[:]
		if left > 0 {
			b = b[:min(left, len(b))]
		}
		n, err := conn.Read(b)
		if left > 0 {
			left -= n
		}
		if bad := s.take(b[:n]); bad != nil {
			return bad
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

// request is the head of the next request to addr.
func (f *follower) request(addr string) string {
	target, header := f.path, ""
	switch {
	case f.id != "" && f.byQuery:
		target += "?lastEventId=" + url.QueryEscape(f.id)
	case f.id != "":
		header = "Last-Event-ID: " + f.id + "\r\n"
	}
	return "GET " + target + " HTTP/1.1\r\nHost: " + addr + "\r\n" + header + "\r\n"
}

// reading is what a follower knows of one connection.
type reading struct {
	f      *follower
	stream ssetest.Stream
	placed bool // the first id came
	moved  bool // it was not where the follower stood, so that a resync is due
}

// take takes the next bytes: one by one until the first id came, so that it is
// seen before what follows it.
func (s *reading) take(b []byte) error {
	for len(b) > 0 {
		n := len(b)
		if !s.placed {
			n = 1
		}
		events, err := s.stream.Feed(b[:n])
		if err != nil {
			return err
		}
		b = b[n:]
		if h := s.stream.Head; h != nil && h.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", h.Status)
		}
		if err := s.place(); err != nil {
			return err
		}
		for _, e := range events {
			if err := s.event(e); err != nil {
				return fmt.Errorf("event %.200q: %w", e, err)
			}
		}
		if id := s.stream.Parser.LastEventID(); id != "" {
			s.f.id = id
		}
	}
	return nil
}

// place judges the first id of a stream.
func (s *reading) place() error {
	id := s.stream.Parser.LastEventID()
	if s.placed || id == "" {
		return nil
	}
	s.placed = true
	at, err := offsetsOf(id)
	if err != nil {
		return err
	}
	if s.f.id == "" {
		s.f.have = at
	}
	s.moved = !maps.Equal(at, s.f.have)
	return nil
}

func (s *reading) event(e ssetest.Event) error {
	switch {
	case e.Type == "resync":
		return s.resync(e)
	case s.moved:
		return fmt.Errorf("the stream went on elsewhere without a word; had %v", s.f.have)
	case e.Type == "message":
		return s.f.record(e)
	}
	return errors.New("an event that is none of ours")
}

// resync takes the word of the server that the stream goes on elsewhere.
func (s *reading) resync(e ssetest.Event) error {
	var notice struct {
		Reason string
		Topics map[string][]struct {
			Partition int32
			From, To  *int64
		}
	}
	if err := json.Unmarshal([]byte(e.Data), &notice); err != nil {
		return err
	}
	at, err := offsetsOf(e.LastEventID)
	if err != nil {
		return err
	}
	s.moved = false
	s.f.have = at
	s.f.reasons = append(s.f.reasons, notice.Reason)
	s.f.resyncs.Add(1)
	return nil
}

// record judges a numbered record.
func (f *follower) record(e ssetest.Event) error {
	partition, rest, _ := strings.Cut(e.Data, "/")
	p, err := strconv.ParseInt(partition, 10, 32)
	if err != nil {
		return err
	}
	seq := int64(0)
	if before, seen := f.have[int32(p)]; seen {
		seq = before + 1
	}
	last := strings.HasPrefix(rest, fmt.Sprintf("%d/%s\n", seq, lastRecord))
	if last {
		f.ended++
	}
	if want := valueOf(int32(p), seq, last); e.Data != want {
		return fmt.Errorf("want %q", want)
	}
	f.have[int32(p)] = seq
	f.records.Add(1)
	at, err := offsetsOf(e.LastEventID)
	if err == nil && !maps.Equal(at, f.have) {
		err = fmt.Errorf("the id is at %v, the stream at %v", at, f.have)
	}
	return err
}

// offsetsOf reads an id of one topic: the last offset of each partition. The
// topics of these tests have few partitions, so their ids are of the first form.
func offsetsOf(id string) (map[int32]int64, error) {
	list, ok := strings.CutPrefix(id, "v1:")
	list, tag, tagged := strings.Cut(list, "~")
	if !ok || !tagged || len(tag) != 5 && len(tag) != 2 {
		return nil, fmt.Errorf("id %q", id)
	}
	at := map[int32]int64{}
	for pair := range strings.SplitSeq(list, ".") {
		if list == "" {
			break
		}
		partition, offset, _ := strings.Cut(pair, "-")
		p, err := strconv.ParseInt(partition, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("id %q: %w", id, err)
		}
		if at[int32(p)], err = strconv.ParseInt(offset, 10, 64); err != nil {
			return nil, fmt.Errorf("id %q: %w", id, err)
		}
	}
	return at, nil
}

// followers are some of them at work.
type followers struct {
	all    []*follower
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// follow starts n followers of a route; change may set them up.
func follow(t testing.TB, s *testkit.Server, path string, parts, n int, change func(i int, f *follower)) *followers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	fs := &followers{cancel: cancel}
	for i := range n {
		f := &follower{addrs: []string{s.Addr}, path: path, parts: parts, byQuery: i%2 == 1}
		if change != nil {
			change(i, f)
		}
		fs.all = append(fs.all, f)
		fs.wg.Go(func() {
			if err := f.run(ctx); err != nil {
				f.failed.Store(&err)
			}
		})
	}
	t.Cleanup(func() { cancel(); fs.wg.Wait() })
	return fs
}

// each waits until done holds for every follower.
func (fs *followers) each(t testing.TB, what string, done func(*follower) bool) {
	t.Helper()
	for i, f := range fs.all {
		testkit.Eventually(t, patience, fmt.Sprintf("follower %d: %s", i, what), func() bool {
			if err := f.failed.Load(); err != nil {
				t.Fatalf("follower %d: %v", i, *err)
			}
			return done(f)
		})
	}
}

// wait waits until every follower has seen the end, and reports what they object to.
func (fs *followers) wait(t testing.TB) {
	t.Helper()
	over := time.AfterFunc(patience, fs.cancel)
	fs.wg.Wait()
	over.Stop()
	for i, f := range fs.all {
		if err := f.failed.Load(); err != nil {
			t.Errorf("follower %d: %v", i, *err)
		}
	}
}

// wantResyncs checks that every follower was told of losses for these reasons.
func (fs *followers) wantResyncs(t testing.TB, reasons ...string) {
	t.Helper()
	for i, f := range fs.all {
		if !slices.Equal(f.reasons, reasons) {
			t.Errorf("follower %d: resyncs %q, want %q", i, f.reasons, reasons)
		}
	}
}

// totals are the records and streams of all followers.
func (fs *followers) totals() (records, streams int64) {
	for _, f := range fs.all {
		records += f.records.Load()
		streams += f.streams.Load()
	}
	return records, streams
}
