package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. It is written with the largest unit that divides
// it: 64MiB, 16KiB, 4097.
type Size int64

var sizeUnits = [...]struct {
	name  string
	bytes Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// parseSize reads what String writes. Decimal units are refused, not guessed:
// an operator who writes MB may mean either.
func parseSize(text string) (Size, error) {
	digits, unit := text, Size(1)
	for _, u := range sizeUnits {
		if cut, ok := strings.CutSuffix(text, u.name); ok {
			digits, unit = cut, u.bytes
		}
	}
	n, err := parseDigits(digits)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > math.MaxInt64/int64(unit):
		return 0, fmt.Errorf("%s is more than can be counted", quote(text))
	case err != nil:
		return 0, fmt.Errorf("%s is not a size (use 4MiB, 64KiB, 4096)", quote(text))
	}
	return Size(n) * unit, nil
}

// parseDigits reads a whole number without sign.
func parseDigits(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}
