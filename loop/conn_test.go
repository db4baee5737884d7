package loop

import (
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFailed: why a socket failed is told by the error and by what it was for.
func TestFailed(t *testing.T) {
	for _, tt := range []struct {
		err   error
		state connState
		want  closeReason
	}{
		{os.NewSyscallError("read", io.EOF), stateStream, closePeer},
		{os.NewSyscallError("read", unix.ECONNRESET), stateStream, closePeer},
		{unix.EPIPE, stateEnding, closePeer},
		{unix.ETIMEDOUT, stateStream, closeStall},
		{os.NewSyscallError("read", unix.ETIMEDOUT), stateStream, closeStall},
		{unix.ETIMEDOUT, stateHead, closePeer}, // keepalive found nobody
		{unix.EHOSTUNREACH, stateStream, closeError},
		{errors.New("any"), stateStream, closeError},
	} {
		c := &conn{state: tt.state}
		if c.failed(tt.err); c.reason != tt.want {
			t.Errorf("%v in state %d: %s, want %s", tt.err, tt.state, closeNames[c.reason], closeNames[tt.want])
		}
	}
}

// TestReasonDecidedBefore: how the socket of a connection ends does not matter
// once it was ended for a reason.
func TestReasonDecidedBefore(t *testing.T) {
	r := newRig(t, nil)
	r.open(1)
	for _, tt := range []struct {
		why, want closeReason
	}{{closePeer, closeStall}, {closeAge, closeAge}} {
		p := r.dial().get("/events")
		p.c.reason = tt.why
		r.l.OnClose(p.near, unix.ETIMEDOUT)
		p.near.open = false
		if r.l.counts.closed[tt.want] != 1 {
			t.Errorf("closed: %v", r.l.counts.closed)
		}
	}
}
