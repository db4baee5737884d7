package harness

// Figure is what a run measures under a name.
type Figure struct {
	Name  string
	Title string
	Unit  string
	// Scale is by what the value is multiplied for the unit; 0 is 1.
	Scale float64
	// More says that more is better.
	More bool
	// Ratio says that a target's value is worth comparing with another's.
	Ratio bool
}

// Figures are what a run may have, in the order of tables. JSON holds the
// values by name, unscaled.
var Figures = []Figure{
	{Name: "rate_max", Title: "records a second that hold", Unit: "/s", More: true, Ratio: true},
	{Name: "storm_open_s", Title: "all streams are back", Unit: "s", Ratio: true},
	{Name: "storm_s", Title: "all have what they missed", Unit: "s", Ratio: true},
	{Name: "load_s", Title: "snapshot is loaded, from the start", Unit: "s", Ratio: true},
	{Name: "byte_p50_ms", Title: "first byte, p50", Unit: "ms", Ratio: true},
	{Name: "byte_p99_ms", Title: "first byte, p99", Unit: "ms", Ratio: true},
	{Name: "byte_max_ms", Title: "first byte, worst", Unit: "ms"},
	{Name: "first_p50_ms", Title: "first record, p50", Unit: "ms", Ratio: true},
	{Name: "first_p99_ms", Title: "first record, p99", Unit: "ms", Ratio: true},
	{Name: "first_max_ms", Title: "first record, worst", Unit: "ms"},
	{Name: "live_p50_s", Title: "caught up, p50", Unit: "s", Ratio: true},
	{Name: "live_p99_s", Title: "caught up, p99", Unit: "s", Ratio: true},
	{Name: "live_max_s", Title: "caught up, worst", Unit: "s", Ratio: true},
	{Name: "events", Title: "events until all have caught up", Unit: ""},
	{Name: "records_per_s", Title: "records read a second", Unit: "/s", More: true, Ratio: true},
	{Name: "records_per_cpu_s", Title: "records read a second of CPU", Unit: "/s", More: true, Ratio: true},
	{Name: "cpu_us_per_record", Title: "server CPU a record", Unit: "µs", Ratio: true},
	{Name: "mallocs_per_record", Title: "allocations a record, start included", Unit: ""},
	{Name: "events_per_s", Title: "events a second", Unit: "/s", More: true, Ratio: true},
	{Name: "cpu_us_per_event", Title: "server CPU an event", Unit: "µs", Ratio: true},
	{Name: "server_cpu", Title: "server CPU", Unit: "% of a core", Scale: 100},
	{Name: "records_per_fetch", Title: "records a fetch brought", Unit: ""},
	{Name: "streams_per_core", Title: "streams a busy core", Unit: "", More: true, Ratio: true},
	{Name: "calm_p50_ms", Title: "latency p50, all read", Unit: "ms"},
	{Name: "calm_p99_ms", Title: "latency p99, all read", Unit: "ms"},
	{Name: "slow_p99_ratio", Title: "p99 with stalled streams to without", Unit: "x"},
	{Name: "attacks", Title: "attacks", Unit: ""},
	{Name: "attacks_held", Title: "attacks that did no harm", Unit: "", More: true},
	{Name: "attack_p99_ratio", Title: "p99 under attack to that before, the worst", Unit: "x"},
	{Name: "attack_growth_mb", Title: "server RSS, most growth under attack", Unit: "MB"},
	{Name: "p50_ms", Title: "latency p50", Unit: "ms", Ratio: true},
	{Name: "p99_ms", Title: "latency p99", Unit: "ms", Ratio: true},
	{Name: "p999_ms", Title: "latency p99.9", Unit: "ms"},
	{Name: "max_ms", Title: "latency, worst", Unit: "ms"},
	{Name: "opens_per_s", Title: "streams opened a second", Unit: "/s", More: true, Ratio: true},
	{Name: "open_p99_ms", Title: "opening a stream, p99", Unit: "ms"},
	{Name: "connect_cpu_us", Title: "server CPU a stream opened", Unit: "µs", Ratio: true},
	{Name: "handshakes_per_cpu_s", Title: "TLS handshakes a second of server CPU, stream opened", Unit: "/s", More: true},
	{Name: "resumed", Title: "handshakes that took up a session", Unit: "%", Scale: 100},
	{Name: "open_load_busy", Title: "the load's processors while streams open", Unit: "% busy", Scale: 100},
	{Name: "rss_per_stream", Title: "server RSS an idle stream", Unit: "B", Ratio: true},
	{Name: "heap_per_stream", Title: "server heap an idle stream", Unit: "B", Ratio: true},
	{Name: "kernel_per_stream", Title: "kernel buffers an idle stream, both ends", Unit: "B"},
	{Name: "bytes_per_event", Title: "bytes an event", Unit: "B"},
	{Name: "mb_per_s", Title: "megabytes a second", Unit: "MB/s", More: true, Ratio: true},
	{Name: "table_mb", Title: "latest records in the server's memory", Unit: "MB"},
	{Name: "rss_growth_mb", Title: "server RSS, last quarter less second", Unit: "MB"},
	{Name: "goroutine_growth", Title: "goroutines, end less idle", Unit: ""},
	{Name: "reconnects", Title: "streams that came again", Unit: ""},
	{Name: "rss_before_mb", Title: "server RSS before the first stream", Unit: "MB"},
	{Name: "rss_peak_mb", Title: "server RSS, most", Unit: "MB"},
	{Name: "rss_mb", Title: "server RSS at the end", Unit: "MB"},
}
