package apptest

import (
	"os"
	"path/filepath"
	"testing"

	"tailcast/internal/testkit"
)

// serve starts a gateway that waits for nothing longer than it must.
func serve(t testing.TB, b *broker, flags ...string) *testkit.Server {
	t.Helper()
	return serveIn(t, nil, b, flags...)
}

// serveIn is serve with more variables (NAME=VALUE) than this process has.
func serveIn(t testing.TB, env []string, b *broker, flags ...string) *testkit.Server {
	t.Helper()
	return testkit.TailcastIn(t, env, "serve", append([]string{
		"--kafka-brokers", b.addr, "--heartbeat", "1s", "--retry", "1s", "--drain-delay", "0s",
	}, flags...)...)
}

// ready starts a gateway and waits until it is ready.
func ready(t testing.TB, b *broker, flags ...string) *testkit.Server {
	t.Helper()
	s := serve(t, b, flags...)
	s.Ready(t, patience)
	return s
}

// writeFile writes a file of the test and returns its path.
func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a stream and waits for the id where it begins.
func open(t testing.TB, s *testkit.Server, target string, header ...string) *testkit.Conn {
	t.Helper()
	c := testkit.Open(t, s.Addr, target, header...)
	c.Until(t, patience, "first id of "+target, func() bool { return c.Stream.Parser.LastEventID() != "" })
	if code := c.Stream.Head.StatusCode; code != 200 {
		t.Fatalf("%s: status %d", target, code)
	}
	return c
}

// wantRecords waits for the next records of a stream: numbered ones of one
// partition, from one offset up to before another.
func wantRecords(t testing.TB, c *testkit.Conn, partition int32, from, to int64) {
	t.Helper()
	for seq := from; seq < to; seq++ {
		e := c.Next(t, patience)
		if want := valueOf(partition, seq, false); e.Type != "message" || e.Data != want {
			t.Fatalf("got event %+v, want record %q", e, want)
		}
		at, err := offsetsOf(e.LastEventID)
		if err != nil || at[partition] != seq {
			t.Fatalf("record %d/%d has id %s, %v", partition, seq, e.LastEventID, err)
		}
	}
}
