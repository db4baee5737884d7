//go:build clients

package apptest

import (
	"fmt"
	"maps"
	"net/http"
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

// startHAProxy returns the address of its front.
func startHAProxy(t *testing.T, path, mode string, nodes []*testkit.Server) string {
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
frontend health
    mode http
    bind %s
    monitor-uri /
frontend front
    bind %s
    default_backend nodes
backend nodes
    balance roundrobin
    server a %s
    server b %s
`, mode, health, front, nodes[0].Addr, nodes[1].Addr)))
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
