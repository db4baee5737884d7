//go:build !linux

package bench

import (
	"context"
	"errors"
	"time"
)

// Client needs epoll, and so Linux.
type Client struct{}

// New fails: the load client needs Linux.
func New(Config) (*Client, error) { return nil, errors.New("the load client needs Linux") }

// Open needs Linux.
func (*Client) Open(context.Context) error { return nil }

// Run needs Linux.
func (*Client) Run(context.Context, time.Duration) error { return nil }

// RunTotal needs Linux.
func (*Client) RunTotal(context.Context, int64, time.Duration) error { return nil }

// RunUntil needs Linux.
func (*Client) RunUntil(context.Context, time.Duration, func() bool) error { return nil }

// Seen needs Linux.
func (*Client) Seen() int64 { return 0 }

// Behind needs Linux.
func (*Client) Behind(int64) int { return 0 }

// Cut needs Linux.
func (*Client) Cut(int) {}

// Gone needs Linux.
func (*Client) Gone() int { return 0 }

// Live needs Linux.
func (*Client) Live() int { return 0 }

// Short needs Linux.
func (*Client) Short([]int64) int { return 0 }

// CompareKeys needs Linux.
func (*Client) CompareKeys(*Changes) {}

// Window needs Linux.
func (*Client) Window() Window { return Window{} }

// Stall needs Linux.
func (*Client) Stall() error { return nil }

// Away needs Linux.
func (*Client) Away() {}

// Back needs Linux.
func (*Client) Back() {}

// Measure needs Linux.
func (*Client) Measure() {}

// Measured needs Linux.
func (*Client) Measured() {}

// Result needs Linux.
func (*Client) Result() Result { return Result{} }

// Close needs Linux.
func (*Client) Close() error { return nil }
