package bench

import (
	"context"
	"time"
)

// Order asks a publisher for Count records at Rate a second, whether or not
// earlier ones have gone out; at Rate 0, as fast as they are taken.
type Order struct {
	Rate  float64 `json:"rate"`
	Count int64   `json:"count"`
}

// Published is what came of an order.
type Published struct {
	Sent       int64   `json:"sent"`       // acknowledged
	Failed     int64   `json:"failed"`     // given up
	Partitions []int64 `json:"partitions"` // acknowledged since the publisher began, by partition
	Seconds    float64 `json:"seconds"`
	// BehindMS is how late the latest record went out; well above a few
	// milliseconds, the rate was not kept.
	BehindMS float64 `json:"behind_ms"`
	Error    string  `json:"error,omitempty"` // the first
}

// Sequence numbers records across orders: round robin over the users, whose
// partition is fixed, or else over the partitions. It belongs to one goroutine.
type Sequence struct {
	Partitions int   // at least 1
	Users      int64 // 0: every record is for everyone
	n          int64
}

// Next is the next record, due at the given time.
func (s *Sequence) Next(due time.Time) Payload {
	n := s.n
	s.n++
	p := Payload{Time: due.UnixNano()}
	if s.Users > 0 {
		p.User, p.Seq = 1+n%s.Users, n/s.Users
		p.Partition = int32(p.User % int64(s.Partitions))
		return p
	}
	p.Partition, p.Seq = int32(n%int64(s.Partitions)), n/int64(s.Partitions)
	return p
}

// Pace calls send for each record of the order when it is due, until ctx is
// done, and returns how late the latest one was.
func (o Order) Pace(ctx context.Context, send func(due time.Time)) (behind time.Duration) {
	if o.Rate <= 0 {
		for n := int64(0); n < o.Count && ctx.Err() == nil; n++ {
			send(time.Now())
		}
		return 0
	}
	pace := NewPacer(o.Rate)
	for n := int64(0); n < o.Count && ctx.Err() == nil; n++ {
		send(pace.Wait())
	}
	return pace.Behind()
}
