package bench

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// Kind is how a stream behaves.
type Kind string

// The kinds of streams.
const (
	Normal       Kind = "normal"       // reads what comes
	Reconnecting Kind = "reconnecting" // reads, cuts its connection now and then, and comes back
	Slow         Kind = "slow"         // reads so many bytes a second
	Stalled      Kind = "stalled"      // never reads
)

// Config says what a client does. The zero value of a field that has a default
// means that default.
type Config struct {
	// URL is http://host:port/path, or https, IPv4. Where its path or query holds {user},
	// each stream asks for a user of its own: stream i for i+1.
	URL   string
	Conns int // all streams, those of the kinds below included
	// TLS is what streams speak with an https URL; nil is the zero one. Sessions
	// are taken up where it has a ClientSessionCache.
	TLS *tls.Config

	Stalled int
	// StallOnCue has the stalled streams read until Stall says so.
	StallOnCue bool
	Slow       int
	// SlowRate is how many bytes a second a slow stream reads.
	SlowRate int
	// Reconnecting streams cut their connection, at any byte, after a random
	// time of ReconnectEvery on average; zero: only when Cut says so.
	Reconnecting   int
	ReconnectEvery time.Duration

	// CutOnce streams, the first ones, cut their connection once, at any byte
	// behind their first 1 to CutBefore events, and come back.
	CutOnce   int
	CutBefore int64

	// Reopen makes normal streams come back, too, when the server ends them.
	Reopen bool
	// RetryMax bounds the time before a stream comes back, which is what the
	// server's last retry field said, or 2 s.
	RetryMax time.Duration

	// Opening bounds the connections that wait for their response head at a
	// time (256): below any listener's backlog.
	Opening int
	// Verify checks ids and that every record comes once, in partition order,
	// and with {user} in the URL that it is for the stream's user.
	Verify bool
	// Keys, if not 0, says that the records are those of Changes with so many
	// keys, and that a stream gets the state of all of them and what changes
	// then: what each stream has of each key is kept, to be compared. At most
	// KeyStatesMax of all streams.
	Keys int64
	// AnyUser says that streams may get the records of any user.
	AnyUser bool
	// OtherIDs says that event ids are not of the form of readID, and not to be
	// checked.
	OtherIDs bool
	// Sample measures the latency on one of so many streams (100), slow ones
	// apart.
	Sample int
	// Arrivals has a latency end when the kernel had an event's last byte, not
	// when the client read it: what the client waits for its processor, which it
	// shares with others, is not the server's.
	Arrivals bool
	// Seed makes the random choices repeatable; zero takes the clock's.
	Seed uint64
}

// retryDefault is how long a stream waits that was told no retry time: what
// Chromium and Firefox do, to the second.
const retryDefault = 2 * time.Second

// connsPerSource is how many connections use one loopback source address: a
// server's port and an address allow some 28,000 (ip_local_port_range).
const connsPerSource = 10_000

// target is the parsed URL.
type target struct {
	addr *net.TCPAddr
	host string
	path string // up to {user}
	rest string // behind it
	each bool   // there is a {user}
	tls  *tls.Config
}

// userParam is what a URL has where the number of a stream's user goes.
const userParam = "{user}"

// prepare sets the defaults and reports what makes no sense.
func (cfg *Config) prepare() (target, error) {
	var t target
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return t, fmt.Errorf("url: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
		return t, fmt.Errorf("url %q: want http://host:port/path or https", cfg.URL)
	}
	if t.addr, err = net.ResolveTCPAddr("tcp4", u.Host); err != nil {
		return t, fmt.Errorf("url %q: %w", cfg.URL, err)
	}
	if u.Scheme == "https" {
		t.tls = sessionsOf(cfg.TLS, u.Hostname())
	}
	t.host = u.Host
	// The path as it was given: url.URL would escape the braces.
	t.path = cfg.URL[strings.Index(cfg.URL, u.Host)+len(u.Host):]
	if t.path == "" || t.path[0] != '/' {
		t.path = "/" + t.path
	}
	t.path, t.rest, t.each = strings.Cut(t.path, userParam)
	switch {
	case cfg.Conns < 1:
		return t, fmt.Errorf("%d streams: want at least one", cfg.Conns)
	case cfg.Conns > 200*connsPerSource:
		return t, fmt.Errorf("%d streams: want at most %d", cfg.Conns, 200*connsPerSource)
	case cfg.Stalled < 0 || cfg.Slow < 0 || cfg.Reconnecting < 0,
		cfg.Stalled+cfg.Slow+cfg.Reconnecting > cfg.Conns:
		return t, fmt.Errorf("%d stalled, %d slow and %d reconnecting streams of %d", cfg.Stalled, cfg.Slow, cfg.Reconnecting, cfg.Conns)
	case cfg.CutOnce < 0 || cfg.CutOnce > cfg.Conns || cfg.CutOnce > 0 && cfg.CutBefore < 1:
		return t, fmt.Errorf("%d of %d streams cut before event %d", cfg.CutOnce, cfg.Conns, cfg.CutBefore)
	case cfg.Keys < 0 || cfg.Keys > KeyStatesMax/int64(cfg.Conns):
		return t, fmt.Errorf("%d keys of %d streams: want at most %d together", cfg.Keys, cfg.Conns, KeyStatesMax)
	case cfg.Slow > 0 && cfg.SlowRate < 1:
		return t, fmt.Errorf("slow streams at %d bytes a second", cfg.SlowRate)
	}
	if cfg.Opening < 1 {
		cfg.Opening = 256
	}
	if cfg.Sample < 1 {
		cfg.Sample = 100
	}
	if cfg.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano())
	}
	return t, nil
}

// sessionsOf is config for sessions with a host.
func sessionsOf(config *tls.Config, host string) *tls.Config {
	if config == nil {
		return &tls.Config{ServerName: host}
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config
}

// kind is the behaviour of stream i: the stalled are last, so that every
// source address has some of the others.
func (cfg *Config) kind(i int) Kind {
	switch {
	case i >= cfg.Conns-cfg.Stalled:
		if cfg.StallOnCue {
			return Normal
		}
		return Stalled
	case i >= cfg.Conns-cfg.Stalled-cfg.Slow:
		return Slow
	case i < cfg.Reconnecting:
		return Reconnecting
	}
	return Normal
}
