//go:build !linux

package harness

import "errors"

func onCPUs(cpus string, start func() error) error {
	if cpus != "" {
		return errors.New("pinning to processors needs Linux")
	}
	return start()
}

// Pin needs Linux.
func Pin(cpus string) error { return onCPUs(cpus, func() error { return nil }) }

// GiveWay needs Linux.
func GiveWay() error { return errors.New("giving way to other processes needs Linux") }
