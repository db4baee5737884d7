package admin

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestMetricsGolden(t *testing.T) {
	base, _ := open(t, busy(), nil)
	_, _, body := do(t, "GET", base+"/metrics")
	ours := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?tailcast_.*\n`).FindAllString(body, -1)
	got := strings.ReplaceAll(strings.Join(ours, ""), `goversion="`+runtime.Version()+`"`, `goversion="go1.26"`)
	golden(t, "metrics.txt", []byte(got))
}

func TestMetricsParse(t *testing.T) {
	base, _ := open(t, busy(), nil)
	_, _, body := do(t, "GET", base+"/metrics")
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tailcast_build_info", "tailcast_connections", "go_goroutines", "process_resident_memory_bytes"} {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	h := families["tailcast_produce_to_write_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 18 || h.GetSampleSum() != 1 || h.GetBucket()[0].GetCumulativeCount() != 9 {
		t.Errorf("histogram is %v", h)
	}
}

func TestMetricsLint(t *testing.T) {
	problems, err := testutil.CollectAndLint(&collector{busy(), "v9.9.9"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// A rate() over a series that begins with its first occurrence misses it.
func TestSeriesExistFromTheStart(t *testing.T) {
	base, _ := open(t, fake{}, nil)
	_, _, body := do(t, "GET", base+"/metrics")
	for _, series := range []string{
		"tailcast_connections", "tailcast_streams", "tailcast_events_sent_total", "tailcast_bytes_sent_total",
		"tailcast_produce_to_write_seconds_count", "tailcast_produce_to_write_negative_total",
		`tailcast_slow_clients_dropped_total{reason="lag"}`, `tailcast_slow_clients_dropped_total{reason="stall"}`, `tailcast_slow_clients_dropped_total{reason="overwritten"}`,
		`tailcast_resyncs_total{reason="expired"}`, `tailcast_resyncs_total{reason="truncated"}`, `tailcast_resyncs_total{reason="recreated"}`,
		`tailcast_resyncs_total{reason="too-far"}`, `tailcast_resyncs_total{reason="unknown"}`,
		`tailcast_replays_total{from="log"}`, `tailcast_replays_total{from="kafka"}`,
		"tailcast_kafka_connected", "tailcast_records_skipped_total",
	} {
		if !strings.Contains(body, "\n"+series+" 0\n") {
			t.Errorf("no %s 0", series)
		}
	}
}

// A name that Prometheus can't hold must not take the other series with it,
// nor the process.
func TestBadLabelCostsOneSeries(t *testing.T) {
	base, _ := open(t, fake{snap: Snapshot{Kafka: KafkaStats{Topics: []TopicStats{{Topic: "\xff"}, {Topic: "good", Records: 3}}}}}, nil)
	code, _, body := do(t, "GET", base+"/metrics")
	if code != 200 || !strings.Contains(body, `tailcast_records_total{topic="good"} 3`) || strings.Contains(body, "\xff") {
		t.Errorf("got %d:\n%s", code, body)
	}
}

// Every metric that is collected is described and the other way round, or the
// registry would refuse it on the day it first appears.
func TestDescribed(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(&collector{busy(), "v9.9.9"})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != len(descs) {
		t.Errorf("%d families collected, %d described", len(families), len(descs))
	}
}

func TestHistogramAddRefusesOtherBuckets(t *testing.T) {
	h := Histogram{[]float64{1}, []uint64{0, 1}, 2}
	h.add(Histogram{})
	defer func() {
		if recover() == nil {
			t.Error("different buckets were added")
		}
	}()
	h.add(Histogram{[]float64{1, 2}, []uint64{0, 1, 0}, 2})
}
