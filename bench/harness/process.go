package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// stopWithin is how long a process has to end after SIGTERM. The figures
	// are taken by then.
	stopWithin = 5 * time.Second
	// readyWithin bounds the wait for a started server, on a busy machine.
	readyWithin = 60 * time.Second
	// tailBytes is how much of a process's standard error an error quotes.
	tailBytes = 2 << 10
)

// Process is a process that the harness has started. Its standard input and
// output are pipes of the one who started it.
type Process struct {
	In  io.WriteCloser
	Out io.ReadCloser

	cmd    *exec.Cmd
	stderr tail
	exited chan struct{} // closed when it has
}

// startProcess starts a process on the given processors. It ends with this one,
// however that ends (dieWithParent).
func startProcess(cpus string, log io.Writer, name string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.stderr.also = log
	p.cmd.Stderr = &p.stderr
	var err error
	if p.In, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// A pipe of its own, because Wait closes the one of StdoutPipe, and with it
	// what was not read yet.
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.Out, p.cmd.Stdout = out, childOut
	p.cmd.WaitDelay = time.Second // for children of its own that keep its standard error
	dieWithParent(p.cmd)
	started := make(chan error)
	go p.run(cpus, started)
	err = <-started
	_ = childOut.Close()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return p, nil
}

// run is the process from its start to its end. It keeps its thread all the
// while: the kernel takes the end of that for the end of the parent.
func (p *Process) run(cpus string, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := onCPUs(cpus, p.cmd.Start)
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // how it ended is in what it wrote
	close(p.exited)
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stderr is the end of what the process has written to its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Await calls ready until it returns nil. It returns an error when the process
// has ended or a minute has passed.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.failed("it has ended")
		case <-ctx.Done():
			return p.failed("not ready: " + err.Error())
		case <-tick.C:
		}
	}
}

// failed is an error that quotes what the process said.
func (p *Process) failed(why string) error {
	return fmt.Errorf("%s: %s: %s", filepath.Base(p.cmd.Path), why, p.Stderr())
}

// Stop ends the process: its input ends, it gets SIGTERM, and SIGKILL when that
// takes too long.
func (p *Process) Stop() error {
	err := closed(p.In)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	return errors.Join(err, closed(p.Out))
}

// closed closes c, which may be closed already.
func closed(c io.Closer) error {
	if err := c.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// tail keeps the end of what is written to it. Safe from any goroutine.
type tail struct {
	mu   sync.Mutex
	kept []byte
	also io.Writer // or nil
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-tailBytes):]
	if t.also != nil {
		return t.also.Write(b)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}
