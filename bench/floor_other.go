//go:build !linux

package bench

import (
	"context"
	"errors"
)

// Run fails: the floor needs Linux.
func (*Floor) Run(context.Context) (FloorTotals, error) {
	return FloorTotals{}, errors.New("the floor needs Linux")
}
