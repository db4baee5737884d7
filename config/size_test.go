package config

import (
	"math"
	"testing"
)

func TestParseSize(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Size // -1: refused
	}{
		{"0", 0},
		{"1", 1},
		{"4096", 4096},
		{"004", 4},
		{"1KiB", 1 << 10},
		{"16KiB", 16 << 10},
		{"64MiB", 64 << 20},
		{"3GiB", 3 << 30},
		{"2TiB", 2 << 40},
		{"8388607TiB", 8388607 << 40},
		{"8388608TiB", -1},
		{"9223372036854775807", math.MaxInt64},
		{"9223372036854775808", -1},
		{"", -1},
		{"KiB", -1},
		{"-1", -1},
		{"+1", -1},
		{"1.5MiB", -1},
		{"1_000", -1},
		{"0x10", -1},
		{"1 MiB", -1},
		{" 1", -1},
		{"1MB", -1},
		{"1M", -1},
		{"1B", -1},
		{"1mib", -1},
		{"1KiBKiB", -1},
		{"1MiBKiB", -1},
		{"\u0661", -1}, // a digit of another alphabet
	} {
		got, err := parseSize(tc.text)
		if (err != nil) != (tc.want < 0) || err == nil && got != tc.want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", tc.text, got, err, tc.want)
		}
	}
}

func TestSizeString(t *testing.T) {
	for _, tc := range []struct {
		size Size
		want string
	}{
		{0, "0"},
		{1, "1"},
		{1023, "1023"},
		{1024, "1KiB"},
		{1025, "1025"},
		{64 << 20, "64MiB"},
		{1 << 30, "1GiB"},
		{1<<30 + 1<<20, "1025MiB"},
		{1 << 40, "1TiB"},
	} {
		if got := tc.size.String(); got != tc.want {
			t.Errorf("%d is written %q, want %q", int64(tc.size), got, tc.want)
		}
	}
}
