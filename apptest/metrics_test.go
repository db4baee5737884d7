package apptest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tailcast/internal/testkit"
)

// wantMetric waits until a series has a value: loops publish their counts when
// a turn ends, which may be after the client has read what they count.
func wantMetric(t *testing.T, s *testkit.Server, series string, want float64) {
	t.Helper()
	got := 0.0
	defer func() {
		if t.Failed() {
			t.Logf("%s was last %v, want %v", series, got, want)
		}
	}()
	testkit.Eventually(t, patience, series, func() bool {
		got = s.Metric(t, series)
		return got == want
	})
}

// TestMetrics: what dashboards rely on is there, and counts what clients got.
func TestMetrics(t *testing.T) {
	t.Parallel()
	const records, clients, loops = 200, 6, 2
	b := started(t, 2, "counted")
	s := ready(t, b, "--route", "/events=counted", "--loops", strconv.Itoa(loops), "--heartbeat", "1h")
	page := s.Get(t, "/metrics")
	for _, series := range []string{
		"tailcast_connections ", `tailcast_connections_closed_total{reason="peer"} `, `tailcast_connections_closed_total{reason="drain"} `,
		"tailcast_events_sent_total ", "tailcast_bytes_sent_total ", `tailcast_records_total{topic="counted"} `,
		`tailcast_produce_to_write_seconds_bucket{le="+Inf"} `, "tailcast_produce_to_write_seconds_sum ", "tailcast_produce_to_write_seconds_count ",
		`tailcast_tail_lag_records{partition="0",topic="counted"} `, `tailcast_tail_lag_records{partition="1",topic="counted"} `,
		`tailcast_resyncs_total{reason="expired"} `, `tailcast_resyncs_total{reason="truncated"} `, `tailcast_resyncs_total{reason="recreated"} `,
		`tailcast_resyncs_total{reason="too-far"} `, `tailcast_resyncs_total{reason="unknown"} `,
		`tailcast_replays_total{from="log"} `, `tailcast_replays_total{from="kafka"} `,
		`tailcast_slow_clients_dropped_total{reason="lag"} `, `tailcast_slow_clients_dropped_total{reason="stall"} `,
		`tailcast_slow_clients_dropped_total{reason="overwritten"} `,
		`tailcast_connections_rejected_total{reason="max-conns"} `, "tailcast_build_info{", "tailcast_kafka_connected 1\n",
	} {
		if !strings.Contains(page, "\n"+series) {
			t.Errorf("/metrics has no series %s", series)
		}
	}

	var conns []*testkit.Conn
	for range clients {
		conns = append(conns, open(t, s, "/events"))
	}
	b.produce("counted", 0, records/2)
	b.produce("counted", 1, records/2)
	bytes := 0
	for _, c := range conns {
		wantAll(t, c, map[int32]int64{}, map[int32]int64{0: records / 2, 1: records / 2})
		bytes += len(c.Raw)
	}
	wantMetric(t, s, "tailcast_connections", clients)
	wantMetric(t, s, "tailcast_events_sent_total", records*clients)
	wantMetric(t, s, "tailcast_bytes_sent_total", float64(bytes))
	wantMetric(t, s, `tailcast_records_total{topic="counted"}`, records)
	wantMetric(t, s, "tailcast_produce_to_write_seconds_count", records*loops)
	wantMetric(t, s, `tailcast_tail_lag_records{partition="1",topic="counted"}`, 0)
	if sum := s.Metric(t, "tailcast_produce_to_write_seconds_sum"); sum <= 0 || sum > records*loops*patience.Seconds() {
		t.Errorf("tailcast_produce_to_write_seconds_sum is %v", sum)
	}

	early := fmt.Sprintf("v1:0-%d.1-%d", records/2-1, records/2-6) + conns[0].Stream.Parser.LastEventID()[len("v1:0-99.1-99"):]
	behind := open(t, s, "/events?lastEventId="+early)
	wantRecords(t, behind, 1, records/2-5, records/2)
	wantMetric(t, s, `tailcast_replays_total{from="log"}`, 1)
	wantMetric(t, s, "tailcast_events_sent_total", records*clients+5)
	lost := open(t, s, "/events?last_event_id=v1:nonsense")
	wantResync(t, lost.Next(t, patience), "unknown", "counted", map[int32]int64{0: records/2 - 1, 1: records/2 - 1})
	wantMetric(t, s, `tailcast_resyncs_total{reason="unknown"}`, 1)

	for _, c := range append(conns, behind, lost) {
		c.Close()
	}
	wantMetric(t, s, "tailcast_connections", 0)
	wantMetric(t, s, `tailcast_connections_closed_total{reason="peer"}`, clients+2)
}
