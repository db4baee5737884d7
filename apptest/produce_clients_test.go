//go:build clients

package apptest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/internal/testkit"
)

// kcatRoutes are what kcat's records are read by.
const kcatRoutes = `
routes:
  - {path: /events, topic: events}
  - {path: /envelopes, topic: events, format: envelope}
`

// TestClientsKcat writes to the demo's broker, as the demo invites to.
func TestClientsKcat(t *testing.T) {
	s, b := demo(t, "--quiet", "--config", writeFile(t, "tailcast.yaml", kcatRoutes))
	byKcat(t, s, b)
}

// TestClientsKcatCodecs writes to a broker that claims to take the oldest
// produce requests, as real ones do (KAFKA-18659): without that librdkafka
// compresses by nothing but zstd.
func TestClientsKcatCodecs(t *testing.T) {
	b, cluster := fakeCluster(t)
	b.start()
	b.create("events", 3)
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(within(t), b.writer())
	if err != nil {
		t.Fatal(err)
	}
	for i := range resp.ApiKeys {
		if k := &resp.ApiKeys[i]; k.ApiKey == int16(kmsg.Produce) {
			k.MinVersion = 0
		}
	}
	cluster().ControlKey(int16(kmsg.ApiVersions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster().KeepControl()
		answer := *resp
		answer.SetVersion(req.GetVersion())
		return &answer, nil, true
	})
	s := ready(t, b, "--config", writeFile(t, "tailcast.yaml", kcatRoutes))
	byKcat(t, s, b)
	checkCodecs(t, b)
}

// codecs are those of kcat's -z, by their numbers in Kafka.
var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// byKcat writes with kcat (librdkafka), asking for every codec, with keys,
// headers and a tombstone; curl and a raw socket see it.
func byKcat(t *testing.T, s *testkit.Server, b *broker) {
	kcat := need(t, "kcat", "apt-get install kcat")
	byCurl, whole := startCurl(t, "http://"+s.Addr+"/events"), open(t, s, "/envelopes")
	offset := 0
	wantEvent := func(kind, key, value, data string) {
		t.Helper()
		e := byCurl.next(t)
		at, err := offsetsOf(e.LastEventID)
		if e.Type != kind || e.Data != data || err != nil || at[0] != int64(offset) {
			t.Fatalf("curl has %+.300v, %v; want %s %.300q at offset %d", e, err, kind, data, offset)
		}
		var got envelope
		if err := json.Unmarshal([]byte(whole.Next(t, patience).Data), &got); err != nil {
			t.Fatal(err)
		}
		if got.Offset != int64(offset) || got.Key == nil || *got.Key != key || (got.Value == nil) != (kind == "delete") || got.Value != nil && *got.Value != value {
			t.Errorf("envelope %+v, want key %q, value %.300q at offset %d", got, key, value, offset)
		}
		if header := fmt.Sprint(text(got.Headers)); header != "[[source kcat] [empty ]]" {
			t.Errorf("headers %s", header)
		}
		offset++
	}
	flags := []string{"-P", "-b", b.addr, "-t", "events", "-p", "0", "-K", "\t", "-H", "source=kcat", "-H", "empty="}
	for _, codec := range codecs {
		var lines strings.Builder
		for i := range 200 {
			fmt.Fprintf(&lines, "%s-%d\tvalue %d of %s %s\n", codec, i, i, codec, strings.Repeat("é", i))
		}
		run(t, lines.String(), kcat, append(flags, "-z", codec)...)
		for line := range strings.Lines(lines.String()) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			wantEvent("message", key, value, value)
		}
	}
	run(t, "gone\t\n", kcat, append(flags, "-Z")...)
	wantEvent("delete", "gone", "", "gone")
	run(t, "kept\t\n", kcat, flags...)
	wantEvent("message", "kept", "", "")
}

func text(headers [][]*string) (pairs [][]string) {
	for _, h := range headers {
		pair := []string{}
		for _, s := range h {
			pair = append(pair, *s)
		}
		pairs = append(pairs, pair)
	}
	return pairs
}

// checkCodecs looks whether every codec was really used.
func checkCodecs(t *testing.T, b *broker) {
	t.Helper()
	cl := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"events": {0: kgo.NewOffset().AtStart()}}))
	seen := map[string]bool{}
	for len(seen) < len(codecs) {
		fetches := cl.PollFetches(within(t))
		if err := fetches.Err(); err != nil {
			t.Fatalf("codecs seen: %v: %v", seen, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[codecs[r.Attrs.CompressionType()]] = true })
	}
}

// TestClientsKafkaJS writes with kafkajs, also in transactions.
func TestClientsKafkaJS(t *testing.T) {
	node := need(t, "node", "apt-get install nodejs")
	if _, err := os.Stat("clients/node_modules/kafkajs"); err != nil {
		t.Fatal("this test needs kafkajs: cd apptest/clients && npm ci")
	}
	s, b := demo(t, "--quiet", "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: /events, topic: events, event: {header: from}}
`))
	c := open(t, s, "/events")
	out := run(t, "", node, "clients/produce.mjs", b.addr, "events")
	if n := strings.Count(out, "\n"); n != 8 {
		t.Errorf("produce.mjs has written %d records: %q", n, out)
	}
	b.send(&kgo.Record{Topic: "events", Value: []byte("the end")})
	for want := range strings.Lines(out) {
		e := c.Next(t, patience)
		if e.Type == "delete" && e.Data == "kafkajs" {
			e = c.Next(t, patience)
		}
		if e.Type != "kafkajs" || e.Data+"\n" != want {
			t.Fatalf("got event %+v, want %q", e, want)
		}
	}
	if e := c.Next(t, patience); e.Data != "the end" {
		t.Errorf("after the last record of produce.mjs comes %+v", e)
	}
	if n := strings.Count(string(c.Raw), "event: delete\n"); n != 1 {
		t.Errorf("%d tombstones, want one", n)
	}
	testkit.Eventually(t, patience, "no lag", func() bool {
		return s.Metric(t, `tailcast_tail_lag_records{partition="0",topic="events"}`) == 0
	})
}
