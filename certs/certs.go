// Package certs holds the certificates of the TLS listener: it reads and
// checks them, and reads them again while the listener is open, so that they
// can be renewed without a restart. It opens files and nothing else; it knows
// no connection.
package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"tailcast/internal/wait"
)

const (
	// lookEvery is how often the files are read again. They are compared by
	// what they hold: a mounted secret is a link that is turned, and a copied
	// file may keep its time.
	lookEvery = 10 * time.Second
	// fileBytesMax bounds a file: a chain is some 5 KB, the bundle of all
	// public authorities 250 KB.
	fileBytesMax = 1 << 20
)

// Config names the files.
type Config struct {
	Pairs    []Pair // at least one; clients that name no host of any get the first
	ClientCA string // certificates that vouch for clients, which must show one; "": they need none
	Log      *slog.Logger
}

// Pair is a certificate with its chain and its private key, PEM files both.
type Pair struct{ Cert, Key string }

// Store holds what the files said when they were last in order.
type Store struct {
	cfg     Config
	current atomic.Pointer[tls.Config]
	seen    [][]byte // what the files held when last read; Open's, then Run's
}

// Open reads the files. The error names the flag and the file.
func Open(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg}
	seen, err := s.read()
	if err != nil {
		return nil, err
	}
	s.seen = seen
	return s, s.load()
}

// TLS is the configuration of a listener: whatever Store holds when a
// handshake begins. TLS 1.2 and 1.3, HTTP/1.1 alone: a client that also speaks
// HTTP/2 falls back. Session tickets are on, with keys of this process;
// renegotiation and early data are not offered by crypto/tls.
func (s *Store) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load(), nil },
	}
}

// Run reads the files again and again until ctx ends. Handshakes get new
// certificates from then on; sessions that are there keep theirs. Files that
// are out of order change nothing, and are logged once.
func (s *Store) Run(ctx context.Context) {
	wait.Every(ctx, lookEvery, func(time.Time) { s.look() })
}

// look reads the files and takes what is new in them.
func (s *Store) look() {
	seen, err := s.read()
	if err == nil && same(seen, s.seen) {
		return
	}
	if err == nil {
		s.seen = seen
		err = s.load()
	} else if s.seen == nil {
		return // it was said
	} else {
		s.seen = nil
	}
	if err != nil {
		s.cfg.Log.Error("certificates are kept as they were", slog.Any("error", err))
		return
	}
	s.cfg.Log.Info("certificates read again", slog.Time("first expires", s.Expires()))
}

// Expires is when the first of the certificates expires.
func (s *Store) Expires() time.Time {
	var first time.Time
	for _, c := range s.current.Load().Certificates {
		if first.IsZero() || c.Leaf.NotAfter.Before(first) {
			first = c.Leaf.NotAfter
		}
	}
	return first
}

// files are all of them, each with the flag that names it.
func (s *Store) files() (files, flags []string) {
	for _, p := range s.cfg.Pairs {
		files = append(files, p.Cert, p.Key)
		flags = append(flags, "--tls-cert", "--tls-key")
	}
	if s.cfg.ClientCA != "" {
		files, flags = append(files, s.cfg.ClientCA), append(flags, "--tls-client-ca")
	}
	return files, flags
}

func (s *Store) read() ([][]byte, error) {
	files, flags := s.files()
	all := make([][]byte, len(files))
	for i, name := range files {
		text, err := readBounded(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flags[i], err)
		}
		all[i] = text
	}
	return all, nil
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err == nil && len(text) > fileBytesMax {
		err = fmt.Errorf("%s is longer than %d bytes", name, fileBytesMax)
	}
	return text, err
}

func same(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// load makes what was seen current, if it is in order.
func (s *Store) load() error {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		// Records are as long as what is written: there is no buffer whose
		// filling would delay an event.
		DynamicRecordSizingDisabled: true,
	}
	for i, p := range s.cfg.Pairs {
		pair, err := tls.X509KeyPair(s.seen[2*i], s.seen[2*i+1])
		if err != nil {
			return fmt.Errorf("--tls-cert %s, --tls-key %s: %w", p.Cert, p.Key, err)
		}
		if time.Now().After(pair.Leaf.NotAfter) {
			return fmt.Errorf("--tls-cert %s: expired on %s", p.Cert, pair.Leaf.NotAfter.UTC().Format(time.DateOnly))
		}
		c.Certificates = append(c.Certificates, pair)
	}
	if s.cfg.ClientCA != "" {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(s.seen[len(s.seen)-1]) {
			return fmt.Errorf("--tls-client-ca %s: %w", s.cfg.ClientCA, errNoCertificate)
		}
	}
	s.current.Store(c)
	return nil
}

var errNoCertificate = errors.New("it holds no certificate (PEM)")
