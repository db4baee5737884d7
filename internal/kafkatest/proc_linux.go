package kafkatest

import "syscall"

// attr makes the kernel end a broker with the test process, however that ends.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
