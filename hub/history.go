package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tailcast/frame"
)

// History reads from a source what a feed's log no longer holds. Safe from any
// goroutine; a call blocks until there is an answer or ctx ends.
type History interface {
	// Read calls each for the records of a partition from the batch that holds
	// offset from on, lowest offset first, for about one fetch's worth. each
	// borrows the record. What was told is Span, which may begin before from:
	// batches are read whole, so that readers of near offsets can share them.
	//
	// A span of no offsets means that the broker has nothing at from yet. The
	// error is an *ExpiredError, ErrRecreated, or one that passes: retry later.
	Read(ctx context.Context, topic string, id frame.TopicID, partition int32, from int64, each func(*frame.Record)) (Span, error)

	// Bounds returns where each partition of a topic begins and ends at the
	// brokers, as of no longer than a second ago. Partitions without a leader
	// are left out. The error is ErrRecreated, or one that passes.
	Bounds(ctx context.Context, topic string, id frame.TopicID) ([]Bound, error)

	// Since is Bounds, but Start is the first offset whose record's time is not
	// before millis since 1970, or End if there is none.
	Since(ctx context.Context, topic string, id frame.TopicID, millis int64) ([]Bound, error)

	// Cleanup returns how the brokers clean up a topic. The error passes.
	Cleanup(ctx context.Context, topic string) (Cleanup, error)
}

// Cleanup is how the brokers clean up a topic.
type Cleanup struct {
	Compacted       bool          // by key, perhaps by retention too
	DeleteRetention time.Duration // for how long tombstones are kept at least
}

// Span is a run of offsets [Start, Next), of which every record was told.
type Span struct {
	Start, Next int64
	Bytes       int // read from the broker, before decompression
}

// Bound is the extent of one partition.
type Bound struct {
	Partition  int32
	Start, End int64 // first offset held, and the one behind the last that may be read
}

// ExpiredError says that the brokers no longer hold an offset.
type ExpiredError struct {
	Start int64 // first offset they do hold
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the log begins at offset %d now", e.Start)
}

// ErrRecreated says that a topic is another one of the same name.
var ErrRecreated = errors.New("the topic is another one of the same name")
