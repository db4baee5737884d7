package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func BenchmarkPass(b *testing.B) {
	for _, events := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("streams=1000/events=%d", events), func(b *testing.B) {
			benchmarkPass(b, events, func(r *rig) []*peer { return r.crowd(1000, "HTTP/1.1") })
		})
	}
}

// BenchmarkPassTLS is the same to streams with TLS.
func BenchmarkPassTLS(b *testing.B) {
	for _, events := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("streams=1000/events=%d", events), func(b *testing.B) {
			benchmarkPass(b, events, func(r *rig) (peers []*peer) {
				for range 1000 {
					peers = append(peers, r.dialTLS(req("GET /events HTTP/1.1")))
				}
				return peers
			})
		})
	}
}

func benchmarkPass(b *testing.B, events int, crowd func(*rig) []*peer) {
	b.Helper()
	r := newRig(b, nil)
	r.open(1)
	peers := crowd(r)
	append1 := r.appender(200)
	buf := make([]byte, 1<<20)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		append1(events)
		r.settle()
		if n++; n%(400/(events+8)) == 0 { // before a socket is full
			b.StopTimer()
			for _, p := range peers {
				p.discard(buf)
			}
			b.StartTimer()
		}
	}
	if r.l.lagging.len() > 0 {
		b.Fatal("a socket was full")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*events*len(peers)), "ns/event")
}

// BenchmarkPassNothing is what a pass costs without its writes.
func BenchmarkPassNothing(b *testing.B) {
	r := newRig(b, nil)
	r.open(1)
	peers := r.crowd(1000, "HTTP/1.1")
	s := r.l.feeds[r.feeds[0]]
	n := 0
	for b.Loop() {
		r.l.tell()
		r.l.pass(s.reader)
		r.settle()
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*len(peers)), "ns/stream")
}

// BenchmarkLook is what laggards cost whose sockets stay full.
func BenchmarkLook(b *testing.B) {
	r := newRig(b, nil)
	r.open(1)
	peers := r.crowd(1000, "HTTP/1.1")
	r.produce(0, strings.Repeat("x", 500_000))
	r.settle()
	if r.l.lagging.len() != len(peers) {
		b.Fatalf("%d lag", r.l.lagging.len())
	}
	n := 0
	for b.Loop() {
		r.l.began = r.l.began.Add(-time.Microsecond)
		r.l.tell()
		r.l.lookDue = 0
		for r.l.look() {
		}
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*len(peers)), "ns/stream")
}

// BenchmarkOpen opens and closes a stream among others.
func BenchmarkOpen(b *testing.B) {
	r := newRig(b, nil)
	r.open(1)
	r.crowd(1000, "HTTP/1.1")
	r.produce(0, "one", "two")
	b.ReportAllocs()
	for b.Loop() {
		r.dial().get("/events", "Last-Event-ID: v1:0-0").hangUp()
	}
}
