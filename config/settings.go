package config

import (
	"strings"
	"time"
)

// setting is one thing an operator can set: the flag --name, the variable
// TAILCAST_NAME and the file's key name.
type setting struct {
	group string
	name  string
	def   string // the default as an operator would write it; "" is nothing: no text, no item, off
	means string // what the default means, where its text doesn't say
	help  string // one sentence without a full stop
	value value
	reach reach
}

// reach is which commands have a setting.
type reach uint8

const (
	everywhere reach = iota
	demoOnly         // the broker and the producer inside the process
	notInDemo        // how to reach other brokers
)

// has reports whether a command has settings of reach r.
func (r reach) has(command string) bool {
	return r == everywhere || (r == demoOnly) == (command == Demonstrate)
}

const envPrefix = "TAILCAST_"

// envName is the variable of the setting called name.
func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// configFile is the name of the one setting that is no key of the file.
const configFile = "config"

// What stands for values in help.
const (
	argAddr     = "HOST:PORT"
	argDuration = "DURATION"
	argFile     = "FILE"
	argNumber   = "N"
	argSize     = "SIZE"
	argText     = "TEXT"
)

// settings is the table of every setting, over the fields of c, in the order of
// help and documentation.
func settings(c *Config) []setting {
	var all []setting
	add := func(group string, list []setting) {
		for _, s := range list {
			s.group = group
			all = append(all, s)
		}
	}
	add("Kafka", kafkaSettings(&c.Kafka))
	add("Routes", routeSettings(c))
	add("Guards", guardSettings(c))
	add("Connections", connSettings(c))
	add("Streams", streamSettings(c))
	add("Memory", memorySettings(c))
	add("History", historySettings(c))
	add("Process", processSettings(c))
	add("Demo", demoSettings(&c.Demo))
	return all
}

func kafkaSettings(k *Kafka) []setting {
	return []setting{
		{
			name: "kafka-brokers", def: "127.0.0.1:9092", reach: notInDemo,
			help:  "brokers to ask first; the rest of the cluster is learned from them",
			value: list(&k.Brokers, argAddr, parseBroker),
		}, {
			name: "kafka-client-id", def: "tailcast",
			help:  "name by which brokers log and limit this client",
			value: single(&k.ClientID, argText, parseText),
		}, {
			name: "kafka-isolation", def: string(ReadCommitted),
			help:  "whether records of open and aborted transactions are left out",
			value: choice(&k.Isolation, ReadCommitted, ReadUncommitted),
		}, {
			name:  "kafka-rack",
			help:  "rack or zone of this node, so that brokers can name a replica nearby to read from",
			value: single(&k.Rack, argText, parseText),
		}, {
			name: "kafka-report-group", means: "none",
			help:  "consumer group to commit this node's positions to, every 5 to 10 s, so that tools show its lag; nothing reads them back; {node} is --node",
			value: single(&k.ReportGroup, argText, parseGroup),
		}, {
			name: "kafka-tls", reach: notInDemo,
			help:  "dial brokers by TLS",
			value: toggle(&k.TLS.Enabled),
		}, {
			name: "kafka-tls-ca", means: "the system's", reach: notInDemo,
			help:  "certificates (PEM) that vouch for brokers",
			value: single(&k.TLS.CAFile, argFile, parseText),
		}, {
			name: "kafka-tls-cert", reach: notInDemo,
			help:  "certificate (PEM) to show to brokers",
			value: single(&k.TLS.CertFile, argFile, parseText),
		}, {
			name: "kafka-tls-key", reach: notInDemo,
			help:  "private key (PEM) of --kafka-tls-cert",
			value: single(&k.TLS.KeyFile, argFile, parseText),
		}, {
			name: "kafka-tls-server-name", means: "the broker's host", reach: notInDemo,
			help:  "name that the certificates of brokers must hold",
			value: single(&k.TLS.ServerName, argText, parseText),
		}, {
			name: "kafka-tls-insecure-skip-verify", reach: notInDemo,
			help:  "take any certificate from brokers; for tests only",
			value: toggle(&k.TLS.InsecureSkipVerify),
		}, {
			name: "kafka-sasl-mechanism", means: "no login", reach: notInDemo,
			help:  "how to log in to brokers",
			value: choice(&k.SASL.Mechanism, Plain, ScramSHA256, ScramSHA512),
		}, {
			name: "kafka-sasl-username", reach: notInDemo,
			help:  "who to log in as",
			value: single(&k.SASL.Username, argText, parseText),
		}, {
			name: "kafka-sasl-password-file", reach: notInDemo,
			help:  "file that holds the password and nothing else but a line end",
			value: single(&k.SASL.PasswordFile, argFile, parseText),
		},
	}
}

func routeSettings(c *Config) []setting {
	return []setting{
		{
			name:  "route",
			help:  "serve TOPIC at PATH, beside the file's routes; split at the last =",
			value: list(&c.Routes, "PATH=TOPIC", parseRoute),
		}, {
			name:  "cors-origins",
			help:  "origins whose pages may read 404 answers and the routes without a cors key: https://app.test, https://*.app.test, null or *",
			value: list(&c.CORS.Origins, "ORIGIN", parseOrigin),
		},
	}
}

// connsMax is more connections than any kernel gives a process.
const connsMax = 10_000_000

func connSettings(c *Config) []setting {
	conns := bound[int]{min: 0, max: connsMax, why: "a connection is an open file, and no kernel gives more"}
	return []setting{
		{
			name: "listen", def: ":8080",
			help:  "address of the streams; off for none but --listen-tls",
			value: single(&c.Listen, argAddr, parseListenOrOff),
		}, {
			name:  "listen-tls",
			help:  "address of the streams by TLS 1.2 and 1.3; needs --tls-cert and --tls-key",
			value: single(&c.ListenTLS, argAddr, parseListenOrOff),
		}, {
			name:  "tls-cert",
			help:  "certificates (PEM, each with its chain); clients get the one for the host they name, or the first",
			value: list(&c.TLS.CertFiles, argFile, parseText),
		}, {
			name:  "tls-key",
			help:  "private keys (PEM) of --tls-cert, in the same order",
			value: list(&c.TLS.KeyFiles, argFile, parseText),
		}, {
			name: "tls-client-ca", means: "clients need no certificate",
			help:  "certificates (PEM) that vouch for clients, each of which must then show one",
			value: single(&c.TLS.ClientCA, argFile, parseText),
		}, {
			name: "admin", def: "127.0.0.1:9090",
			help:  "address of metrics, health, status and profiles; it asks nobody who they are, so keep it private",
			value: single(&c.Admin, argAddr, parseListen),
		}, {
			name: "loops", def: "0", means: "GOMAXPROCS",
			help:  "event loops",
			value: within(&c.Loops, argNumber, parseInt, bound[int]{min: 0, max: 1024, why: "each is a thread with buffers of its own"}),
		}, {
			name: "max-conns", def: "0", means: "from the limit of open files",
			help:  "most connections at once; more are reset",
			value: within(&c.MaxConns, argNumber, parseInt, conns),
		}, {
			name: "max-conns-per-ip", def: "0", means: "off",
			help:  "most connections at once from one address; more are reset",
			value: within(&c.MaxConnsPerIP, argNumber, parseInt, conns),
		}, {
			name:  "static",
			help:  "directory whose files are served at the paths that no route has; names that begin with a dot are not, nor are links that lead out",
			value: single(&c.Static, "DIR", parseText),
		}, {
			name: "accept-rate", def: "0", means: "off",
			help: "most connections taken a second; more wait in the kernel's queue",
			value: within(&c.AcceptRate, argNumber, parseInt, bound[int]{
				min: 0, max: 1_000_000, why: "no process accepts as many",
			}),
		}, {
			name: "proxy-protocol", def: string(ProxyOff),
			help:  "whether the balancers of --proxy-trusted send a PROXY header (version 1 or 2) with each client's address; required refuses everybody else",
			value: choice(&c.Proxy, ProxyOff, ProxyOptional, ProxyRequired),
		}, {
			name:  "proxy-trusted",
			help:  "networks of those balancers; whoever is in them can say to be anyone",
			value: list(&c.ProxyTrusted, "NETWORK", parseNetwork),
		}, {
			name: "header-timeout", def: "5s",
			help: "time a client has for a PROXY header, the TLS handshake, and again for the head of a request",
			value: within(&c.HeaderTimeout, argDuration, parseDuration, bound[time.Duration]{
				min: 100 * time.Millisecond, max: time.Hour, why: "less cuts off distant clients, more holds dead ones",
			}),
		},
	}
}

func streamSettings(c *Config) []setting {
	option := bound[Size]{min: 0, max: 1 << 30, why: "the kernel takes 31 bits"}
	return []setting{
		{
			name: "heartbeat", def: "15s",
			help: "silence after which a stream gets a comment line",
			value: within(&c.Heartbeat, argDuration, parseDuration, bound[time.Duration]{
				min: time.Second, max: time.Hour, why: "a beat costs every silent stream a write, and proxies cut what is silent for long",
			}),
		}, {
			name: "flush-window", def: "0s", means: "each is written when it comes",
			help: "records that come within so long are written together: fewer writes, later by as much",
			value: within(&c.FlushWindow, argDuration, parseDuration, bound[time.Duration]{
				min: time.Millisecond, max: time.Second, zero: true, why: "less gathers nothing, more is no longer live",
			}),
		}, {
			name: "retry", def: "2s",
			help: "clients are told to reconnect after 0.5 to 1.5 times this, at random",
			value: within(&c.Retry, argDuration, parseDuration, bound[time.Duration]{
				min: time.Second, max: time.Hour, why: "all clients of a node come back within it",
			}),
		}, {
			name: "max-lag", def: "4MiB",
			help: "a live stream is dropped when it is further than this behind where its feed was 5 s ago",
			value: within(&c.MaxLag, argSize, parseSize, bound[Size]{
				min: 1 << 10, max: 1 << 40, why: "less drops a client for one event, more is held by no log",
			}),
		}, {
			name: "stall", def: "20s",
			help: "a stream is dropped when its socket takes nothing for so long",
			value: within(&c.Stall, argDuration, parseDuration, bound[time.Duration]{
				min: 100 * time.Millisecond, max: time.Hour, why: "less is how networks are, more is a dead client",
			}),
		}, {
			name: "max-age", def: "0s", means: "off",
			help: "age at which a stream is ended; its client reconnects and resumes, perhaps on a newer node",
			value: within(&c.MaxAge, argDuration, parseDuration, bound[time.Duration]{
				min: time.Second, max: 365 * 24 * time.Hour, zero: true, why: "shorter streams do little but reconnect",
			}),
		}, {
			name: "notsent-lowat", def: "16KiB",
			help:  "TCP_NOTSENT_LOWAT: unsent bytes at which the kernel takes no more of a stream; 0 leaves it to the kernel",
			value: within(&c.NotSentLowat, argSize, parseSize, option),
		}, {
			name: "sndbuf", def: "0", means: "the kernel's",
			help:  "SO_SNDBUF of a stream",
			value: within(&c.SndBuf, argSize, parseSize, option),
		},
	}
}

func memorySettings(c *Config) []setting {
	log := bound[Size]{min: 512 << 10, max: 1 << 40, why: "a log is made of 256KiB segments and needs two to let one go"}
	return []setting{
		{
			name: "log-bytes", def: "64MiB",
			help:  "most memory for the latest events of one feed",
			value: within(&c.LogBytes, argSize, parseSize, log),
		}, {
			name: "log-bytes-total", def: "1GiB",
			help:  "most memory for all feeds; over it, the one with most bytes a subscriber gives up its oldest",
			value: within(&c.LogBytesTotal, argSize, parseSize, log),
		}, {
			name: "snapshot-bytes", def: "256MiB",
			help:  "most memory for the latest records of one feed's keys; routes with start: snapshot that need more are refused",
			value: within(&c.SnapshotBytes, argSize, parseSize, bound[Size]{min: 1 << 20, max: 1 << 40, why: "less holds no topic worth a snapshot"}),
		}, {
			name: "max-event", def: "1MiB",
			help:  "largest record to deliver; instead of a larger one comes an event named skipped",
			value: within(&c.MaxEvent, argSize, parseSize, bound[Size]{min: 1, max: 256 << 20, why: "a record is encoded in one piece"}),
		},
	}
}

func historySettings(c *Config) []setting {
	return []setting{
		{
			name: "replay-max", def: "100000",
			help:  "most records older than memory that one resume is sent; one that lacks more gets a resync",
			value: within(&c.ReplayMax, argNumber, parseInt, bound[int]{min: 0, max: 1 << 31, why: "a client would read for hours"}),
		}, {
			name: "replay-scan", def: "256MiB",
			help:  "most bytes that are read from the brokers for one resume",
			value: within(&c.ReplayScan, argSize, parseSize, bound[Size]{min: 1 << 20, max: 1 << 40, why: "less is not one fetch"}),
		}, {
			name: "replays", def: "16",
			help:  "reads of history that run at a time; the others wait in turn",
			value: within(&c.Replays, argNumber, parseInt, bound[int]{min: 1, max: 1024, why: "each holds a fetch in memory"}),
		}, {
			name: "warmup", def: "0",
			help:  "records of each partition that are read into memory at start, before streams open",
			value: within(&c.Warmup, argNumber, parseInt, bound[int]{min: 0, max: 100_000_000, why: "memory holds no more"}),
		},
	}
}

func processSettings(c *Config) []setting {
	wait := bound[time.Duration]{min: 0, max: time.Hour, why: "whoever sent the signal kills long before"}
	return []setting{
		{
			name: "drain", def: "30s",
			help:  "time over which streams are ended after SIGTERM",
			value: within(&c.Drain, argDuration, parseDuration, wait),
		}, {
			name: "drain-delay", def: "5s",
			help:  "time for balancers to see that the node is not ready, before the first stream is ended",
			value: within(&c.DrainDelay, argDuration, parseDuration, wait),
		}, {
			name: "log-level", def: "info",
			help:  "least level that is logged",
			value: single(&c.LogLevel, join(logLevels, "|"), parseLevel),
		}, {
			name: "log-format", def: string(LogText),
			help:  "form of log lines",
			value: choice(&c.LogFormat, LogText, LogJSON),
		}, {
			name: "access-log", def: string(Off),
			help:  "a log line for each answer and for the end of each stream; without queries, which may hold tokens",
			value: choice(&c.AccessLog, Off, On),
		}, {
			name: "access-log-sample", def: "1",
			help: "one of so many requests is logged, at random",
			value: within(&c.AccessLogSample, argNumber, parseInt, bound[int]{
				min: 1, max: 1_000_000, why: "for none there is --access-log off",
			}),
		}, {
			name:  configFile,
			help:  "YAML file of settings and routes",
			value: single(&c.File, argFile, parseText),
		},
	}
}

func demoSettings(d *Demo) []setting {
	return []setting{
		{
			name: "broker-listen", def: "127.0.0.1:19092", reach: demoOnly,
			help:  "address of the Kafka broker inside this process; where it is every address, clients are told to come to 127.0.0.1",
			value: single(&d.BrokerListen, argAddr, parseListen),
		}, {
			name: "topic", def: "events", reach: demoOnly,
			help:  "topic of the sample producer; served at /events when there are no routes",
			value: single(&d.Topic, argText, parseTopic),
		}, {
			name: "rate", def: "10", reach: demoOnly,
			help:  "sample records a second",
			value: within(&d.Rate, argNumber, parseInt, bound[int]{min: 1, max: 1_000_000, why: "use --quiet for none"}),
		}, {
			name: "quiet", reach: demoOnly,
			help:  "no sample producer",
			value: toggle(&d.Quiet),
		},
	}
}
