package kafkatail

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The isolation levels of --kafka-isolation.
const (
	ReadCommitted   = "read_committed"   // records of committed transactions only; positions follow the last stable offset
	ReadUncommitted = "read_uncommitted" // every record; positions follow the high watermark
)

// Config says which cluster is tailed and how. The zero value of a field means
// its default. Fixed once given to New.
type Config struct {
	Brokers   []string // host:port of one or more brokers
	ClientID  string   // as the brokers log it
	Isolation string   // ReadCommitted (default) or ReadUncommitted
	Rack      string   // read from the closest replica (KIP-392); empty: from the leader
	Warmup    int64    // records of each partition, before its end, that a topic's log is filled with when it is first opened
	TLS       TLS
	SASL      SASL
	Timing    Timing

	// ReportGroup is a consumer group without members that positions are
	// committed to, for others to look at; empty: none. One node, one group.
	ReportGroup string

	// decompressBytesMax bounds one batch after decompression; see limits.go.
	decompressBytesMax int
}

// Timing holds the tail's intervals. Only tests have reason to set them.
type Timing struct {
	Look      time.Duration // between two looks at metadata and offsets; default 3 s
	Soon      time.Duration // the same while something is unsettled; default 500 ms
	RetryMin  time.Duration // first wait while no broker answers; default 250 ms
	RetryMax  time.Duration // longest wait while no broker answers; default 5 s
	Request   time.Duration // longest wait for one answer; default 10 s
	Confirm   time.Duration // how long a deletion or a shorter log must be seen to be believed; default 3 s
	Denied    time.Duration // between two tries to read a topic that is denied; default 30 s
	Stalled   time.Duration // how long records may wait at the broker unread before the reader is replaced; default 30 s
	FetchWait time.Duration // FetchMaxWait; default 500 ms
	WarmMax   time.Duration // how long streams may wait for a warm-up; default 30 s
	WarmStall time.Duration // the same while no record of it comes; default 5 s
	Report    time.Duration // least time between two commits to ReportGroup, and twice that the most; default 5 s
}

// backoff is the wait before the nth try in a row, from 1. Many nodes must not
// come back in step, so half of it is chance.
func (t Timing) backoff(n int) time.Duration {
	d := min(t.RetryMin<<min(max(n-1, 0), 10), t.RetryMax)
	return d/2 + rand.N(d/2+1)
}

// defaults returns c with every unset field filled.
func (c Config) defaults() Config {
	if len(c.Brokers) == 0 {
		c.Brokers = []string{"127.0.0.1:9092"}
	}
	setDefault(&c.ClientID, "tailcast")
	setDefault(&c.Isolation, ReadCommitted)
	setDefault(&c.Timing.Look, 3*time.Second)
	setDefault(&c.Timing.Soon, 500*time.Millisecond)
	setDefault(&c.Timing.RetryMin, 250*time.Millisecond)
	setDefault(&c.Timing.RetryMax, 5*time.Second)
	setDefault(&c.Timing.Request, 10*time.Second)
	setDefault(&c.Timing.Confirm, 3*time.Second)
	setDefault(&c.Timing.Denied, 30*time.Second)
	setDefault(&c.Timing.Stalled, 30*time.Second)
	setDefault(&c.Timing.FetchWait, 500*time.Millisecond)
	setDefault(&c.Timing.WarmMax, 30*time.Second)
	setDefault(&c.Timing.WarmStall, 5*time.Second)
	setDefault(&c.Timing.Report, 5*time.Second)
	setDefault(&c.decompressBytesMax, decompressBytesMax)
	return c
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Validate reads the files that c names and returns the first thing that is
// wrong, with the flag that says it. It asks no broker.
func (c Config) Validate() error {
	c = c.defaults()
	for _, b := range c.Brokers {
		if err := checkAddr(b); err != nil {
			return flagErr("kafka-brokers", err)
		}
	}
	if c.Isolation != ReadCommitted && c.Isolation != ReadUncommitted {
		return flagErr("kafka-isolation", fmt.Errorf("%q is neither %s nor %s", c.Isolation, ReadCommitted, ReadUncommitted))
	}
	if c.Warmup < 0 {
		return flagErr("warmup", fmt.Errorf("%d is negative", c.Warmup))
	}
	if _, err := c.TLS.config(); err != nil {
		return err
	}
	_, err := c.SASL.mechanism()
	return err
}

// flagError is a setting that can't be used; it begins with the flag's name.
type flagError struct {
	flag string
	err  error
}

func (e *flagError) Error() string { return "--" + e.flag + ": " + e.err.Error() }
func (e *flagError) Unwrap() error { return e.err }

func flagErr(flag string, err error) error { return &flagError{flag, err} }

// checkAddr accepts host:port, and host alone for Kafka's port 9092.
func checkAddr(addr string) error {
	if addr == "" {
		return errors.New("an address is empty")
	}
	if strings.Contains(addr, "://") {
		return fmt.Errorf("%q is a URL, not host:port", addr)
	}
	if strings.ContainsAny(addr, " \t\r\n,") {
		return fmt.Errorf("%q holds a blank or a comma", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		var ae *net.AddrError
		if errors.As(err, &ae) && ae.Err == "missing port in address" {
			return nil
		}
		return fmt.Errorf("%q is not host:port", addr)
	}
	if host == "" {
		return fmt.Errorf("%q has no host", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q has no port between 1 and 65535", addr)
	}
	return nil
}

// isolation returns the level in the library's terms and in the protocol's.
func (c Config) isolation() (kgo.IsolationLevel, int8) {
	if c.Isolation == ReadUncommitted {
		return kgo.ReadUncommitted(), readUncommitted
	}
	return kgo.ReadCommitted(), readCommitted
}

// SASL says how the tail authenticates. An empty Mechanism means not at all.
type SASL struct {
	Mechanism    string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	Username     string
	PasswordFile string // read at every authentication, so a new password needs no restart
}

// mechanisms are the accepted values of --kafka-sasl-mechanism.
var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

// validate returns the first thing that is wrong with s.
func (s SASL) validate() error {
	switch {
	case s.Mechanism == "" && s.Username != "":
		return flagErr("kafka-sasl-username", errors.New("needs --kafka-sasl-mechanism"))
	case s.Mechanism == "" && s.PasswordFile != "":
		return flagErr("kafka-sasl-password-file", errors.New("needs --kafka-sasl-mechanism"))
	case s.Mechanism == "":
		return nil
	case !slices.Contains(mechanisms, s.Mechanism):
		return flagErr("kafka-sasl-mechanism", fmt.Errorf("%q is not one of %s", s.Mechanism, strings.Join(mechanisms, ", ")))
	case s.Username == "":
		return flagErr("kafka-sasl-username", errors.New("missing"))
	case s.PasswordFile == "":
		return flagErr("kafka-sasl-password-file", errors.New("missing"))
	}
	_, err := s.password()
	return err
}

// password reads the password file and trims the newline an editor leaves.
func (s SASL) password() (string, error) {
	b, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", flagErr("kafka-sasl-password-file", err)
	}
	if len(b) > passwordBytesMax {
		return "", flagErr("kafka-sasl-password-file", fmt.Errorf("%s: holds more than %d bytes", s.PasswordFile, passwordBytesMax))
	}
	p := strings.TrimRight(string(b), "\r\n")
	if p == "" {
		return "", flagErr("kafka-sasl-password-file", fmt.Errorf("%s: is empty", s.PasswordFile))
	}
	return p, nil
}

// TLS says how the tail encrypts. Every other field needs On.
type TLS struct {
	On                 bool
	CA                 string // PEM file; empty: the system's
	Cert, Key          string // PEM files of a client certificate, read at every handshake
	ServerName         string // empty: the host of each broker's address
	InsecureSkipVerify bool
}
