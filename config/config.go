// Package config turns flags, environment and a YAML file into one Config, or
// into an error of one line that names the flag, the variable or the place in
// the file. settings.go holds the table that flags, variables, file keys, help
// and docs/CONFIGURATION.md come from. It opens the file and nothing else: no
// certificate, socket or broker.
package config

import (
	"log/slog"
	"net/netip"
	"time"
)

// Config is every setting of a command, checked. Fixed after Load.
type Config struct {
	File string // the configuration file, "" without one

	Kafka  Kafka
	Routes []Route // in the file's order, then those of --route; at least one
	CORS   CORS    // for routes without their own, which hold a copy, and for 404 answers

	Challenge time.Duration // 0: never
	Node      string        // "": a random name
	Peers     []Peer

	Listen    string // host:port, port 0 for any; "" for none
	ListenTLS string // the same
	TLS       ServerTLS
	Admin     string // host:port, port 0 for any
	Loops     int    // 0: GOMAXPROCS

	LogBytes      Size // ceiling of a feed's log
	LogBytesTotal Size // ceiling of all logs
	SnapshotBytes Size // ceiling of the latest records of a feed's keys
	MaxEvent      Size

	ReplayMax  int
	ReplayScan Size
	Replays    int
	Warmup     int // records of each partition

	MaxLag       Size
	Stall        time.Duration
	NotSentLowat Size // 0: the kernel's
	SndBuf       Size // 0: the kernel's

	Proxy        ProxyProtocol
	ProxyTrusted []netip.Prefix // not empty unless Proxy is ProxyOff

	MaxConns      int    // 0: from the limit of file descriptors
	MaxConnsPerIP int    // 0: no limit
	Static        string // directory; "" for none
	AcceptRate    int    // connections a second; 0: no limit
	HeaderTimeout time.Duration

	Heartbeat   time.Duration
	FlushWindow time.Duration // 0: none
	Retry       time.Duration
	MaxAge      time.Duration // 0: no limit

	Drain      time.Duration
	DrainDelay time.Duration

	LogLevel  slog.Level
	LogFormat LogFormat

	AccessLog       Switch
	AccessLogSample int // one of so many requests

	Demo Demo // of the demo command only
}

// Kafka is how to reach the brokers and how to read from them. Brokers, TLS and
// SASL are empty for the demo command, which has a broker of its own.
type Kafka struct {
	Brokers   []string // host:port each; at least one, but for demo
	ClientID  string
	Isolation Isolation
	Rack      string // "" for none
	TLS       TLS
	SASL      SASL

	ReportGroup string // to commit positions to, with {node} in it or not; "" for none
}

// TLS is how to dial the brokers. Files are read by whoever dials, so that they
// can be renewed.
type TLS struct {
	Enabled            bool
	CAFile             string // "": the system's
	CertFile, KeyFile  string // both or neither
	ServerName         string // "": the broker's host
	InsecureSkipVerify bool
}

// ServerTLS is what the listener of ListenTLS shows, and asks for; empty
// without one. Files are read by whoever listens, so that they can be renewed.
type ServerTLS struct {
	CertFiles []string // at least one
	KeyFiles  []string // by CertFiles
	ClientCA  string   // "": clients show no certificate
}

// SASL is who we are to the brokers.
type SASL struct {
	Mechanism    Mechanism // "": no SASL, and the others are empty
	Username     string
	PasswordFile string
}

// Peer is another node: its name and the base of its URLs.
type Peer struct{ Name, URL string }

// Demo is what the demo command has on top.
type Demo struct {
	BrokerListen string // host:port, port 0 for any
	Topic        string
	Rate         int  // sample records a second
	Quiet        bool // no sample producer
}

// NodeParam stands for Config.Node in Kafka.ReportGroup.
const NodeParam = "{node}"

// Isolation is which records of transactions are read.
type Isolation string

// The isolation levels, as Kafka spells them.
const (
	ReadCommitted   Isolation = "read_committed"
	ReadUncommitted Isolation = "read_uncommitted"
)

// Mechanism is a SASL mechanism.
type Mechanism string

// The SASL mechanisms.
const (
	Plain       Mechanism = "PLAIN"
	ScramSHA256 Mechanism = "SCRAM-SHA-256"
	ScramSHA512 Mechanism = "SCRAM-SHA-512"
)

// ProxyProtocol is whether balancers say who their clients are.
type ProxyProtocol string

// The modes of the PROXY protocol.
const (
	ProxyOff      ProxyProtocol = "off"
	ProxyOptional ProxyProtocol = "optional"
	ProxyRequired ProxyProtocol = "required"
)

// Switch is off or on, where a word says it better than a flag.
type Switch string

// The positions of a Switch.
const (
	Off Switch = "off"
	On  Switch = "on"
)

// LogFormat is the form of log lines.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)
