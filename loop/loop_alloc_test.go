//go:build !race

package loop

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tailcast/frame"
	"tailcast/hub"
)

// noAllocs runs f often enough that what grows has grown.
func noAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	for range 300 {
		f()
	}
	if n := testing.AllocsPerRun(500, f); n != 0 {
		t.Errorf("%s: %v allocations", what, n)
	}
}

// TestNoAllocsInPasses: a record to 200 streams, over wake, turn and writes.
func TestNoAllocsInPasses(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		r := newRig(t, nil)
		r.open(1)
		peers := r.crowd(200, version)
		buf := make([]byte, 64<<10)
		append1 := r.appender(200)
		noAllocs(t, version, func() {
			append1(1)
			r.settle()
			for _, p := range peers {
				p.discard(buf)
			}
		})
		if got, want := r.l.counts.events, uint64(200*801); got != want {
			t.Errorf("%s: %d events, want %d", version, got, want)
		}
	}
}

// TestNoAllocsOverTheWire is the same with gnet and TCP.
func TestNoAllocsOverTheWire(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		s := start(t, with)
		s.open(1)
		const streams = 50
		buf, fds := make([]byte, 64<<10), make([]int, streams)
		for i := range fds {
			fds[i] = s.bare()
		}
		defer closeAll(fds)
		eventually(t, "all streams are open", func() bool { return s.stats().Streams == streams })
		append1 := s.appender(200)
		events := &s.srv.loops[0].stats.events
		want := uint64(0)
		noAllocs(t, "a record to all", func() {
			append1(1)
			for want += streams; events.Load() < want; {
				runtime.Gosched()
			}
			for _, fd := range fds {
				if _, err := unix.Read(fd, buf); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}

// TestNoAllocsForLaggards: streams that fall behind, are looked at, and go on.
func TestNoAllocsForLaggards(t *testing.T) {
	r := newRig(t, func(as *setup) { as.Stall = 24 * time.Hour })
	r.open(1)
	r.sndbuf = 4096
	peers := r.crowd(50, "HTTP/1.1")
	buf := make([]byte, 64<<10)
	append1 := r.appender(20_000)
	most := 0
	noAllocs(t, "laggards", func() {
		append1(1)
		r.settle()
		most = max(most, r.l.lagging.len())
		for range 12 {
			for _, p := range peers[:40] {
				p.discard(buf)
			}
			r.later(time.Second)
		}
	})
	if most < 40 || r.l.lagging.len() != 10 {
		t.Errorf("%d of %d lagged, %d still do", most, len(peers), r.l.lagging.len())
	}
}

// TestNoAllocsForHeartbeats to streams that wait for their feed.
func TestNoAllocsForHeartbeats(t *testing.T) {
	r := newRig(t, nil)
	peers := r.crowd(200, "HTTP/1.1")
	buf := make([]byte, 64<<10)
	noAllocs(t, "heartbeats", func() {
		beatWaiting(r)
		for _, p := range peers {
			p.discard(buf)
		}
	})
}

// TestNoAllocsForFilters: a record for some of the streams, two at a time for
// one, a heartbeat to all. Not for HTTP/1.0, whose streams hold their blocks: the
// buffers' pool gives up those that are larger than most it has seen.
func TestNoAllocsForFilters(t *testing.T) {
	r := newRig(t, withFilters)
	r.open(1)
	peers := make([]*peer, 200)
	for i := range peers {
		peers[i] = r.dial()
		peers[i].send(req(fmt.Sprintf("GET /or/u%d?tenant=%d HTTP/1.1", i%50, i%9)))
	}
	buf := make([]byte, 64<<10)
	rec := []frame.Record{{Topic: r.topic, Time: time.Now().UnixMilli(), Value: []byte(`{"tenant":{"id":[1,"1",2]}}`)}}
	keys := [][]byte{[]byte("u1"), []byte("u2"), []byte("u51"), nil}
	n := 0
	noAllocs(t, "filters", func() {
		for range 3 {
			rec[0].Key, rec[0].Offset = keys[n%len(keys)], r.next[0]
			n++
			r.next[0]++
			r.sink.Append(0, rec)
		}
		r.sink.Flush(nil)
		r.settle()
		r.later(time.Second)
		for _, p := range peers {
			p.discard(buf)
		}
	})
	if got := r.l.counts.events; got < 100_000 || got > 200_000 {
		t.Errorf("%d events", got)
	}
}

// TestNoAllocsForRequests: answers on a kept connection, heads and bodies in
// one piece and in two.
func TestNoAllocsForRequests(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	buf := make([]byte, 64<<10)
	var pieces [][]byte
	for _, in := range []string{
		req("GET /nope HTTP/1.1", "Origin: https://app.test", "User-Agent: x"),
		req("POST /events HTTP/1.1", "Content-Length: 3") + "abc",
		req("OPTIONS /events HTTP/1.1", "Origin: https://app.test", "Access-Control-Request-Method: GET"),
	} {
		pieces = append(pieces, []byte(in), []byte(in[:20]), []byte(in[20:]))
	}
	noAllocs(t, "requests", func() {
		for _, b := range pieces {
			p.near.in = b
			r.l.OnTraffic(p.near)
		}
		p.discard(buf)
	})
	if !p.near.open || r.l.counts.answers[0] != 0 || r.l.counts.answers[5] != 2*801 {
		t.Errorf("open: %t, answers %v", p.near.open, r.l.counts.answers)
	}
}

// TestNoAllocsForPersonalEvents: a personal stream costs some allocations, its
// events none.
func TestNoAllocsForPersonalEvents(t *testing.T) {
	r := newRig(t, nil)
	aside(r, 300, 0)
	buf := make([]byte, 64<<10)
	resume := func(from int) float64 {
		id := fmt.Sprintf("Last-Event-ID: v1:0-299.1-%d", from)
		return testing.AllocsPerRun(50, func() {
			p := r.dial().get("/events", id)
			p.discard(buf)
			p.hangUp()
		})
	}
	before := r.l.counts.events
	few, many := resume(289), resume(89)
	if got := r.l.counts.events - before; got != 51*(10+210) {
		t.Fatalf("%d events", got)
	}
	if many > few+1 { // the rig's own lists grow now and then
		t.Errorf("%v allocations for 210 events, %v for 10", many, few)
	}
}

// TestNoAllocsForAdmission: streams that waited are placed when their feed opens.
func TestNoAllocsForAdmission(t *testing.T) {
	r := newRig(t, nil)
	peers := r.crowd(100, "HTTP/1.1")
	s := r.l.feeds[r.feeds[0]]
	r.open(1)
	r.settle()
	buf := make([]byte, 64<<10)
	start := new(hub.Start)
	noAllocs(t, "admission", func() {
		for _, p := range peers { // back to where they were
			r.l.unlist(p.c)
			s.waiting.add(p.c)
			p.c.resume = start
		}
		r.l.pass(s.reader)
		r.settle()
		for _, p := range peers {
			p.discard(buf)
		}
	})
	if s.live.len() != len(peers) || s.waiting.len() != 0 {
		t.Errorf("%d live, %d wait", s.live.len(), s.waiting.len())
	}
}

// TestNoAllocsForCounts: latency and what others read.
func TestNoAllocsForCounts(t *testing.T) {
	r := newRig(t, nil)
	times := []int64{1, 5, -1, 1 << 40}
	noAllocs(t, "counts", func() {
		r.l.counts.observe(times, 100)
		r.l.counts.answered(200)
		r.l.stats.publish(&r.l.counts, time.Since(r.l.began))
	})
}

// TestIdleTurnAllocatesNothing, with a deadline that is moved.
func TestIdleTurnAllocatesNothing(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	noAllocs(t, "turns", func() {
		r.l.wheel.set(p.c, r.l.now+time.Hour)
		r.later(wheelTick)
	})
}

// TestConnSize: tens of thousands of them are idle. The next size class of the
// allocator is 176 bytes.
func TestConnSize(t *testing.T) {
	if n := unsafe.Sizeof(conn{}); n > 160 {
		t.Errorf("a conn has %d bytes", n)
	}
}
