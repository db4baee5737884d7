package loop

import (
	"sync"
	"sync/atomic"

	"tailcast/auth"
)

// quotas count what each of many has, up to a limit that is the same for all.
// Only who has something is remembered. Safe from any goroutine.
type quotas[K comparable] struct {
	most int // 0: no limit, and nothing is counted

	mu sync.Mutex
	of map[K]*quota[K]
}

// quota is how much one has. Whoever holds it calls leave once.
type quota[K comparable] struct {
	all *quotas[K]
	key K
	n   int // under all.mu
}

// take counts one more for key; false when it has as many as it may. The quota
// is nil without a limit.
func (q *quotas[K]) take(key K) (*quota[K], bool) {
	if q.most == 0 {
		return nil, true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	one := q.of[key]
	if one == nil {
		one = &quota[K]{all: q, key: key}
		if q.of == nil {
			q.of = map[K]*quota[K]{}
		}
		q.of[key] = one
	}
	if one.n >= q.most {
		return nil, false
	}
	one.n++
	return one, true
}

// leave undoes take.
func (one *quota[K]) leave() {
	if one == nil {
		return
	}
	q := one.all
	q.mu.Lock()
	defer q.mu.Unlock()
	if one.n--; one.n == 0 {
		delete(q.of, one.key)
	}
}

func (q *quotas[K]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.of)
}

// subject is who a token speaks of: subjects are names of their issuer.
type subject struct{ issuer, name string }

// room is how many streams a route has for all and for each subject.
type room struct {
	most     int64 // 0: no limit
	streams  atomic.Int64
	subjects quotas[subject]
}

// newRoom is that of a route, nil without limits.
func newRoom(s *Serving) *room {
	if s.MaxStreams == 0 && s.MaxStreamsPerSubject == 0 {
		return nil
	}
	return &room{most: int64(s.MaxStreams), subjects: quotas[subject]{most: s.MaxStreamsPerSubject}}
}

// seat is a stream's place in a room. Whoever holds it calls leave once.
type seat struct {
	room    *room
	subject *quota[subject]
}

// Why a stream is shed: the reason label of tailcast_streams_shed_total.
type shedReason uint8

const (
	shedDrain   shedReason = iota // the node is stopping
	shedGuard                     // too many tokens wait to be checked
	shedFeed                      // its feed can't be opened now
	shedRoute                     // the route has max_streams
	shedSubject                   // the token's subject has max_streams_per_subject
	shedReasons
)

var shedNames = [shedReasons]string{"drain", "guard", "feed", "route", "subject"}

// take finds a place for the bearer of token, nil for anyone; ok is false when
// there is none, and why says so. The seat is nil when the room has no limits.
func (r *room) take(token *auth.Token) (s *seat, why shedReason, ok bool) {
	if r == nil {
		return nil, 0, true
	}
	if n := r.streams.Add(1); r.most > 0 && n > r.most {
		r.streams.Add(-1)
		return nil, shedRoute, false
	}
	s = &seat{room: r}
	if token != nil {
		if s.subject, ok = r.subjects.take(subject{token.Issuer, token.Subject}); !ok {
			r.streams.Add(-1)
			return nil, shedSubject, false
		}
	}
	return s, 0, true
}

// leave undoes take.
func (s *seat) leave() {
	if s == nil {
		return
	}
	s.room.streams.Add(-1)
	s.subject.leave()
}
