package apptest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"tailcast/internal/testkit"
)

// TestLogThatNobodyReads: a pipe that is full, or has no other end any more,
// stops neither streams nor the way to the exit.
func TestLogThatNobodyReads(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		closed bool
	}{{"full", false}, {"closed", true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := started(t, 1, "unread")
			addr := testkit.FreeAddr(t)
			far, near, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			cmd := exec.Command(testkit.Build(t, "tailcast/cmd/tailcast"), "serve", "--kafka-brokers", b.addr, "--route", "/events=unread",
				"--listen", addr, "--admin", testkit.FreeAddr(t), "--drain-delay", "0s", "--access-log", "on")
			cmd.Stderr = near
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			exited := make(chan error, 1)
			go func() { exited <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			near.Close()
			if tc.closed {
				far.Close()
			}
			url := "http://" + addr + "/" + strings.Repeat("x", 250)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			asked := 0
			testkit.Eventually(t, patience, "more lines than a pipe holds", func() bool {
				res, err := client.Get(url)
				if err == nil { // it listens
					res.Body.Close()
					asked++
				}
				return asked == 500
			})
			c := testkit.Open(t, addr, "/events")
			c.Until(t, patience, "the first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
			b.produce("unread", 0, 3)
			wantRecords(t, c, 0, 0, 3)
			c.Close()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-exited:
				if err != nil {
					t.Errorf("it ends with %v", err)
				}
			case <-within(t).Done():
				t.Error("it does not end")
			}
		})
	}
}

// TestHangup: the end of a terminal ends a node cleanly, unless nohup is there.
func TestHangup(t *testing.T) {
	t.Parallel()
	b := started(t, 1, "hangup")
	s := ready(t, b, "--route", "/events=hangup")
	c := open(t, s, "/events")
	s.Signal(t, syscall.SIGHUP)
	if err := c.End(t, patience); !farewell.Match(c.Raw) {
		t.Errorf("end %v of %q", err, c.Raw)
	}
	c.Close()
	if code := s.Wait(t, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
	addr := testkit.FreeAddr(t)
	p := testkit.Start(t, "/bin/sh", "-c", fmt.Sprintf(`trap "" HUP; exec %s serve --kafka-brokers %s --route /events=hangup --listen %s --admin %s --drain-delay 0s`,
		testkit.Build(t, "tailcast/cmd/tailcast"), b.addr, addr, testkit.FreeAddr(t)))
	testkit.Eventually(t, patience, "start under nohup", func() bool { return strings.Contains(p.Stderr.String(), "msg=serving") })
	p.Signal(t, syscall.SIGHUP)
	c = testkit.Open(t, addr, "/events")
	c.Until(t, patience, "the first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
	b.produce("hangup", 0, 1)
	wantRecords(t, c, 0, 0, 1)
	c.Close()
	if code := p.Stop(t, patience); code != 0 {
		t.Errorf("under nohup: exit code %d", code)
	}
}
