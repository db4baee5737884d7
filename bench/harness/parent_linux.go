package harness

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel send SIGTERM to a process when the thread that
// starts it ends, so that kill -9 of a benchmark leaves no servers behind.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
