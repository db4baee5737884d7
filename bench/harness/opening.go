package harness

import (
	"context"
	"io"
	"net"
	"slices"
	"time"

	"tailcast/internal/wait"
)

const (
	// openEvery is how often a stream is opened to see how long that takes.
	openEvery = 100 * time.Millisecond
	// openLate is how long one is waited for, which it then has taken.
	openLate = 3 * time.Second
)

// openings opens streams one after the other, as pages do that are loaded now.
// The function it returns ends that and says how long a stream took until its
// first bytes came, in the middle.
func openings(addr, path string) (end func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var took []time.Duration
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.Every(ctx, openEvery, func(time.Time) {
			began := time.Now()
			err := openOne(ctx, addr, path)
			switch d := time.Since(began); {
			case ctx.Err() != nil && d < openLate: // it has not failed
			case err != nil:
				took = append(took, openLate)
			default:
				took = append(took, d)
			}
		})
	}()
	return func() time.Duration {
		cancel()
		<-done
		if len(took) == 0 {
			return 0
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
}

// openOne opens a stream, waits for its first bytes and leaves it.
func openOne(ctx context.Context, addr, path string) error {
	ctx, cancel := context.WithTimeout(ctx, openLate)
	defer cancel()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	c, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	kept := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer kept()
	if _, err = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: gw.test\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1024))
	return err
}
