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

// FreeAddr returns a loopback address that nobody listens on. Its port lies
// below the range the kernel gives to clients, so that it stays free while a
// test opens connections or restarts its server.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.IntN(12_000)))
		if l, err := net.Listen("tcp4", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port from 20000 to 31999 in 100 tries")
	return ""
}
