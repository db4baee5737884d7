//go:build !linux

package kafkatest

import "syscall"

// attr: a test process that is killed leaves its brokers behind here.
func attr() *syscall.SysProcAttr { return nil }
