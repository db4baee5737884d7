package kafkatail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// dialer returns how brokers are dialled.
func (c Config) dialer() (dialFunc, error) {
	d := &net.Dialer{Timeout: min(5*time.Second, c.Timing.Request)}
	tc, err := c.TLS.config()
	if err != nil {
		return nil, err
	}
	if tc == nil {
		return d.DialContext, nil
	}
	return (&tls.Dialer{NetDialer: d, Config: tc}).DialContext, nil
}

// sasl returns the client options that authenticate.
func (c Config) sasl() ([]kgo.Opt, error) {
	m, err := c.SASL.mechanism()
	if err != nil || m == nil {
		return nil, err
	}
	return []kgo.Opt{kgo.SASL(m)}, nil
}

// mechanism returns nil where no authentication is asked for. The password is
// read again at each (re-)authentication (KIP-368), so a rotated one is used.
func (s SASL) mechanism() (sasl.Mechanism, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	scramAuth := func(context.Context) (scram.Auth, error) {
		p, err := s.password()
		return scram.Auth{User: s.Username, Pass: p}, err
	}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			p, err := s.password()
			return plain.Auth{User: s.Username, Pass: p}, err
		}), nil
	case "SCRAM-SHA-256":
		return scram.Sha256(scramAuth), nil
	case "SCRAM-SHA-512":
		return scram.Sha512(scramAuth), nil
	}
	return nil, nil
}

// config returns nil where TLS is off.
func (t TLS) config() (*tls.Config, error) {
	if !t.On {
		return nil, t.needsOn()
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify,
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, flagErr("kafka-tls-ca", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, flagErr("kafka-tls-ca", fmt.Errorf("%s: holds no PEM certificate", t.CA))
		}
	}
	switch {
	case t.Cert == "" && t.Key == "":
		return c, nil
	case t.Key == "":
		return nil, flagErr("kafka-tls-cert", errors.New("needs --kafka-tls-key"))
	case t.Cert == "":
		return nil, flagErr("kafka-tls-key", errors.New("needs --kafka-tls-cert"))
	}
	pair := func() (*tls.Certificate, error) {
		crt, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, flagErr("kafka-tls-cert", err)
		}
		return &crt, nil
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair() }
	_, err := pair()
	return c, err
}

// needsOn refuses TLS options that would silently do nothing.
func (t TLS) needsOn() error {
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"kafka-tls-ca", t.CA != ""},
		{"kafka-tls-cert", t.Cert != ""},
		{"kafka-tls-key", t.Key != ""},
		{"kafka-tls-server-name", t.ServerName != ""},
		{"kafka-tls-insecure-skip-verify", t.InsecureSkipVerify},
	} {
		if f.set {
			return flagErr(f.flag, errors.New("needs --kafka-tls"))
		}
	}
	return nil
}
