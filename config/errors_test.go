package config

import (
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Every error is one line that begins with the flag, the variable or the place
// in the file.
func TestErrors(t *testing.T) {
	for _, tc := range []struct{ args, env, file, want string }{
		// Flags.
		{"--max-leg 1", "", "", `unknown flag "--max-leg" (did you mean "--max-lag"?)`},
		{"--compress gzip", "", "", `unknown flag "--compress"`},
		{"--listen off", "", "", `--listen: one of --listen and --listen-tls is needed`},
		{"--listen-tls :1", "", "", `--listen-tls: --listen-tls needs as many --tls-cert as --tls-key, at least one: there are 0 and 0`},
		{"--listen-tls :1 --tls-cert a,b --tls-key c", "", "", `--tls-cert: --listen-tls needs as many --tls-cert as --tls-key, at least one: there are 2 and 1`},
		{"--proxy-trusted 10.0.0.0/8", "", "", `--proxy-trusted: needs --proxy-protocol`},
		{"--proxy-protocol required", "", "", `--proxy-protocol: required needs --proxy-trusted, the networks of the balancers: who sends a header says to be anyone`},
		{"--proxy-protocol optional --proxy-trusted ::1 --max-conns-per-ip 9", "", "", `--max-conns-per-ip: with --proxy-protocol optional all clients of a balancer that sends no header would count as one address (use required)`},
		{"--proxy-protocol yes", "", "", `--proxy-protocol: "yes" is not one of off, optional, required`},
		{"--proxy-trusted 10.0.0.1/8", "", "", `--proxy-trusted: "10.0.0.1/8" is not a network (use 10.0.0.0/8, 2001:db8::/32, 192.0.2.7)`},
		{"--tls-key k", "", "", `--tls-key: needs --listen-tls`},
		{"--tls-client-ca c", "", "", `--tls-client-ca: needs --listen-tls`},
		{"--rate 5", "", "", `unknown flag "--rate" (only tailcast demo has it)`},
		{"-max-lag 4MiB", "", "", `unknown flag "-max-lag" (did you mean "--max-lag"?)`},
		{"-heartbeat=5s", "", "", `unknown flag "-heartbeat" (did you mean "--heartbeat"?)`},
		{"-v", "", "", `unknown flag "-v"`},
		{"-test.v", "", "", `unknown flag "-test.v"`},
		{"--=x", "", "", `"--=x" is not a flag`},
		{"--max-lag", "", "", `--max-lag: needs a value`},
		{"extra", "", "", `unexpected argument "extra"`},
		{"-- --max-lag", "", "", `unexpected argument "--max-lag"`},
		{"--kafka-tls false", "", "", `unexpected argument "false"`},
		{"--kafka-tls=1", "", "", `--kafka-tls: "1" is not true or false`},
		{"--max-lag 4XB", "", "", `--max-lag: "4XB" is not a size (use 4MiB, 64KiB, 4096)`},
		{"--max-lag 4MB", "", "", `--max-lag: "4MB" is not a size (use 4MiB, 64KiB, 4096)`},
		{"--max-lag=", "", "", `--max-lag: "" is not a size (use 4MiB, 64KiB, 4096)`},
		{"--max-lag -1", "", "", `--max-lag: "-1" is not a size (use 4MiB, 64KiB, 4096)`},
		{"--max-lag 9999999999999TiB", "", "", `--max-lag: "9999999999999TiB" is more than can be counted`},
		{"--max-lag 10", "", "", `--max-lag: "10" is outside 1KiB to 1TiB: less drops a client for one event, more is held by no log`},
		{"--max-event 0", "", "", `--max-event: "0" is outside 1 to 256MiB: a record is encoded in one piece`},
		{"--log-bytes 64KiB", "", "", `--log-bytes: "64KiB" is outside 512KiB to 1TiB: a log is made of 256KiB segments and needs two to let one go`},
		{"--sndbuf 2GiB", "", "", `--sndbuf: "2GiB" is outside 0 to 1GiB: the kernel takes 31 bits`},
		{"--heartbeat 15", "", "", `--heartbeat: "15" is not a duration (use 500ms, 20s, 5m)`},
		{"--heartbeat -5s", "", "", `--heartbeat: "-5s" is not a duration (use 500ms, 20s, 5m)`},
		{"--heartbeat 999ms", "", "", `--heartbeat: "999ms" is outside 1s to 1h: a beat costs every silent stream a write, and proxies cut what is silent for long`},
		{"--retry 0s", "", "", `--retry: "0s" is outside 1s to 1h: all clients of a node come back within it`},
		{"--stall 10ms", "", "", `--stall: "10ms" is outside 100ms to 1h: less is how networks are, more is a dead client`},
		{"--header-timeout 0s", "", "", `--header-timeout: "0s" is outside 100ms to 1h: less cuts off distant clients, more holds dead ones`},
		{"--flush-window 2s", "", "", `--flush-window: "2s" is outside 0, or 1ms to 1s: less gathers nothing, more is no longer live`},
		{"--max-age 1ms", "", "", `--max-age: "1ms" is outside 0, or 1s to 8760h: shorter streams do little but reconnect`},
		{"--drain 2h", "", "", `--drain: "2h" is outside 0s to 1h: whoever sent the signal kills long before`},
		{"--loops 1.5", "", "", `--loops: "1.5" is not a whole number`},
		{"--loops +1", "", "", `--loops: "+1" is not a whole number`},
		{"--loops 99999999999999999999", "", "", `--loops: "99999999999999999999" is more than can be counted`},
		{"--loops 2000", "", "", `--loops: "2000" is outside 0 to 1024: each is a thread with buffers of its own`},
		{"--max-conns 99999999", "", "", `--max-conns: "99999999" is outside 0 to 10000000: a connection is an open file, and no kernel gives more`},
		{"--accept-rate 1000001", "", "", `--accept-rate: "1000001" is outside 0 to 1000000: no process accepts as many`},
		{"--max-conns-per-ip 10000001", "", "", `--max-conns-per-ip: "10000001" is outside 0 to 10000000: a connection is an open file, and no kernel gives more`},
		{"--notsent-lowat 2GiB", "", "", `--notsent-lowat: "2GiB" is outside 0 to 1GiB: the kernel takes 31 bits`},
		{"--replay-max 2147483649", "", "", `--replay-max: "2147483649" is outside 0 to 2147483648: a client would read for hours`},
		{"--replay-scan 1", "", "", `--replay-scan: "1" is outside 1MiB to 1TiB: less is not one fetch`},
		{"--replays 0", "", "", `--replays: "0" is outside 1 to 1024: each holds a fetch in memory`},
		{"--warmup 100000001", "", "", `--warmup: "100000001" is outside 0 to 100000000: memory holds no more`},
		{"--drain-delay 1h1s", "", "", `--drain-delay: "1h1s" is outside 0s to 1h: whoever sent the signal kills long before`},
		{"--access-log yes", "", "", `--access-log: "yes" is not one of off, on`},
		{"--access-log-sample 0", "", "", `--access-log-sample: "0" is outside 1 to 1000000: for none there is --access-log off`},
		{"--log-bytes-total 100KiB", "", "", `--log-bytes-total: "100KiB" is outside 512KiB to 1TiB: a log is made of 256KiB segments and needs two to let one go`},
		{"--max-event 257MiB", "", "", `--max-event: "257MiB" is outside 1 to 256MiB: a record is encoded in one piece`},
		{"--heartbeat 1h1ns", "", "", `--heartbeat: "1h1ns" is outside 1s to 1h: a beat costs every silent stream a write, and proxies cut what is silent for long`},
		{"--heartbeat 9999999h", "", "", `--heartbeat: "9999999h" is not a duration (use 500ms, 20s, 5m)`},
		{"--flush-window 1us", "", "", `--flush-window: "1us" is outside 0, or 1ms to 1s: less gathers nothing, more is no longer live`},
		{"--admin off", "", "", `--admin: "off" is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)`},
		{"--listen-tls 8443", "", "", `--listen-tls: "8443" is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)`},
		{"--proxy-trusted 0.0.0.0/33", "", "", `--proxy-trusted: "0.0.0.0/33" is not a network (use 10.0.0.0/8, 2001:db8::/32, 192.0.2.7)`},
		{"--proxy-trusted fe80::1%eth0", "", "", `--proxy-trusted: "fe80::1%eth0" is not a network (use 10.0.0.0/8, 2001:db8::/32, 192.0.2.7)`},
		{"--kafka-brokers a:65536", "", "", `--kafka-brokers: "a:65536" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-brokers a%0:9092", "", "", `--kafka-brokers: "a%0:9092" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-brokers %25", "", "", `--kafka-brokers: "%25" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-brokers :9092", "", "", `--kafka-brokers: ":9092" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-tls=", "", "", `--kafka-tls: "" is not true or false`},
		{"--kafka-tls=TRUE", "", "", `--kafka-tls: "TRUE" is not true or false`},
		{"--no-kafka-tls", "", "", `unknown flag "--no-kafka-tls" (did you mean "--kafka-tls"?)`},
		{"--Listen :1", "", "", `unknown flag "--Listen" (did you mean "--listen"?)`},
		{"--route /a=a,/b", "", "", `--route: "/b" is not PATH=TOPIC (use /events=events; a path with a comma goes into the file)`},
		{"--route /a%20b=a", "", "", `--route: "/a%20b" is not a path: write it decoded, without %`},
		{"--route /a/../b=a", "", "", `--route: "/a/../b" is not a path: clients take . and .. segments away`},
		{"--route //a=a", "", "", `--route: "//a" is not a path: it has an empty segment`},
		{"--route /a?b=a", "", "", `--route: "/a?b" is not a path: it ends before ? and #`},
		{"--route /*=a", "", "", `--route: "/*" is not a path: paths are exact, without wildcards`},
		{`--route /a\b=a`, "", "", `--route: "/a\\b" is not a path: requests with a backslash are refused`},
		{"--listen 8080", "", "", `--listen: "8080" is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)`},
		{"--listen :http", "", "", `--listen: ":http" is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)`},
		{"--listen :65536", "", "", `--listen: ":65536" is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)`},
		{"--listen a/b:1", "", "", `--listen: "a/b:1" is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)`},
		{"--admin ::1:9090", "", "", `--admin: "::1:9090" is not an address to listen at (use :8080, 127.0.0.1:8080, [::1]:8080)`},
		{"--kafka-brokers a:0", "", "", `--kafka-brokers: "a:0" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-brokers a:1,,b:2", "", "", `--kafka-brokers: "" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-brokers ::1", "", "", `--kafka-brokers: "::1" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-brokers kafka://a:1", "", "", `--kafka-brokers: "kafka://a:1" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"--kafka-brokers=", "", "", `--kafka-brokers: at least one broker is needed`},
		{"--kafka-isolation none", "", "", `--kafka-isolation: "none" is not one of read_committed, read_uncommitted`},
		{"--kafka-report-group a-{nod}", "", "", `--kafka-report-group: "a-{nod}" holds a brace that is not of {node}`},
		{"--kafka-report-group a-{node}", "", "", `--kafka-report-group: {node} needs --node: by a random name every start leaves a group behind`},
		{"--kafka-report-group " + strings.Repeat("g", 256), "", "", `--kafka-report-group: "` + strings.Repeat("g", 80) + `"... is longer than 255 bytes`},
		{"--kafka-sasl-mechanism scram", "", "", `--kafka-sasl-mechanism: "scram" is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512`},
		{"--kafka-sasl-mechanism PLAIN", "", "", `--kafka-sasl-mechanism: PLAIN needs --kafka-sasl-username`},
		{"--kafka-sasl-mechanism PLAIN --kafka-sasl-username u", "", "", `--kafka-sasl-mechanism: PLAIN needs --kafka-sasl-password-file`},
		{"--kafka-sasl-username u", "", "", `--kafka-sasl-username: needs --kafka-sasl-mechanism`},
		{"--kafka-tls-ca f", "", "", `--kafka-tls-ca: needs --kafka-tls`},
		{"--kafka-tls --kafka-tls-key f", "", "", `--kafka-tls-key: --kafka-tls-cert and --kafka-tls-key need each other`},
		{"--log-level loud", "", "", `--log-level: "loud" is not one of debug, info, warn, error`},
		{"--log-format xml", "", "", `--log-format: "xml" is not one of text, json`},
		{"--cors-origins app.test", "", "", `--cors-origins: "app.test" is not an origin: it has no scheme (use https://app.test, https://*.app.test, null or *)`},
		{"--cors-origins https://app.test/", "", "", `--cors-origins: "https://app.test/" is not an origin: it ends before the path (use https://app.test, https://*.app.test, null or *)`},
		{"--route /events", "", "", `--route: "/events" is not PATH=TOPIC (use /events=events; a path with a comma goes into the file)`},
		{"--route events=events", "", "", `--route: "events" is not a path: it must begin with /`},
		{"--route /events=", "", "", `--route: "" is not a topic: it is empty`},
		{"--route /a=a --route /a=b", "", "", `--route: path "/a" is routed already by --route`},
		{"--route /r=x", "", "", `--route: path "/r" is routed already by --route`},
		{"--config nowhere.yaml", "", "", `--config: open nowhere.yaml: no such file or directory`},
		{"--config .", "", "", `--config: read .: is a directory`},
		{"--max-event 2MiB --log-bytes 1MiB", "", "", `--max-event: --max-event (2MiB) is over --log-bytes (1MiB): an event must fit into the log of its feed`},
		{"--log-bytes 512KiB", "", "", `--log-bytes: --max-event (1MiB) is over --log-bytes (512KiB): an event must fit into the log of its feed`},
		{"--log-bytes-total 1MiB", "", "", `--log-bytes-total: --log-bytes (64MiB) is over --log-bytes-total (1MiB): one feed can't have more than all`},

		// Variables.
		{"", "TAILCAST_MAX_LAG=4XB", "", `TAILCAST_MAX_LAG: "4XB" is not a size (use 4MiB, 64KiB, 4096)`},
		{"", "TAILCAST_MAX_LEG=4MiB", "", `TAILCAST_MAX_LEG: unknown setting (did you mean "TAILCAST_MAX_LAG"?)`},
		{"", "TAILCAST_max_lag=4MiB", "", `TAILCAST_max_lag: unknown setting (did you mean "TAILCAST_MAX_LAG"?)`},
		{"", "TAILCAST_MAX-LAG=4MiB", "", `TAILCAST_MAX-LAG: unknown setting (did you mean "TAILCAST_MAX_LAG"?)`},
		{"", "TAILCAST_PORT=8080", "", `TAILCAST_PORT: unknown setting`},
		{"", "TAILCAST_=x", "", `TAILCAST_: unknown setting`},
		{"", "TAILCAST_COMPRESS=1", "", `TAILCAST_COMPRESS: unknown setting`},
		{"", "TAILCAST_RATE=5", "", `TAILCAST_RATE: unknown setting (only tailcast demo has it)`},
		{"", "TAILCAST_ROUTE=/events", "", `TAILCAST_ROUTE: "/events" is not PATH=TOPIC (use /events=events; a path with a comma goes into the file)`},
		{"", "TAILCAST_CONFIG=nowhere.yaml", "", `TAILCAST_CONFIG: open nowhere.yaml: no such file or directory`},
		{"", "TAILCAST_KAFKA_TLS_CA=f", "", `TAILCAST_KAFKA_TLS_CA: needs --kafka-tls`},
		{"", "TAILCAST_MAX_EVENT=65MiB", "", `TAILCAST_MAX_EVENT: --max-event (65MiB) is over --log-bytes (64MiB): an event must fit into the log of its feed`},

		{"", "", "routes:\n  - {path: /a, topic: a, max_streams: 0}", `tailcast.yaml:2:39: key "max_streams": "0" is outside 1 to 10000000`},
		{"", "", "routes:\n  - {path: /a, topic: a, max_streams_per_subject: 5}", `tailcast.yaml:2:12: key "path": max_streams_per_subject needs a guard, which reads the token`},

		// The file's settings.
		{"", "", "max-lag: 1MiB\nheartbeat: 5s\nkafka-brokrs: a:1", `tailcast.yaml:3:1: key "kafka-brokrs": unknown setting (did you mean "kafka-brokers"?)`},
		{"", "", "max-lag: 4XB", `tailcast.yaml:1:10: key "max-lag": "4XB" is not a size (use 4MiB, 64KiB, 4096)`},
		{"", "", "max_lag: 4MiB", `tailcast.yaml:1:1: key "max_lag": unknown setting (did you mean "max-lag"?)`},
		{"", "", "route: [/a=a]\nruotes: []", `tailcast.yaml:2:1: key "ruotes": unknown setting (did you mean "routes"?)`},
		{"", "", "config: other.yaml", `tailcast.yaml:1:1: key "config": a file can't name another`},
		{"", "", "rate: 5", `tailcast.yaml:1:1: key "rate": unknown setting (only tailcast demo has it)`},
		{"", "", "<<: {loops: 1}", `tailcast.yaml:1:1: key "<<": unknown setting`},
		{"", "", "? loops\n: 1", `tailcast.yaml:1:1: key "?": unknown setting`},
		{"", "", "max-lag:", `tailcast.yaml:1:10: key "max-lag": must be one value, not nothing`},
		{"", "", "max-lag: ~", `tailcast.yaml:1:10: key "max-lag": must be one value, not nothing`},
		{"", "", "max-lag: [1MiB]", `tailcast.yaml:1:10: key "max-lag": must be one value, not a list`},
		{"", "", "max-lag:\n  bytes: 1", `tailcast.yaml:2:3: key "max-lag": must be one value, not a mapping`},
		{"", "", "max-lag: {bytes: 1}", `tailcast.yaml:1:10: key "max-lag": must be one value, not a mapping`},
		{"", "", "max-lag: &a 1MiB", `tailcast.yaml:1:10: key "max-lag": must be one value, not an anchor or alias`},
		{"", "", "max-lag: *a", `tailcast.yaml:1:10: key "max-lag": must be one value, not an anchor or alias`},
		{"", "", "max-lag: !!str 1MiB", `tailcast.yaml:1:10: key "max-lag": must be one value, not a tag`},
		{"", "", "max-lag: |\n  1MiB", `tailcast.yaml:1:10: key "max-lag": must be one value, not a text of several lines`},
		{"", "", "max-lag: 1_000", `tailcast.yaml:1:10: key "max-lag": "1_000" is not a size (use 4MiB, 64KiB, 4096)`},
		{"", "", "kafka-tls: yes", `tailcast.yaml:1:12: key "kafka-tls": "yes" is not true or false`},
		{"", "", "kafka-brokers: [a:1, 'b:x']", `tailcast.yaml:1:22: key "kafka-brokers": "b:x" is not a broker's address (use kafka-1:9092, 10.0.0.7:9092, [::1]:9092)`},
		{"", "", "kafka-brokers: [a:1, [b:1]]", `tailcast.yaml:1:22: key "kafka-brokers": must be one value, not a list`},
		{"", "", "kafka-rack: \"a\\nb\"", `tailcast.yaml:1:13: key "kafka-rack": "a\nb" holds bytes that are no text`},
		{"", "", "max-event: 65MiB", `tailcast.yaml:1:1: key "max-event": --max-event (65MiB) is over --log-bytes (64MiB): an event must fit into the log of its feed`},
		{"", "", "max-lag: 1MiB\nmax-lag: 2MiB", `tailcast.yaml:2:1: mapping key "max-lag" already defined at [1:1]`},
		{"", "", "max-lag: 1: 2", `tailcast.yaml:1:10: mapping value is not allowed in this context`},
		{"", "", "a:\n\t- b", `tailcast.yaml:2:1: "found character '\t' that cannot start any token"`},
		{"", "", "- a", `tailcast.yaml:1:1: the file must be a mapping of keys, not a list`},
		{"", "", "text", `tailcast.yaml:1:1: the file must be a mapping of keys, not a single value`},
		{"", "", "loops: 1\n---\nloops: 2", `tailcast.yaml:3:1: a second document; one file is one document`},
		{"", "", "loops: \xff", `tailcast.yaml: is not UTF-8`},
		{"", "", strings.Repeat("# a long comment\n", 35_000), `--config: tailcast.yaml is longer than 512KiB`},

		// The file's routes.
		{"", "", "routes: /a=a", `tailcast.yaml:1:9: key "routes": must be a list of routes, not a single value`},
		{"", "", "routes: {path: /a}", `tailcast.yaml:1:9: key "routes": must be a list of routes, not a mapping`},
		{"", "", "routes:", `tailcast.yaml:1:9: key "routes": must be a list of routes, not nothing`},
		{"", "", "routes: [/a=a]", `tailcast.yaml:1:10: a route must be a mapping of keys, not a single value`},
		{"", "", "routes:\n  - topic: a", `tailcast.yaml:2:5: key "path" is missing`},
		{"", "", "routes:\n  - path: /a", `tailcast.yaml:2:5: key "topic" is missing`},
		{"", "", "routes:\n  - path: /a\n    topc: a", `tailcast.yaml:3:5: key "topc": unknown in a route (did you mean "topic"?)`},
		{"", "", "routes:\n  - path: /a\n    topic: a\n    guard: {}", `tailcast.yaml:4:5: key "guard": needs the issuer of tokens`},
		{"", "", "routes:\n  - path: /a/x{user}\n    topic: a", `tailcast.yaml:2:11: key "path": "/a/x{user}" is not a path: x{user}: a parameter is a whole segment, as in /users/{user}`},
		{"", "", "routes:\n  - {path: '/a/{x}', topic: a}\n  - {path: '/{y}/b', topic: a}", `tailcast.yaml:3:12: key "path": paths "/a/{x}" and "/{y}/b" would serve the same requests`},
		{"", "", "routes:\n  - {path: /a, host: A.test, topic: a}\n  - {path: /a, host: a.test., topic: a}", `tailcast.yaml:3:12: key "path": path "a.test/a" is routed already by tailcast.yaml:2:12: key "path"`},
		{"", "", "routes:\n  - {path: /a, host: 'a.test:80', topic: a}", `tailcast.yaml:2:22: key "host": "a.test:80" is not a host: it is compared without its port, and an IPv6 address stands in brackets`},
		{"", "", "routes:\n  - path: ''\n    topic: a", `tailcast.yaml:2:11: key "path": "" is not a path: it must begin with /`},
		{"", "", "routes:\n  - path: /a\n    topic: '{t}'", `tailcast.yaml:2:5: key "allow" is missing: it says which topics parameters may stand for`},
		{"", "", "routes:\n  - {path: /a, topic: a, allow: a}", `tailcast.yaml:2:5: key "allow" is for topics with {parameters}`},
		{"", "", "routes:\n  - {path: /a, topic: '{t}', allow: [a, 'b*c']}", `tailcast.yaml:2:41: key "allow": b*c: a * may only stand at the end`},
		{"", "", "routes:\n  - {path: /a, topic: '{t', allow: a}", `tailcast.yaml:2:23: key "topic": "{t" is not a topic: it has a { without }; {{ stands for a brace`},
		{"", "", "routes:\n  - {path: /a, topic: '${claims.t}', allow: a}", `tailcast.yaml:2:12: key "path": ${claims.t} needs a guard, which reads the token`},
		{"--route /{t}={t}", "", "", `--route: "/{t}={t}": a topic with parameters goes into the file, with its allow list`},
		{"", "", "routes:\n  - path: /a\n    topic: [a]", `tailcast.yaml:3:12: key "topic": must be one value, not a list`},
		{"", "", "routes:\n  - path: /a\n    topics: [a, b c]", `tailcast.yaml:3:17: key "topics": "b c" is not a topic: only letters, digits, dot, underscore and dash may be in it`},
		{"", "", "routes:\n  - path: /a\n    topics: [a, b, a]", `tailcast.yaml:3:20: key "topics": topic "a" is listed twice`},
		{"", "", "routes:\n  - path: /a\n    topics: []", `tailcast.yaml:3:5: key "topics": holds no topic`},
		{"", "", "routes:\n  - path: /a\n    topics: ['a b']", `tailcast.yaml:3:14: key "topics": "a b" is not a topic: only letters, digits, dot, underscore and dash may be in it`},
		{"", "", "routes:\n  - path: /a\n    topic: a\n    topics: [a]", `tailcast.yaml:4:5: key "topics": the route has a topic already`},
		{"", "", "routes:\n  - path: /a\n    topics: [a]\n    topic: a", `tailcast.yaml:4:5: key "topic": the route has topics already`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: soon}", `tailcast.yaml:2:33: key "start": "soon" is no start (use latest, earliest, snapshot, 2026-01-02T03:04:05Z, 15m for 15 minutes ago, or {last: 100})`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: -15m}", `tailcast.yaml:2:33: key "start": "-15m" is outside 1ms to 87600h: a stream begins so long ago`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: 100}", `tailcast.yaml:2:33: key "start": "100" is no start (use latest, earliest, snapshot, 2026-01-02T03:04:05Z, 15m for 15 minutes ago, or {last: 100})`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: snapshot, client_start: true}", `tailcast.yaml:2:5: key "client_start": a stream with start: snapshot begins with the latest record of each key and nowhere else`},
		{"", "", "snapshot-bytes: 1", `tailcast.yaml:1:17: key "snapshot-bytes": "1" is outside 1MiB to 1TiB: less holds no topic worth a snapshot`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: {last: 0}}", `tailcast.yaml:2:40: key "last": "0" is outside 1 to 1099511627776 (use start: latest for none)`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: {last: x}}", `tailcast.yaml:2:40: key "last": "x" is not a whole number`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: {first: 3}}", `tailcast.yaml:2:34: key "first": unknown in start`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: {}}", `tailcast.yaml:2:26: key "start": holds nothing; use {last: 100}`},
		{"", "", "routes:\n  - {path: /a, topic: a, start: [latest]}", `tailcast.yaml:2:33: key "start": must be one value, not a list`},
		{"", "", "routes:\n  - {path: /a, topic: a, client_start: yes}", `tailcast.yaml:2:40: key "client_start": "yes" is not true or false`},
		{"", "", "routes:\n  - {path: /a, topic: a, id: key}", `tailcast.yaml:2:30: key "id": "key" is not one of position, key+position`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: {key: a}}", `tailcast.yaml:2:34: key "filter": must be a list of items, not a mapping`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: []}", `tailcast.yaml:2:26: key "filter": holds no item, so nothing would ever match`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [" + strings.Repeat("{key: a},", 17) + "]}", `tailcast.yaml:2:26: key "filter": holds 17 items, more than 16`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [a]}", `tailcast.yaml:2:35: an item of filter must be a mapping of keys, not a single value`},
		{"", "", "routes:\n  - path: /a\n    topic: a\n    filter:\n      - headers: {}", `tailcast.yaml:5:9: an item of filter without a term would match everything; use key, headers or json`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{header: {a: b}}]}", `tailcast.yaml:2:36: key "header": unknown in an item of filter (did you mean "headers"?)`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{key: ''}]}", `tailcast.yaml:2:41: key "key": "" is not a value to compare with: it is empty, and what is empty or missing matches nothing`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{key: {user}}]}", `tailcast.yaml:2:41: key "key": a value that begins with { needs quotes, as in "{user}"`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{key: [a, b]}]}", `tailcast.yaml:2:41: key "key": must be one value, not a list`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{key: 'a{'}]}", `tailcast.yaml:2:41: key "key": "a{" is not a value to compare with: it has a { without }; {{ stands for a brace`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{key: '${claims.sub}'}]}", `tailcast.yaml:2:12: key "path": ${claims.sub} needs a guard, which reads the token`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{headers: region}]}", `tailcast.yaml:2:45: headers must be a mapping of keys, not a single value`},
		{"", "", "routes:\n  - {path: /a, topic: a, filter: [{json: {a..b: x}}]}", `tailcast.yaml:2:43: key "a..b": has an empty step`},
		{"", "", "routes:\n  - {path: /a, topic: a, format: xml}", `tailcast.yaml:2:34: key "format": "xml" is not one of raw, envelope`},
		{"", "", "routes:\n  - {path: /a, topic: a, binary: hex}", `tailcast.yaml:2:34: key "binary": "hex" is not one of replace, base64, drop`},
		{"", "", "routes:\n  - {path: /a, topic: a, delete: no}", `tailcast.yaml:2:34: key "delete": "no" is not one of event, skip`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: x}", `tailcast.yaml:2:33: event must be a mapping of keys, not a single value`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: {}}", `tailcast.yaml:2:26: key "event": holds no name; use fixed, header or json`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: {name: x}}", `tailcast.yaml:2:34: key "name": unknown in event`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: {fixd: x}}", `tailcast.yaml:2:34: key "fixd": unknown in event (did you mean "fixed"?)`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: {fixed: x, json: y}}", `tailcast.yaml:2:44: key "json": an event has one name; use fixed, header or json`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: {fixed: resync}}", `tailcast.yaml:2:41: key "fixed": event.fixed: "resync" is reserved, over 256 bytes, not UTF-8 or has control characters`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: {header: ''}}", `tailcast.yaml:2:42: key "header": it is empty`},
		{"", "", "routes:\n  - {path: /a, topic: a, event: {json: a..b}}", `tailcast.yaml:2:40: key "json": event.json: "a..b" has an empty step`},
		{"", "", "routes:\n  - {path: /a, topic: a, cors: '*'}", `tailcast.yaml:2:32: cors must be a mapping of keys, not a single value`},
		{"", "", "routes:\n  - {path: /a, topic: a, cors: {origin: x}}", `tailcast.yaml:2:33: key "origin": unknown in cors (did you mean "origins"?)`},
		{"", "", "routes:\n  - {path: /a, topic: a, cors: {origins: [https://a.test, b.test]}}", `tailcast.yaml:2:59: key "origins": "b.test" is not an origin: it has no scheme (use https://app.test, https://*.app.test, null or *)`},
		{"", "", "routes:\n  - {path: /a, topic: a, cors: {credentials: 1}}", `tailcast.yaml:2:46: key "credentials": "1" is not true or false`},
		{"", "", "routes:\n  - {path: /a, topic: a, cors: {origins: ['*'], credentials: true}}", `tailcast.yaml:2:26: key "cors": credentials need listed origins: with * any site could read the stream with its visitor's cookies`},
		{"", "", "routes:\n  - {path: /a, topic: a}\n  - {path: /a, topic: b}", `tailcast.yaml:3:12: key "path": path "/a" is routed already by tailcast.yaml:2:12: key "path"`},
		{"", "", "routes:\n  - {path: /r, topic: a}", `--route: path "/r" is routed already by tailcast.yaml:2:12: key "path"`},
		{strings.Repeat("--route=/a=a ", 5000), "", "", `--route: more than 5000 routes`},
	} {
		_, err := load(t, Serve, "--route /r=r "+tc.args, tc.env, tc.file)
		name := strings.TrimSpace(tc.args + " " + tc.env + " " + quote(tc.file))
		switch {
		case err == nil:
			t.Errorf("%s: no error, want %q", name, tc.want)
		case err.Error() != tc.want:
			t.Errorf("%s:\n got %s\nwant %s", name, err, tc.want)
		}
	}
}

// TestEverySettingNamesItself gives each setting what none can take, by each
// source: the error names the one and the other.
func TestEverySettingNamesItself(t *testing.T) {
	for _, command := range []string{Serve, Check, Demonstrate} {
		for _, name := range newLoader(command).names() {
			for _, tc := range []struct{ args, env, file, want string }{
				{"--" + name + "=\x00", "", "", "--" + name + ": "},
				{"", envName(name) + "=\x00", "", envName(name) + ": "},
				{"", "", name + `: "\0"`, "tailcast.yaml:1:"},
			} {
				_, err := load(t, command, "--route=/r=r "+tc.args, tc.env, tc.file)
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) || tc.file != "" && !strings.Contains(err.Error(), `key "`+name+`"`) {
					t.Errorf("%s %q %q %q: %v", command, tc.args, tc.env, tc.file, err)
					continue
				}
				checkLine(t, err)
			}
		}
	}
}

func TestErrorsOfCommands(t *testing.T) {
	for _, tc := range []struct{ command, args, env, want string }{
		{"bench", "", "", `"bench" is not a command with a configuration (use serve, demo or check)`},
		{Serve, "", "", `--route: at least one route is needed (use --route /events=events, or routes in the --config file)`},
		{Check, "", "", `--route: at least one route is needed (use --route /events=events, or routes in the --config file)`},
		{Serve, "--route=", "TAILCAST_ROUTE=/a=a", `--route: at least one route is needed (use --route /events=events, or routes in the --config file)`},
		{Demonstrate, "--kafka-brokers a:1", "", `unknown flag "--kafka-brokers" (tailcast demo brings its own broker)`},
		{Demonstrate, "", "TAILCAST_KAFKA_TLS=true", `TAILCAST_KAFKA_TLS: unknown setting (tailcast demo brings its own broker)`},
		{Demonstrate, "--rate 0", "", `--rate: "0" is outside 1 to 1000000: use --quiet for none`},
		{Demonstrate, "--topic a/b", "", `--topic: "a/b" is not a topic: only letters, digits, dot, underscore and dash may be in it`},
	} {
		_, err := load(t, tc.command, tc.args, tc.env, "")
		if err == nil || err.Error() != tc.want {
			t.Errorf("%+v:\n got %v", tc, err)
		}
	}
}

// Texts come from anywhere; an error stays one line of bounded length.
func TestErrorsAreBounded(t *testing.T) {
	long, odd := strings.Repeat("x", 1<<20), "a\nb\x1b[31m\u2028c\xff"
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/f\n.yaml", []byte("x: y"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{long, odd} {
		for _, tc := range []struct{ args, env []string }{
			{args: []string{text}},
			{args: []string{"-" + text}},
			{args: []string{"--" + text}},
			{args: []string{"--=" + text}},
			{args: []string{"--max-lag", text}},
			{args: []string{"--max-lag=1" + text + "=2"}},
			{args: []string{"--kafka-client-id", text + text}},
			{args: []string{"--listen", text}},
			{args: []string{"--route", "/" + text + "\n=a"}},
			{args: []string{"--route", "/a=" + text}},
			{args: []string{"--cors-origins", "https://" + text + "/"}},
			{args: []string{"--config", dir + "/" + text}},
			{args: []string{"--config", dir + "/f\n.yaml"}},
			{env: []string{"TAILCAST_MAX_LAG=" + text}},
			{env: []string{"TAILCAST_" + text + "=1"}},
		} {
			_, err := Load(Serve, tc.args, tc.env)
			if err == nil {
				t.Errorf("%.80q %.80q: no error", tc.args, tc.env)
				continue
			}
			checkLine(t, err)
		}
	}
}

// checkLine fails unless err is one printable line of at most 1000 bytes: a
// place, two texts and what is wrong.
func checkLine(t testing.TB, err error) {
	t.Helper()
	text := err.Error()
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if text == "" || len(text) > 1000 || !utf8.ValidString(text) || strings.ContainsFunc(text, hidden) {
		t.Errorf("not one short line: %.1100q", text)
	}
}
