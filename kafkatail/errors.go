package kafkatail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// errorKind is what a fetch error asks us to do; its name is a metric label.
type errorKind int

const (
	kindTransient    errorKind = iota // leadership is moving, a broker is behind: heals by itself
	kindOutOfRange                    // the position is not in the log
	kindDataLoss                      // the log was cut behind the position (KIP-320)
	kindTooLarge                      // a batch is over decompressBytesMax
	kindUnknownTopic                  // deleted, re-created, or not known yet
	kindDenied                        // an ACL forbids it
	kindCorrupt                       // what was read can't be decoded
	kindOther
	kinds // how many there are
)

func (k errorKind) String() string {
	return [kinds]string{"transient", "out-of-range", "data-loss", "too-large", "unknown-topic", "denied", "corrupt", "other"}[k]
}

func kindOf(err error) errorKind {
	var (
		loss  *kgo.ErrDataLoss
		large *kgo.ErrDecompressTooLarge
		ke    *kerr.Error
	)
	switch {
	case errors.As(err, &loss):
		return kindDataLoss
	case errors.As(err, &large):
		return kindTooLarge
	case !errors.As(err, &ke):
		return kindCorrupt
	}
	switch ke.Code {
	case kerr.OffsetOutOfRange.Code:
		return kindOutOfRange
	case kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code, kerr.InconsistentTopicID.Code:
		return kindUnknownTopic
	case kerr.TopicAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code:
		return kindDenied
	case kerr.CorruptMessage.Code:
		return kindCorrupt
	}
	if ke.Retriable {
		return kindTransient
	}
	return kindOther
}

// reach is why no broker answers, coarse enough that a change of it is news.
type reach string

const (
	reachOK      reach = "ok"
	reachAway    reach = "unreachable" // nothing listens, no route, no such host
	reachTimeout reach = "timeout"
	reachTLS     reach = "tls"
	reachAuth    reach = "authentication"
	reachConfig  reach = "configuration" // a file of ours can't be read any more
	reachOther   reach = "error"
)

// reachOf explains err to an operator. It never holds a secret: neither the
// library's errors nor the brokers' carry one.
func (c Config) reachOf(err error) (reach, error) {
	var (
		dial  *net.OpError
		dns   *net.DNSError
		ke    *kerr.Error
		alert tls.AlertError
		rec   tls.RecordHeaderError
		cert  *tls.CertificateVerificationError
		ca    x509.UnknownAuthorityError
		flag  *flagError
	)
	switch {
	case errors.As(err, &flag):
		return reachConfig, err
	case errors.As(err, &ke) && (ke.Code == kerr.SaslAuthenticationFailed.Code || ke.Code == kerr.UnsupportedSaslMechanism.Code || ke.Code == kerr.IllegalSaslState.Code):
		return reachAuth, fmt.Errorf("the broker refused --kafka-sasl-username %q with --kafka-sasl-mechanism %s: %w", c.SASL.Username, c.SASL.Mechanism, err)
	case errors.As(err, &alert), errors.As(err, &rec), errors.As(err, &cert), errors.As(err, &ca):
		return reachTLS, fmt.Errorf("TLS (see --kafka-tls and --kafka-tls-ca): %w", err)
	case errors.Is(err, io.EOF) && c.SASL.Mechanism != "":
		return reachAuth, fmt.Errorf("the broker closed the connection while authenticating: check --kafka-sasl-username, --kafka-sasl-password-file and --kafka-tls: %w", err)
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		return reachAway, fmt.Errorf("no broker of --kafka-brokers answers: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return reachTimeout, fmt.Errorf("no broker of --kafka-brokers answers in time: %w", err)
	}
	return reachOther, err
}
