package testkit

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a running command whose output is kept.
type Process struct {
	Stdout, Stderr Output

	cmd    *exec.Cmd
	exited chan struct{} // closed when it has
}

// Output collects what a process writes. Safe from any goroutine.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// String is everything written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Start starts a command. When the test ends it is killed, and if the test has
// failed its standard error is logged. A data race that it reports fails the
// test.
func Start(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	return StartWith(t, nil, path, args...)
}

// StartWith is Start of a command that reads its standard input from in.
func StartWith(t testing.TB, in io.Reader, path string, args ...string) *Process {
	t.Helper()
	return start(t, nil, in, path, args)
}

// start is StartWith with more variables (NAME=VALUE) than this process has.
func start(t testing.TB, env []string, in io.Reader, path string, args []string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Stdin = in
	if len(env) > 0 {
		p.cmd.Env = append(os.Environ(), env...)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.Stdout, &p.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code is in ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if strings.Contains(p.Stderr.String(), "WARNING: DATA RACE") {
			t.Errorf("%s reports a data race", path)
		}
		if t.Failed() {
			t.Logf("standard error of %s %s:\n%s", path, strings.Join(args, " "), p.Stderr.String())
		}
	})
	return p
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited reports whether the process has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Signal sends sig.
func (p *Process) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal %v: %v", sig, err)
	}
}

// Wait waits for the process to end and returns its exit code, -1 if a signal
// ended it.
func (p *Process) Wait(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("process %d has not ended within %v", p.PID(), within)
		return 0
	}
}

// Stop asks the process to end (SIGTERM) and returns its exit code.
func (p *Process) Stop(t testing.TB, within time.Duration) int {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	return p.Wait(t, within)
}

// Kill ends the process at once (SIGKILL).
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	p.Wait(t, 10*time.Second)
}
