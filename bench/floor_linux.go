package bench

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Run serves until ctx is done.
func (f *Floor) Run(ctx context.Context) (FloorTotals, error) {
	listener, err := f.listen()
	if err != nil {
		return f.totals, err
	}
	defer func() {
		for _, fd := range append(f.fds, listener) {
			_ = unix.Close(fd)
		}
	}()
	per := max(1, f.PerWrite)
	pace := NewPacer(f.Rate / float64(per))
	var seq int64
	var frames []byte
	for ctx.Err() == nil {
		f.accept(listener)
		if d := time.Until(pace.Due()); d > 5*time.Millisecond {
			time.Sleep(5 * time.Millisecond) // and look for connections again
			continue
		}
		due := pace.Wait()
		frames = frames[:0]
		for range per {
			frames = f.appendFrame(frames, seq, due)
			seq++
		}
		f.write(frames)
	}
	f.totals.Events = seq
	f.totals.BehindMS = float64(pace.Behind()) / float64(time.Millisecond)
	return f.totals, nil
}

func (f *Floor) listen() (int, error) {
	addr, err := net.ResolveTCPAddr("tcp4", f.Listen)
	if err != nil {
		return -1, fmt.Errorf("listen address %q: %w", f.Listen, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}); err != nil {
		return -1, fmt.Errorf("listen on %s: %w", f.Listen, err)
	}
	if err := unix.Listen(fd, 4096); err != nil {
		return -1, fmt.Errorf("listen on %s: %w", f.Listen, err)
	}
	return fd, nil
}

// accept takes every connection that waits.
func (f *Floor) accept(listener int) {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
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
	}
}

// write writes frames to every connection; one that does not take all of it is
// dropped, because a part would break its stream.
func (f *Floor) write(frames []byte) {
	live := f.fds[:0]
	for _, fd := range f.fds {
		if n, err := unix.Write(fd, frames); err != nil || n < len(frames) {
			f.totals.Dropped++
			_ = unix.Close(fd)
			continue
		}
		live = append(live, fd)
	}
	f.totals.Writes += int64(len(f.fds))
	f.totals.Bytes += int64(len(f.fds)) * int64(len(frames))
	f.fds = live
}
