package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tailcast/bench/harness"
)

// peer is a server that tailcast is compared with.
type peer struct {
	name string
	// about is a sentence for the tables: what it is, and how it is fed.
	about string
	// target makes it a target, or says what is missing.
	target func(*tools) (harness.Target, error)
}

// peers, in the order of the tables.
func peers() []peer {
	return []peer{
		{
			"nchan", "nginx with the nchan module from Debian, one worker; an EventSource location, fed by HTTP on one pipelined connection",
			nchanTarget,
		},
		{
			"centrifugo", "Centrifugo's uni_sse endpoint, no history; fed by its HTTP API on one pipelined connection, which costs it less than its Kafka consumer",
			centrifugoTarget,
		},
		{
			"nethttp", "net/http and franz-go, a goroutine and a channel a client (bench/peers/nethttp); fed by the same broker as tailcast",
			nethttpTarget,
		},
	}
}

// tools are the paths of what the targets are made of.
type tools struct {
	tailcast, nginx, nchanModule, centrifugo, nethttp string
	// self is this program, which is also the publisher of those fed by HTTP.
	self string
}

// choose returns the peers of a list of names, in the order of the tables.
func choose(names string) ([]peer, error) {
	wanted := strings.Split(names, ",")
	var chosen []peer
	for _, p := range peers() {
		if i := slices.Index(wanted, p.name); i >= 0 {
			chosen = append(chosen, p)
			wanted = slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("-peers: no peer is called %q", wanted[0])
	}
	return chosen, nil
}

// freeAddr is a loopback address that nobody listens on, for servers that must
// be told a port.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// listening waits until something accepts connections at addr.
func listening(ctx context.Context, p *harness.Process, addr string) error {
	var d net.Dialer
	return p.Await(ctx, func(ctx context.Context) error {
		c, err := d.DialContext(ctx, "tcp4", addr)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// children are the processes that pid has started.
func children(pid int) (all []int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	if err != nil {
		return nil
	}
	for f := range strings.FieldsSeq(string(b)) {
		if child, err := strconv.Atoi(f); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// builtFrom is what a Go program was built from: its own version, or that of
// the named module in it, and Go's.
func builtFrom(path, module string) (string, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", err
	}
	version := info.Main.Version
	for _, dep := range info.Deps {
		if dep.Path == module {
			version = filepath.Base(module) + " " + dep.Version
		}
	}
	return fmt.Sprintf("%s (%s)", version, info.GoVersion), nil
}
