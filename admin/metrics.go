package admin

import (
	"log/slog"
	"net/http"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics. The names are a promise to dashboards and alerts: add, never
// rename. Label values come from fixed sets and configured topics, never from
// a request, so the number of series is bounded by the configuration.
var (
	descBuild = desc("build_info", "The version of this build; the value is always 1.", "version", "goversion")

	descConnections = desc("connections", "Open connections, streams included.")
	descStreams     = desc("streams", "Open event streams.")
	descLagging     = desc("streams_lagging", "Event streams whose socket took less than there was.")
	descAccepted    = desc("connections_accepted_total", "Connections given to an event loop.")
	descRejected    = desc("connections_rejected_total", "Connections refused when accepted.", "reason")
	descClosed      = desc("connections_closed_total", "Connections ended.", "reason")
	descSlow        = desc("slow_clients_dropped_total", "Streams ended because the client was too slow.", "reason")
	descShed        = desc("streams_shed_total", "Streams ended right behind their head: their clients are to come back later.", "reason")
	descResponses   = desc("http_responses_total", "Response heads sent.", "code")
	descTurns       = desc("loop_turns_total", "Turns of an event loop.", "loop")

	descEvents   = desc("events_sent_total", "Events written to sockets.")
	descBytes    = desc("bytes_sent_total", "Bytes written to sockets.")
	descLatency  = desc("produce_to_write_seconds", "From a record's timestamp to the end of the pass that wrote it, once a record and loop.")
	descNegative = desc("produce_to_write_negative_total", "Records whose timestamp was ahead of this clock when written.")

	descTokens     = desc("tokens_total", "Requests to guarded routes, by what their token came to.", "result")
	descChallenges = desc("challenges_total", "Challenges sent to guarded streams.")
	descRenewals   = desc("renewals_total", "Challenges answered rightly.")

	descFeeds     = desc("feeds", "Feeds open.")
	descFeedsRef  = desc("feeds_refused_total", "Requests sent away because their route has as many feeds as it may.")
	descLogBytes  = desc("log_bytes", "Memory held by the logs of all feeds.")
	descSkipped   = desc("records_skipped_total", "Records over --max-event, announced as a skipped event.")
	descDropped   = desc("records_dropped_total", "Records left out because they are not UTF-8 (binary: drop).")
	descReplaced  = desc("records_replaced_total", "Records with bytes replaced because they are not UTF-8 (binary: replace).")
	descNames     = desc("event_names_refused_total", "Records whose event name was empty, reserved or not printable.")
	descResyncs   = desc("resyncs_total", "Resync events, once a stream.", "reason")
	descReplays   = desc("replays_total", "Streams that started behind the live end.", "from")
	descKeys      = desc("snapshot_keys", "Keys whose latest records are held for routes with start: snapshot, tombstones included.")
	descKeyBytes  = desc("snapshot_bytes", "Memory held by them.")
	descRefused   = desc("snapshots_refused", "Feeds whose latest records need more than --snapshot-bytes.")
	descShut      = desc("snapshot_streams_refused_total", "Streams ended because their snapshot is refused.")
	descKeyless   = desc("snapshot_records_keyless_total", "Records that no snapshot has, since they have no key.")
	descConnected = desc("kafka_connected", "1 while Kafka answers, else 0.")
	descRecords   = desc("records_total", "Records read from Kafka.", "topic")
	descFetches   = desc("kafka_fetches_total", "Answers of brokers that brought records.")
	descLag       = desc("tail_lag_records", "Offsets between the tail and the partition's end.", "topic", "partition")
)

// otherTopics is the topic label of all that only requests name; no topic has
// this name.
const otherTopics = "(others)"

// descs is all of them, for the registry's check.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("tailcast_"+name, help, labels, nil)
	descs = append(descs, d)
	return d
}

// metricsHandler serves the collector below beside the Go runtime's and the
// process's, in a registry of its own.
func metricsHandler(cfg Config) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		&collector{cfg.Source, cfg.Version},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError, // a bad series costs itself, not the scrape
		MaxRequestsInFlight: scrapesMax,
	})
}

// collector turns one snapshot a scrape into metrics.
type collector struct {
	source  Source
	version string
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	snap := c.source.Snapshot()
	out := sink(ch)
	out.gauge(descBuild, 1, c.version, runtime.Version())
	out.accept(snap.Accept)
	out.loops(snap.Loops)
	out.guards(snap.Guards)
	out.hub(snap.Hub)
	out.kafka(snap.Kafka)
}

// sink is where a scrape's metrics go.
type sink chan<- prometheus.Metric

func (s sink) accept(a AcceptStats) {
	s.counter(descAccepted, a.Accepted)
	s.counts(descRejected, a.Rejected)
}

func (s sink) loops(loops []LoopStats) {
	for i, l := range loops {
		s.counter(descTurns, l.Turns, strconv.Itoa(i))
	}
	t := sum(loops)
	s.gauge(descConnections, float64(t.connections))
	s.gauge(descStreams, float64(t.streams))
	s.gauge(descLagging, float64(t.lagging))
	s.counts(descClosed, t.closed)
	s.counts(descSlow, t.slow.seed(slowReasons...))
	s.counts(descShed, t.shed)
	s.counts(descResponses, t.responses)
	s.counter(descEvents, t.events)
	s.counter(descBytes, t.bytes)
	s.histogram(descLatency, t.latency)
	s.counter(descNegative, t.negative)
}

func (s sink) guards(g GuardStats) {
	s.counts(descTokens, g.Tokens)
	s.counter(descChallenges, g.Challenges)
	s.counter(descRenewals, g.Renewals)
}

func (s sink) hub(h HubStats) {
	var logBytes int64
	feeds := 0
	for _, f := range h.Feeds {
		logBytes += f.LogBytes
		feeds += f.Feeds
	}
	s.gauge(descFeeds, float64(feeds))
	s.counter(descFeedsRef, h.FeedsRefused)
	s.gauge(descLogBytes, float64(logBytes))
	s.counter(descSkipped, h.Skipped)
	s.counter(descDropped, h.Dropped)
	s.counter(descReplaced, h.Replaced)
	s.counter(descNames, h.NamesRefused)
	s.snapshots(h)
	s.counts(descResyncs, h.Resyncs.seed(resyncReasons...))
	s.counts(descReplays, h.Replays.seed(replaySources...))
}

func (s sink) snapshots(h HubStats) {
	var keys, refused, bytes float64
	for _, f := range h.Feeds {
		if f.Snapshot == nil {
			continue
		}
		keys += float64(f.Snapshot.Keys)
		bytes += float64(f.Snapshot.Bytes)
		if f.Snapshot.Refused != "" {
			refused++
		}
	}
	s.gauge(descKeys, keys)
	s.gauge(descKeyBytes, bytes)
	s.gauge(descRefused, refused)
	s.counter(descShut, h.Shut)
	s.counter(descKeyless, h.Keyless)
}

func (s sink) kafka(k KafkaStats) {
	connected := 0.0
	if k.Connected {
		connected = 1
	}
	s.gauge(descConnected, connected)
	s.counter(descFetches, k.Fetches)
	if o := k.Others; o.Topics > 0 || o.Records > 0 {
		s.counter(descRecords, o.Records, otherTopics)
		s.gauge(descLag, float64(o.Lag), otherTopics, "")
	}
	for _, t := range k.Topics {
		s.counter(descRecords, t.Records, t.Topic)
		for _, p := range t.Partitions {
			if lag, ok := p.Lag(); ok {
				s.gauge(descLag, float64(lag), t.Topic, strconv.Itoa(int(p.ID)))
			}
		}
	}
}

func (s sink) counts(d *prometheus.Desc, c Counts) {
	for label, n := range c {
		s.counter(d, n, label)
	}
}

func (s sink) counter(d *prometheus.Desc, n uint64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	s.add(d, m, err)
}

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...)
	s.add(d, m, err)
}

func (s sink) histogram(d *prometheus.Desc, h Histogram) {
	var n uint64
	buckets := make(map[float64]uint64, len(h.Bounds)) // cumulative, without +Inf
	for i, c := range h.Counts {
		n += c
		if i < len(h.Bounds) {
			buckets[h.Bounds[i]] = n
		}
	}
	m, err := prometheus.NewConstHistogram(d, n, h.Sum, buckets)
	s.add(d, m, err)
}

// add passes a metric on; one that can't be made (a label that is not UTF-8)
// becomes an error of its own series.
func (s sink) add(d *prometheus.Desc, m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	s <- m
}
