//go:build kafka

package apptest

import (
	"fmt"
	"strings"
	"testing"

	"tailcast/internal/kafkatest"
	"tailcast/internal/testkit"
)

// process returns a broker in a process of its own, which runs.
func process(t testing.TB) *broker {
	t.Helper()
	c := kafkatest.Start(t, kafkatest.Options{})
	b := newBroker(t, c.Addrs[0])
	b.start = func() { c.Restart(0) }
	b.stop = func() { c.Kill(0) }
	return b
}

// TestKafka runs the same gateway in front of a real broker, with one topic a
// case.
func TestKafka(t *testing.T) {
	b := process(t)
	for _, c := range []struct {
		name       string
		partitions int32 // of the topic; 0: the test makes it
		test       func(t *testing.T, b *broker, topic string)
	}{
		{"checked", 12, checked},
		{"live", 3, live},
		{"cuts", 3, func(t *testing.T, b *broker, topic string) { resumeAfterCuts(t, b, topic, 24, 1) }},
		{"nodes", 3, func(t *testing.T, b *broker, topic string) { resumeAfterCuts(t, b, topic, 24, 2) }},
		{"kill", 3, func(t *testing.T, b *broker, topic string) { resumeAfterKill(t, b, topic, 24) }},
		{"kill-without-history", 3, func(t *testing.T, b *broker, topic string) { resumeAfterKillWithoutHistory(t, b, topic, 24) }},
		{"transactions", 1, transactions},
		{"growth", 1, partitionGrowth},
		{"missing", 0, topicMissingAtStart},
		{"starts", 1, startPolicies},
		{"filtered", 2, filters},
		{"table", 0, snapshot},
		{"old", 0, oldPosition},
		{"forgotten", 0, forgottenDeletions},
		{"recreated-at-once", 2, func(t *testing.T, b *broker, topic string) { topicRecreated(t, b, topic, true) }},
		{"recreated-later", 2, func(t *testing.T, b *broker, topic string) { topicRecreated(t, b, topic, false) }},
		{"broker-killed", 2, brokerKilled}, // last: the others need not wait for it
	} {
		t.Run(c.name, func(t *testing.T) {
			b := b.of(t)
			if c.partitions > 0 {
				b.create(c.name, c.partitions)
			}
			c.test(t, b, c.name)
		})
	}
}

// of is b for a test of its own.
func (b *broker) of(t testing.TB) *broker {
	other := newBroker(t, b.addr)
	other.start, other.stop = b.start, b.stop
	return other
}

// brokerKilled kills the broker while records are written, and starts it
// again: streams stay open, beat, and miss nothing.
func brokerKilled(t *testing.T, b *broker, topic string) {
	s := ready(t, b, "--route", "/events="+topic)
	fs := follow(t, s, "/events", 2, 24, nil)
	fs.each(t, "first stream", func(f *follower) bool { return f.streams.Load() > 0 })
	l := b.load(topic, 2, 200)
	fs.each(t, "50 records", func(f *follower) bool { return f.records.Load() >= 50 })
	b.stop()
	testkit.Eventually(t, patience, "loss of contact", func() bool { return s.Metric(t, "tailcast_kafka_connected") == 0 })
	if code, text := readiness(t, s); code != 200 {
		t.Errorf("a moment without Kafka: /readyz is %d, %s", code, text)
	}
	c := open(t, s, "/events")
	c.Until(t, patience, "heartbeats while the broker is away", func() bool { return c.Stream.Parser.Comments >= 2 })
	b.start()
	s.Ready(t, patience)
	more := fs.all[0].records.Load() + 50
	fs.each(t, "50 more records", func(f *follower) bool { return f.records.Load() >= more })
	l.end(t)
	fs.wait(t)
	fs.wantResyncs(t)
	if _, streams := fs.totals(); streams != int64(len(fs.all)) {
		t.Errorf("%d followers needed %d streams", len(fs.all), streams)
	}
	if n := strings.Count(s.Stderr.String(), "level=ERROR"); n != 1 {
		t.Errorf("the outage is logged %d times, want once", n)
	}
}

// checked: what check says of a real broker.
func checked(t *testing.T, b *broker, topic string) {
	b.produce(topic, 3, 2)
	p := testkit.Start(t, testkit.Build(t, "tailcast/cmd/tailcast"), "check", "--kafka-brokers", b.addr, "--route", "/events="+topic)
	code := p.Wait(t, patience)
	want := fmt.Sprintf("/events  topic %s  12 partitions  raw  id %d bytes\n", topic, len("v1:3-1~ab3f9"))
	if code != 0 || p.Stdout.String() != want || p.Stderr.String() != "" {
		t.Errorf("exit code %d, standard output %q, want %q, standard error %q", code, p.Stdout.String(), want, p.Stderr.String())
	}
}
