package main

import (
	"net"
	"testing"
)

// TestReachable: what the demo prints can be pasted, whatever it listens on.
func TestReachable(t *testing.T) {
	for at, want := range map[string]string{
		"[::]:8080":      "127.0.0.1:8080",
		"0.0.0.0:8080":   "127.0.0.1:8080",
		"127.0.0.1:8080": "127.0.0.1:8080",
		"[::1]:8080":     "[::1]:8080",
		"10.0.0.7:8080":  "10.0.0.7:8080",
	} {
		addr, err := net.ResolveTCPAddr("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(addr).String(); got != want {
			t.Errorf("%s: got %s, want %s", at, got, want)
		}
	}
}
