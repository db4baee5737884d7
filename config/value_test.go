package config

import (
	"testing"
	"time"
)

func TestShow(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  string
	}{
		{time.Duration(0), "0s"},
		{10 * time.Second, "10s"},
		{100 * time.Millisecond, "100ms"},
		{time.Minute, "1m"},
		{10 * time.Minute, "10m"},
		{90 * time.Second, "1m30s"},
		{time.Hour, "1h"},
		{100 * time.Hour, "100h"},
		{time.Hour + time.Second, "1h0m1s"},
		{Size(1 << 20), "1MiB"},
		{1024, "1024"},
	} {
		if got := show(tc.value); got != tc.want {
			t.Errorf("show(%v) = %q, want %q", tc.value, got, tc.want)
		}
	}
}

func TestParseListen(t *testing.T) {
	for _, tc := range []struct {
		text string
		ok   bool
	}{
		{":8080", true},
		{":0", true},
		{"127.0.0.1:18080", true},
		{"localhost:1", true},
		{"[::1]:8080", true},
		{"[fe80::1%eth0]:8080", true},
		{"0.0.0.0:65535", true},
		{"", false},
		{":", false},
		{"8080", false},
		{"::1", false},
		{":08080", false},
		{":-1", false},
		{":+1", false},
		{":65536", false},
		{"a b:1", false},
		{"http://a:1", false},
		{"a:1\n", false},
	} {
		if _, err := parseListen(tc.text); (err == nil) != tc.ok {
			t.Errorf("parseListen(%q): %v", tc.text, err)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"max-lag", "max-age", "kafka-brokers", "listen", "log-level", "log-format"}
	for _, tc := range []struct{ typed, want string }{
		{"max-leg", "max-lag"},
		{"max_lag", "max-lag"},
		{"maxlag", "max-lag"},
		{"kafka-brokrs", "kafka-brokers"},
		{"kafka-broker", "kafka-brokers"},
		{"lisen", "listen"},
		{"log-lvl", "log-level"},
		{"", ""},
		{"x", ""},
		{"guard", ""},
		{"replay-max", ""},
	} {
		if got := nearest(tc.typed, names); got != tc.want {
			t.Errorf("nearest(%q) = %q, want %q", tc.typed, got, tc.want)
		}
	}
}
