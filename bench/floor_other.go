//go:build !linux

package bench

import (
	"context"
	"errors"
)

// Open fails: the floor needs Linux.
func (*Floor) Open() (addr string, err error) { return "", errors.New("the floor needs Linux") }

// Run needs Linux.
func (*Floor) Run(context.Context, <-chan Order, chan<- Published) FloorTotals { return FloorTotals{} }
