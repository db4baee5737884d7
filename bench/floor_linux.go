package bench

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// floorLook is how often a floor looks for orders, and for connections while
	// it carries one out.
	floorLook = 5 * time.Millisecond
	// floorBatchMax bounds the events of one write, and so how long a floor
	// that is behind stays away from its listener.
	floorBatchMax = 256
)

// Open listens and returns the address.
func (f *Floor) Open() (addr string, err error) {
	at, err := net.ResolveTCPAddr("tcp4", f.Listen)
	if err != nil {
		return "", fmt.Errorf("listen address %q: %w", f.Listen, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	local := &unix.SockaddrInet4{Port: at.Port}
	copy(local.Addr[:], at.IP.To4())
	err = unix.Bind(fd, local)
	if err == nil {
		err = unix.Listen(fd, 4096)
	}
	if err != nil {
		_ = unix.Close(fd)
		return "", fmt.Errorf("listen on %s: %w", f.Listen, err)
	}
	f.listener = fd
	if bound, err := unix.Getsockname(fd); err == nil {
		at.Port = bound.(*unix.SockaddrInet4).Port
	}
	return net.JoinHostPort(at.IP.String(), strconv.Itoa(at.Port)), nil
}

// Run takes connections and carries out orders, one after the other, each
// answered on done, until ctx ends. REQUIRES: Open has succeeded.
func (f *Floor) Run(ctx context.Context, orders <-chan Order, done chan<- Published) FloorTotals {
	defer func() {
		for _, fd := range append(f.fds, f.listener) {
			_ = unix.Close(fd)
		}
	}()
	for ctx.Err() == nil {
		f.accept()
		select {
		case o := <-orders:
			p := f.carryOut(ctx, o)
			select {
			case done <- p:
			case <-ctx.Done():
			}
		default:
			f.wait()
		}
	}
	f.totals.Events = f.seq
	return f.totals
}

func (f *Floor) carryOut(ctx context.Context, o Order) Published {
	f.accept() // who waits gets all of it
	began, first := time.Now(), f.seq
	pace := NewPacer(max(o.Rate, 1))
	looked := began
	for f.seq-first < o.Count && ctx.Err() == nil {
		if now := time.Now(); now.Sub(looked) >= floorLook {
			f.accept()
			looked = now
		}
		if o.Rate > 0 && time.Until(pace.Due()) > floorLook {
			f.wait()
			continue
		}
		f.frames = f.frames[:0]
		for n := 0; f.seq-first < o.Count && n < floorBatchMax; n++ {
			if n > 0 && (f.Each || o.Rate > 0 && time.Now().Before(pace.Due())) {
				break
			}
			due := time.Now()
			if o.Rate > 0 {
				due = pace.Wait()
			}
			seq := f.seq
			if f.Each {
				seq = f.turn()
			}
			f.frames = f.appendFrame(f.frames, seq, due)
			f.seq++
		}
		f.write()
	}
	return Published{
		Sent: f.seq - first, Partitions: []int64{f.seq}, Seconds: time.Since(began).Seconds(),
		BehindMS: float64(pace.Behind()) / float64(time.Millisecond),
	}
}

// turn gives the next event to the next connection and returns its number
// there.
func (f *Floor) turn() int64 {
	if len(f.fds) == 0 {
		return 0
	}
	f.next = (f.next + 1) % len(f.fds)
	f.each[f.next]++
	return f.each[f.next] - 1
}

// wait waits for connections.
func (f *Floor) wait() {
	fds := []unix.PollFd{{Fd: int32(f.listener), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, int(floorLook/time.Millisecond)) // whatever it says, accept finds out
}

// accept takes every connection that waits.
func (f *Floor) accept() {
	for {
		fd, _, err := unix.Accept4(f.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		f.totals.Accepted++
		if _, err := unix.Write(fd, []byte(floorHead)); err != nil {
			f.totals.Dropped++
			_ = unix.Close(fd)
			continue
		}
		f.fds = append(f.fds, fd)
		f.each = append(f.each, 0)
	}
}

// write writes the frames to whom they are for.
func (f *Floor) write() {
	if f.Each {
		if f.next < len(f.fds) && !f.take(f.fds[f.next]) {
			last := len(f.fds) - 1
			f.fds[f.next], f.each[f.next] = f.fds[last], f.each[last]
			f.fds, f.each = f.fds[:last], f.each[:last]
		}
		return
	}
	live := f.fds[:0]
	for _, fd := range f.fds {
		if f.take(fd) {
			live = append(live, fd)
		}
	}
	f.fds, f.each = live, f.each[:len(live)]
}

// take writes the frames to one connection; one that does not take all of it
// is dropped, because a part would break its stream.
func (f *Floor) take(fd int) bool {
	f.totals.Writes++
	f.totals.Bytes += int64(len(f.frames))
	if n, err := unix.Write(fd, f.frames); err != nil || n < len(f.frames) {
		f.totals.Dropped++
		_ = unix.Close(fd)
		return false
	}
	return true
}
