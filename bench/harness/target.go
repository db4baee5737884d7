package harness

import (
	"context"
	"crypto/tls"
	"time"

	"tailcast/bench"
	"tailcast/bench/hostile"
)

// Target is a server that can be put under test: tailcast, a peer, or the
// floor. What a stream must hold is the same for all of them, because a record
// says itself who it is: its value is a bench.Payload, with partition, sequence
// number and due time, wherever in an event's data the server puts it.
type Target struct {
	Name    string // in results and tables: "tailcast", "nchan"
	Version string
	Checks  Checks
	// Rate, unless 0, goes before that of the specification: not every server
	// takes what others do.
	Rate float64
	// Start starts the server as the setup says, with what it needs beside it,
	// and returns when it takes streams. Every process it starts is made with
	// Setup.Command, so that it is pinned and ends with the run.
	Start func(ctx context.Context, s *Setup) (*Server, error)
}

// Checks is what a target promises. What it does not promise is not a fault,
// but counted all the same.
type Checks struct {
	// IDs have tailcast's form and never go back.
	IDs bool
	// Exact: every record published while a stream is open reaches it once,
	// in the order of its partition.
	Exact bool
	// Resume: also those published while it was away.
	Resume bool
	// Places: a stream is told its position before its first event, and gets
	// what is published from then on; before, its topic may not be read yet.
	Places bool
	// Users: streams get the records of their own user alone.
	Users bool
	// Records: every event with data is a record, and none is the server's own.
	Records bool
}

// Server is a target that runs.
type Server struct {
	// URL of the streams; {user} in it stands for the number of the stream's
	// user, from 1.
	URL string
	// TLS is what clients speak with it if the URL is https.
	TLS *tls.Config
	// PIDs are the processes whose CPU and memory are the server's. The brokers
	// and publishers beside it are not.
	PIDs []int
	// Publisher feeds it.
	Publisher Publisher
	// Began is when its process was started; only ingest asks.
	Began time.Time
	// Metrics is the URL of Prometheus metrics of a Go process, or "".
	Metrics string
	// GC is a URL whose answer has a Go process collect its garbage first, or
	// "". Without, the heap of idle streams holds what opening them left.
	GC string
	// Attacked is what attackers know of it, for Hostile.
	Attacked hostile.Target
	// Stop ends what Start has begun, besides what Setup.Command has started.
	// It may be nil.
	Stop func() error
}

// Publisher publishes records by an open loop, numbered by bench.Sequence from
// the first order to the last. Publish returns when all are acknowledged or
// given up; an order of no records returns when the publisher is able to take
// one.
type Publisher interface {
	Publish(ctx context.Context, o bench.Order) (bench.Published, error)
}
