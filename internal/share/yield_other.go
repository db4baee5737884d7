//go:build !linux

package share

import "runtime"

func yield() { runtime.Gosched() }
