package loop

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tailcast/frame"
)

// benchStreams is how many streams there are; with -short they are one slice of
// a pass, so that it does the same whatever the clock says.
func benchStreams() int {
	if testing.Short() {
		return clockEvery - 1
	}
	return 1000
}

func BenchmarkPass(b *testing.B) {
	for _, events := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			benchmarkPass(b, events, func(r *rig) []*peer { return r.crowd(benchStreams(), "HTTP/1.1") })
		})
	}
}

// BenchmarkPassTLS is the same to streams with TLS.
func BenchmarkPassTLS(b *testing.B) {
	for _, events := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			benchmarkPass(b, events, func(r *rig) (peers []*peer) {
				for range benchStreams() {
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
	peers := r.crowd(benchStreams(), "HTTP/1.1")
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
	peers := r.crowd(benchStreams(), "HTTP/1.1")
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
	r.crowd(benchStreams(), "HTTP/1.1")
	r.produce(0, "one", "two")
	request := req("GET /events HTTP/1.1", "Last-Event-ID: v1:0-0")
	p := r.dial()
	b.ReportAllocs()
	for b.Loop() {
		p.send(request)
		p.anew()
	}
}

// BenchmarkPersonal opens and closes a stream that lacks 100 events of the log
// and gets them with ids of its own.
func BenchmarkPersonal(b *testing.B) {
	r := newRig(b, nil)
	aside(r, 300, 200)
	request := req("GET /events HTTP/1.1", "Last-Event-ID: v1:0-299.1-199")
	p := r.dial()
	buf := make([]byte, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		p.send(request)
		if p.c.own != nil {
			b.Fatal("it has not joined the others")
		}
		p.discard(buf)
		p.anew()
	}
}

// BenchmarkFiltered is a record for one user of many, over wake, look-up and
// write: the number of streams that it is not for hardly matters.
func BenchmarkFiltered(b *testing.B) {
	for _, streams := range []int{1000, 8000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			r := newRig(b, func(as *setup) { as.filters, as.MaxConns = filters, streams })
			r.open(1)
			peers := make([]*peer, streams)
			for i := range peers {
				peers[i] = r.dial().get(fmt.Sprint("/key/", i))
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			rec := []frame.Record{{Topic: r.topic, Time: time.Now().UnixMilli(), Value: bytes.Repeat([]byte("x"), 200)}}
			buf := make([]byte, 1<<20)
			var key []byte
			b.ReportAllocs()
			for b.Loop() {
				to := rnd.IntN(streams)
				key = strconv.AppendInt(key[:0], int64(to), 10)
				rec[0].Key, rec[0].Offset = key, r.next[0]
				r.next[0]++
				r.sink.Append(0, rec)
				r.sink.Flush(nil)
				r.settle()
				peers[to].discard(buf)
			}
			if r.l.lagging.len() > 0 {
				b.Fatal("a socket was full")
			}
		})
	}
}

// usersBatch is how many records a wake brings: some 3 ms of 20,000 a second.
const usersBatch = 64

// BenchmarkUsers is what usersBatch records, each for another user, cost this
// program itself: encode, label, wake, look up, write to what takes everything.
// With their number grow the cache misses alone.
func BenchmarkUsers(b *testing.B) {
	for _, users := range []int{1000, 20_000} {
		b.Run(fmt.Sprintf("users=%d", users), func(b *testing.B) {
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer null.Close()
			r := newRig(b, func(as *setup) { as.filters, as.MaxConns = filters[:1], users })
			r.open(1)
			for i := range users {
				r.mute(null).get(fmt.Sprint("/key/", i))
			}
			recs := make([]frame.Record, usersBatch)
			keys := make([][]byte, usersBatch)
			value := bytes.Repeat([]byte("x"), 200)
			rnd := rand.New(rand.NewPCG(1, 2))
			before := r.l.counts.events
			runtime.GC() // what opening them left behind
			began := cpuTime(b)
			for b.Loop() {
				now := time.Now().UnixMilli()
				for i := range recs {
					keys[i] = strconv.AppendInt(keys[i][:0], int64(rnd.IntN(users)), 10)
					recs[i] = frame.Record{Topic: r.topic, Time: now, Value: value, Key: keys[i], Offset: r.next[0]}
					r.next[0]++
				}
				r.sink.Append(0, recs)
				r.sink.Flush(nil)
				r.settle()
			}
			if n := r.l.counts.events - before; n != uint64(r.next[0]) {
				b.Fatalf("%d events of %d records", n, r.next[0])
			}
			b.ReportMetric(float64(cpuTime(b)-began)/float64(r.next[0]), "cpu-ns/record")
		})
	}
}

// cpuTime is what the process has used: on a busy machine the clock tells more
// of the others.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
