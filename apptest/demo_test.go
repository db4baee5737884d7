package apptest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// TestDemo runs what a stranger runs first: samples arrive, without a gap, and
// so does what is produced to the demo's broker; another gateway can serve it.
func TestDemo(t *testing.T) {
	t.Parallel()
	b := newBroker(t, testkit.FreeAddr(t))
	s := testkit.Tailcast(t, "demo", "--broker-listen", b.addr, "--rate", "50")
	want := fmt.Sprintf(`Open the page   http://%[1]s/demo
or listen       curl -N http://%[2]s/events
and produce     echo '{"hello":"browser"}' | kcat -P -b %[3]s -t events
Metrics are at  http://%[1]s/metrics
Press Ctrl-C to stop.
`, s.Admin, s.Addr, b.addr)
	testkit.Eventually(t, patience, "what it prints", func() bool { return len(s.Stdout.String()) >= len(want) })
	if got := s.Stdout.String(); got != want {
		t.Errorf("it prints\n%swant\n%s", got, want)
	}
	if page := s.Get(t, "/demo"); !strings.Contains(page, "demo.js") {
		t.Errorf("the page is %.300q", page)
	}
	if where := s.Get(t, "/demo.json"); where != fmt.Sprintf("{\"stream\":\"http://%s/events\",\"broker\":%q,\"topic\":\"events\"}\n", s.Addr, b.addr) {
		t.Errorf("/demo.json is %s", where)
	}
	other := testkit.Tailcast(t, "serve", "--kafka-brokers", b.addr, "--route", "/events=events", "--drain-delay", "0s")
	other.Ready(t, patience)
	streams := []*testkit.Conn{open(t, s, "/events", "Origin: http://anywhere.test"), open(t, other, "/events")}
	for _, c := range streams {
		wantSamples(t, c, 40)
	}
	const hello = `{"hello":"browser"}`
	b.send(&kgo.Record{Topic: "events", Value: []byte(hello)})
	for _, c := range streams {
		for c.Next(t, patience).Data != hello {
		}
		c.Close()
	}
	if code := other.Stop(t, patience); code != 0 {
		t.Errorf("serve: exit code %d", code)
	}
	if code := s.Stop(t, patience); code != 0 {
		t.Errorf("demo: exit code %d", code)
	}
}

// TestDemoBrokerAddress: the broker is where it was asked for, and tells its
// clients an address that they can reach.
func TestDemoBrokerAddress(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{":0": "127.0.0.1:", "0.0.0.0:0": "127.0.0.1:", "127.0.0.2:0": "127.0.0.2:"} {
		t.Run(asked, func(t *testing.T) {
			t.Parallel()
			s := testkit.Tailcast(t, "demo", "--broker-listen", asked, "--rate", "50")
			testkit.Eventually(t, patience, "the broker's address", func() bool { return strings.Contains(s.Stdout.String(), "kcat -P -b "+want) })
			wantSamples(t, open(t, s, "/events"), 3)
			if code := s.Stop(t, patience); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// wantSamples reads records of the demo's producer, which number themselves.
func wantSamples(t *testing.T, c *testkit.Conn, n int) {
	t.Helper()
	next := map[int]int{}
	for range n {
		e := c.Next(t, patience)
		var sample struct{ P, Seq int }
		if err := json.Unmarshal([]byte(e.Data), &sample); err != nil {
			t.Fatalf("event %+v: %v", e, err)
		}
		if seq, seen := next[sample.P]; seen && sample.Seq != seq {
			t.Errorf("sample %d of partition %d, want %d", sample.Seq, sample.P, seq)
		}
		next[sample.P] = sample.Seq + 1
	}
}
