package loop

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tailcast/auth"
)

// TestQuotas: many goroutines take and leave; nobody ever has more than the
// limit, and in the end nobody is remembered.
func TestQuotas(t *testing.T) {
	q := quotas[int]{most: 3}
	var all sync.WaitGroup
	for key := range 4 {
		var had [3]*quota[int]
		for i := range had {
			one, ok := q.take(key)
			if !ok {
				t.Fatalf("place %d of %d is refused", i, key)
			}
			had[i] = one
		}
		if _, ok := q.take(key); ok {
			t.Errorf("%d has one too many", key)
		}
		for _, one := range had {
			all.Go(func() {
				one.leave()
				for range 100 {
					if again, ok := q.take(key); ok {
						again.leave()
					}
				}
			})
		}
	}
	all.Wait()
	if n := q.len(); n != 0 {
		t.Errorf("%d are remembered", n)
	}
	none := quotas[int]{}
	if one, ok := none.take(1); one != nil || !ok {
		t.Error("counted without a limit")
	}
}

// TestRoom: a route's streams, and a subject's.
func TestRoom(t *testing.T) {
	ada, bob := &auth.Token{Issuer: "a", Subject: "ada"}, &auth.Token{Issuer: "a", Subject: "bob"}
	other := &auth.Token{Issuer: "b", Subject: "ada"} // another one of that name
	r := newRoom(&Serving{MaxStreams: 4, MaxStreamsPerSubject: 2})
	var seats []*seat
	for _, tc := range []struct {
		token *auth.Token
		why   shedReason
		ok    bool
	}{
		{ada, 0, true}, {ada, 0, true}, {ada, shedSubject, false}, {bob, 0, true}, {other, 0, true}, {bob, shedRoute, false},
	} {
		s, why, ok := r.take(tc.token)
		if why != tc.why || ok != tc.ok {
			t.Fatalf("%s of %s: %t, %s", tc.token.Subject, tc.token.Issuer, ok, shedNames[why])
		}
		seats = append(seats, s)
	}
	for _, s := range seats {
		s.leave()
	}
	if r.streams.Load() != 0 || r.subjects.len() != 0 {
		t.Errorf("%d streams, %d subjects are left", r.streams.Load(), r.subjects.len())
	}
}

// TestMaxStreams: over the limit a client gets a head that its page may read,
// a time to come back, and a clean end.
func TestMaxStreams(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, nil)
			r.srv.site.Serves[0].room = newRoom(&Serving{MaxStreams: 2})
			r.open(1)
			peers := r.crowd(2, version)
			over := r.dial()
			over.send(req("GET /events "+version, "Origin: https://app.test"))
			over.events()
			if h := over.stream.Head; h == nil || h.StatusCode != http.StatusOK || h.Header.Get("Access-Control-Allow-Origin") != "https://app.test" {
				t.Fatalf("head: %v", h)
			}
			if retry, _ := over.stream.Parser.Retry(); !over.ended || retry < shedRetryMin || retry > shedRetryMax {
				t.Errorf("ended: %t, retry %d", over.ended, retry)
			}
			if n := r.l.counts.shed[shedRoute]; n != 1 {
				t.Errorf("%d are shed", n)
			}
			peers[0].hangUp()
			r.dial().get("/events")
			if n := r.l.counts.streams; n != 2 {
				t.Errorf("%d streams", n)
			}
			r.l.end(peers[1].c, closeAge)
			if n := r.srv.site.Serves[0].room.streams.Load(); n != 1 {
				t.Errorf("%d places are taken behind an end", n)
			}
		})
	}
}

// TestPace: a burst after a rest, then one at a time.
func TestPace(t *testing.T) {
	p, now := newPace(100), time.Unix(1000, 0)
	for i := range 10 {
		if wait := p.next(now); wait > 0 {
			t.Errorf("connection %d of a burst waits %v", i, wait)
		}
	}
	for i := 1; i < 50; i++ {
		if wait, want := p.next(now), time.Duration(i)*10*time.Millisecond; wait != want {
			t.Fatalf("connection %d behind it waits %v, want %v", i, wait, want)
		}
	}
	if wait := p.next(now.Add(time.Hour)); wait > 0 {
		t.Errorf("after a rest one waits %v", wait)
	}
	none := newPace(0)
	for range 2 {
		if none.next(now) != 0 {
			t.Error("waits without a limit")
		}
	}
}

// TestAcceptRate: connections beyond the rate wait, and none is refused.
func TestAcceptRate(t *testing.T) {
	s := start(t, func(as *setup) { as.AcceptRate = 100 })
	begin := time.Now()
	for range 40 {
		c := s.dial()
		c.send(req("GET /nope HTTP/1.1"))
		if !strings.HasPrefix(c.head(), "HTTP/1.1 404 ") {
			t.Fatal("no answer")
		}
	}
	if took := time.Since(begin); took < 250*time.Millisecond { // 300 ms less what the clock is coarse by
		t.Errorf("40 came in %v", took)
	}
}
