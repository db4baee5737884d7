//go:build clients

package apptest

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailcast/internal/testkit"
)

// TestClientsHAProxy puts HAProxy in front of two nodes: events pass one by one
// as they come, and a client that comes back gets to the other node and goes
// on where it was; so it does when its node is killed, or drained.
func TestClientsHAProxy(t *testing.T) {
	const partitions = 3
	haproxy := need(t, "haproxy", "apt-get install haproxy")
	for _, mode := range []string{"tcp", "http"} {
		t.Run(mode, func(t *testing.T) {
			b := started(t, partitions, "balanced")
			nodes := []*testkit.Server{ready(t, b, "--route", "/events=balanced"), ready(t, b, "--route", "/events=balanced")}
			front := startHAProxy(t, haproxy, mode, nodes)
			seen, made := map[int32]int64{}, map[int32]int64{}
			produce := func(each int64) { // to each partition
				t.Helper()
				for p := range int32(partitions) {
					b.produce("balanced", p, int(each))
					made[p] += each
				}
			}
			take := func(c *testkit.Conn) { // all that was made
				t.Helper()
				wantAll(t, c, seen, made)
				seen = maps.Clone(made)
			}

			c := testkit.Open(t, front, "/events")
			c.Until(t, patience, "first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
			if got := c.Stream.Head.Header.Get("X-Accel-Buffering"); got != "no" {
				t.Errorf("X-Accel-Buffering is %q", got)
			}
			began := time.Now()
			for seq := range int64(20) { // each comes by itself, nothing behind it pushes
				b.produce("balanced", 0, 1)
				wantRecords(t, c, 0, seq, seq+1)
			}
			seen[0], made[0] = 20, 20
			t.Logf("%v an event", (time.Since(began) / 20).Round(100*time.Microsecond))
			first := serving(t, nodes)
			c.Close()
			wantMetric(t, nodes[first], "tailcast_streams", 0)
			produce(5)

			c = comeBack(t, front, c)
			take(c)
			second := serving(t, nodes)
			if second == first {
				t.Fatal("the client came back to the same node")
			}
			nodes[second].Kill(t)
			c.End(t, patience)
			produce(5)

			c = comeBack(t, front, c)
			take(c)
			if n := nodes[first].Metric(t, "tailcast_streams"); n != 1 {
				t.Errorf("%v streams on the node that is left", n)
			}
			nodes[second].Again(t)
			nodes[second].Ready(t, patience)
			nodes[first].Signal(t, syscall.SIGTERM)
			c.Until(t, patience, "last chunk", func() bool { return c.Stream.Chunks.Done })
			c.Close()
			if code := nodes[first].Wait(t, patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
			produce(5)

			take(comeBack(t, front, c))
		})
	}
}

// comeBack opens a stream behind the last event of a former one.
func comeBack(t *testing.T, addr string, former *testkit.Conn) *testkit.Conn {
	t.Helper()
	c := testkit.Open(t, addr, "/events", "Last-Event-ID: "+former.Stream.Parser.LastEventID())
	c.Until(t, patience, "first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
	return c
}

// serving says which node has the only stream.
func serving(t *testing.T, nodes []*testkit.Server) (index int) {
	t.Helper()
	found := -1
	for i, s := range nodes {
		switch n := s.Metric(t, "tailcast_streams"); n {
		case 0:
		case 1:
			found = i
		default:
			t.Fatalf("node %d has %v streams", i, n)
		}
	}
	if found < 0 {
		t.Fatal("no node has the stream")
	}
	return found
}

// TestClientsHAProxyAddress puts HAProxy, as a balancer that passes on bytes and
// says who sent them, in front of a node that believes nobody else. The client's
// address counts for its limit and is in the log, plain and by TLS. HAProxy's own
// health checks, ten a second, are LOCAL in version 2 and count for nobody; in
// version 1 it names its own address.
func TestClientsHAProxyAddress(t *testing.T) {
	haproxy := need(t, "haproxy", "apt-get install haproxy")
	for _, tc := range []struct {
		name, server string
		local        bool
	}{
		{"v1", "send-proxy", false},
		{"v2", "send-proxy-v2", true},
		{"v2 with extensions", "send-proxy-v2 proxy-v2-options crc32c,unique-id", true},
	} {
		for _, sealed := range []bool{false, true} {
			name, check := tc.name+" plain", "check inter 100ms fall 50"
			if sealed {
				name, check = tc.name+" TLS", "check inter 100ms fall 50 check-ssl verify none"
			}
			t.Run(name, func(t *testing.T) {
				b := started(t, 1, "balanced")
				s, addr, cert := secured(t, b, "--route", "/events=balanced", "--access-log", "on",
					"--proxy-protocol", "required", "--proxy-trusted", "127.0.0.1/32", "--max-conns-per-ip", "2")
				if !sealed {
					addr, cert = s.Addr, ""
				}
				front := haproxyFront(t, haproxy, "tcp", "timeout check 5s", "option httpchk",
					"http-check send meth HEAD uri /events ver HTTP/1.1 hdr Host gw.test", "http-check expect status 200",
					fmt.Sprintf("server a %s %s %s", addr, tc.server, check))
				checks := func() int { return strings.Count(s.Stderr.String(), "method=HEAD path=/events status=200") }
				testkit.Eventually(t, patience, "health checks", func() bool { return checks() >= 5 })

				first, second := through(t, front, "127.0.0.5", cert), through(t, front, "127.0.0.5", cert)
				if _, err := dialThrough(t, front, "127.0.0.5", cert); err == nil {
					t.Error("a third connection of an address is taken, and two are its limit")
				}
				all := []*testkit.Conn{first, second, through(t, front, "127.0.0.6", cert)}
				own := 0 // of the balancer's address, to which it leaves no room for checks
				if tc.local {
					own = 2
				}
				for range own {
					all = append(all, through(t, front, "127.0.0.1", cert))
				}
				b.produce("balanced", 0, 3)
				for _, c := range all {
					wantRecords(t, c, 0, 0, 3)
				}
				first.Close()
				testkit.Eventually(t, patience, "a free place", func() bool { _, err := dialThrough(t, front, "127.0.0.5", cert); return err == nil })

				// Whoever comes past the balancer is nobody, whatever they say.
				if _, err := dialThrough(t, addr, "127.0.0.9", cert); err == nil {
					t.Error("a client that is no balancer is served")
				}
				before := checks()
				testkit.Eventually(t, patience, "health checks still", func() bool { return checks() >= before+5 })
				log := s.Stderr.String()
				for line, want := range map[string]int{
					"msg=request address=127.0.0.5 method=GET path=/events status=200": 3,
					"msg=request address=127.0.0.6 method=GET path=/events status=200": 1,
					"msg=request address=127.0.0.1 method=GET path=/events status=200": own,
					"address=127.0.0.9 method": 0,
				} {
					if n := strings.Count(log, line); n != want {
						t.Errorf("%q is logged %d times, want %d", line, n, want)
					}
				}
				if !strings.Contains(log, `msg="stream ended" address=127.0.0.5 reason=peer`) {
					t.Error("the end of a stream is not logged with its client's address")
				}
			})
		}
	}
}

// dialThrough asks for a stream by way of a balancer, from an address; by TLS if
// cert is not empty. The error says that the connection ended before its head.
func dialThrough(t *testing.T, front, from, cert string) (*testkit.Conn, error) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	raw, err := d.DialContext(t.Context(), "tcp", front)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { raw.Close() })
	c := &testkit.Conn{Conn: raw}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if cert != "" {
		sealed := tls.Client(raw, testkit.Trusting(t, cert))
		if err := sealed.Handshake(); err != nil {
			return nil, err
		}
		c.Conn = sealed
	}
	if _, err := io.WriteString(c, "GET /events HTTP/1.1\r\nHost: gw.test\r\n\r\n"); err != nil {
		return nil, err
	}
	for c.Stream.Head == nil {
		b := make([]byte, 1)
		if _, err := io.ReadFull(c, b); err != nil {
			return nil, err
		}
		if _, err := c.Stream.Feed(b); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// through is dialThrough of a stream that opens, and has a place.
func through(t *testing.T, front, from, cert string) *testkit.Conn {
	t.Helper()
	c, err := dialThrough(t, front, from, cert)
	if err != nil {
		t.Fatalf("from %s: %v", from, err)
	}
	c.Until(t, patience, "first id", func() bool { return c.Stream.Parser.LastEventID() != "" })
	return c
}

// startHAProxy has one in front of two nodes, and returns its address.
func startHAProxy(t *testing.T, path, mode string, nodes []*testkit.Server) string {
	t.Helper()
	return haproxyFront(t, path, mode, "balance roundrobin", "server a "+nodes[0].Addr, "server b "+nodes[1].Addr)
}

// haproxyFront starts one with lines in its backend, and returns the address of
// its front.
func haproxyFront(t *testing.T, path, mode string, backend ...string) string {
	t.Helper()
	// Asking the front would take a turn of the round.
	front, health := testkit.FreeAddr(t), testkit.FreeAddr(t)
	p := testkit.Start(t, path, "-db", "-f", writeFile(t, "haproxy.cfg", fmt.Sprintf(`
global
    maxconn 1000
    nbthread 1
defaults
    mode %s
    timeout connect 2s
    timeout client 1m
    timeout server 1m
    retries 2
    option redispatch 1
    option http-no-delay # or an event waits 200 ms for the next
    unique-id-format %%ci:%%cp
frontend health
    mode http
    bind %s
    monitor-uri /
frontend front
    bind %s
    default_backend nodes
backend nodes
    %s
`, mode, health, front, strings.Join(backend, "\n    "))))
	testkit.Eventually(t, patience, "HAProxy", func() bool {
		if p.Exited() {
			t.Fatalf("HAProxy has ended: %s", p.Stderr.String())
		}
		res, err := http.Get("http://" + health)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return front
}
