//go:build clients

package apptest

import (
	"os/exec"
	"strings"
	"testing"

	"tailcast/internal/ssetest"
	"tailcast/internal/testkit"
)

// need returns the path of a program, or fails with the command that installs it.
func need(t testing.TB, command, install string) string {
	t.Helper()
	path, err := exec.LookPath(command)
	if err != nil {
		t.Fatalf("this test needs %s: %s", command, install)
	}
	return path
}

// run runs a program to its end, gives it an input, and returns its standard output.
func run(t testing.TB, input, path string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(within(t), path, args...)
	cmd.Stdin = strings.NewReader(input)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", path, strings.Join(args, " "), err, errors.String())
	}
	return string(out)
}

// curl is one at work: it decodes HTTP, the test decodes events.
type curl struct {
	*testkit.Process
	parser ssetest.Parser
	taken  int // bytes of the output
	events []ssetest.Event
}

func startCurl(t testing.TB, args ...string) *curl {
	t.Helper()
	c := &curl{Process: testkit.Start(t, need(t, "curl", "apt-get install curl"), append([]string{"-sN"}, args...)...)}
	testkit.Eventually(t, patience, "first id by curl", func() bool {
		c.take()
		return c.parser.LastEventID() != ""
	})
	return c
}

func (c *curl) take() {
	out := c.Stdout.String()
	c.events = append(c.events, c.parser.Feed([]byte(out[c.taken:]))...)
	c.taken = len(out)
}

// next waits for the next event.
func (c *curl) next(t testing.TB) ssetest.Event {
	t.Helper()
	testkit.Eventually(t, patience, "event by curl", func() bool {
		c.take()
		return len(c.events) > 0
	})
	e := c.events[0]
	c.events = c.events[1:]
	return e
}

// demo starts one without samples; the broker has its address.
func demo(t testing.TB, flags ...string) (*testkit.Server, *broker) {
	t.Helper()
	b := newBroker(t, testkit.FreeAddr(t))
	s := testkit.Tailcast(t, "demo", append([]string{"--broker-listen", b.addr}, flags...)...)
	s.Ready(t, patience)
	return s, b
}
