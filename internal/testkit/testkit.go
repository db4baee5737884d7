// Package testkit holds what black-box tests share: a built binary, a process
// and its end, a client that keeps every byte. Only tests import it.
//
// Helpers that can't do what they are asked end the test with a message; they
// must be called from the test's goroutine.
package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// pollEvery is how often a condition is looked at: often enough not to slow a
// test down, seldom enough to leave the CPU to what it waits for.
const pollEvery = 5 * time.Millisecond

// Eventually waits until done, and ends the test if that takes longer than
// within; what says what was waited for.
func Eventually(t testing.TB, within time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !done(); time.Sleep(pollEvery) { //nolint:forbidigo // this is the wait for a condition
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, within)
		}
	}
}

// The ports that FreeAddr gives out lie below the range that the kernel gives
// to clients.
const lowestPort, ports = 20_000, 12_000

// givenPorts counts what FreeAddr has tried. Processes begin at random places,
// so that tests of several packages seldom meet.
var givenPorts atomic.Int64

func init() { givenPorts.Store(rand.Int64N(ports)) }

// FreeAddr returns a loopback address that nobody listens on. It stays free
// while a test opens connections or restarts its server, and no other test of
// the process gets it, not even while its server is down.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := lowestPort + int(givenPorts.Add(1)%ports)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp4", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("none of 100 ports is free")
	return ""
}
