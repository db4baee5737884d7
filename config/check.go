package config

import (
	"fmt"
	"strings"
)

// check holds the settings against each other.
func (l *loader) check() error {
	for _, check := range [...]func() error{l.checkKafka, l.checkListen, l.checkProxy, l.checkSizes, l.checkRoutes, l.checkPeers, l.checkReport} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// fault returns an error at the place of the first of names that was set, or
// of the first when all are at their defaults.
func (l *loader) fault(names []string, format string, args ...any) error {
	place := "--" + names[0]
	for _, name := range names {
		if from := l.from[name]; from != "" {
			place = from
			break
		}
	}
	return fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
}

func (l *loader) checkKafka() error {
	if l.command == Demonstrate {
		return nil // it has a broker of its own
	}
	k := &l.config.Kafka
	if len(k.Brokers) == 0 {
		return l.fault([]string{"kafka-brokers"}, "at least one broker is needed")
	}
	if !k.TLS.Enabled {
		for _, name := range l.names() {
			if strings.HasPrefix(name, "kafka-tls-") && l.from[name] != "" {
				return l.fault([]string{name}, "needs --kafka-tls")
			}
		}
	}
	if (k.TLS.CertFile == "") != (k.TLS.KeyFile == "") {
		return l.fault([]string{"kafka-tls-cert", "kafka-tls-key"}, "--kafka-tls-cert and --kafka-tls-key need each other")
	}
	return l.checkSASL(&k.SASL)
}

func (l *loader) checkListen() error {
	c := l.config
	if c.Listen == "" && c.ListenTLS == "" {
		return l.fault([]string{"listen"}, "one of --listen and --listen-tls is needed")
	}
	if c.ListenTLS == "" {
		for _, name := range []string{"tls-cert", "tls-key", "tls-client-ca"} {
			if l.from[name] != "" {
				return l.fault([]string{name}, "needs --listen-tls")
			}
		}
		return nil
	}
	if n, m := len(c.TLS.CertFiles), len(c.TLS.KeyFiles); n == 0 || n != m {
		return l.fault([]string{"tls-cert", "tls-key", "listen-tls"},
			"--listen-tls needs as many --tls-cert as --tls-key, at least one: there are %d and %d", n, m)
	}
	return nil
}

func (l *loader) checkProxy() error {
	c := l.config
	switch {
	case c.Proxy == ProxyOff && len(c.ProxyTrusted) > 0:
		return l.fault([]string{"proxy-trusted"}, "needs --proxy-protocol")
	case c.Proxy != ProxyOff && len(c.ProxyTrusted) == 0:
		return l.fault([]string{"proxy-protocol"}, "%s needs --proxy-trusted, the networks of the balancers: who sends a header says to be anyone", c.Proxy)
	case c.Proxy == ProxyOptional && c.MaxConnsPerIP > 0:
		return l.fault([]string{"max-conns-per-ip", "proxy-protocol"},
			"with --proxy-protocol optional all clients of a balancer that sends no header would count as one address (use required)")
	}
	return nil
}

func (l *loader) checkSASL(s *SASL) error {
	secrets := []string{"kafka-sasl-username", "kafka-sasl-password-file"}
	switch {
	case s.Mechanism == "" && (s.Username != "" || s.PasswordFile != ""):
		return l.fault(secrets, "needs --kafka-sasl-mechanism")
	case s.Mechanism != "" && s.Username == "":
		return l.fault([]string{"kafka-sasl-mechanism"}, "%s needs --kafka-sasl-username", s.Mechanism)
	case s.Mechanism != "" && s.PasswordFile == "":
		return l.fault([]string{"kafka-sasl-mechanism"}, "%s needs --kafka-sasl-password-file", s.Mechanism)
	}
	return nil
}

func (l *loader) checkSizes() error {
	c := l.config
	switch {
	case c.MaxEvent > c.LogBytes:
		return l.fault([]string{"max-event", "log-bytes"},
			"--max-event (%s) is over --log-bytes (%s): an event must fit into the log of its feed", c.MaxEvent, c.LogBytes)
	case c.LogBytes > c.LogBytesTotal:
		return l.fault([]string{"log-bytes", "log-bytes-total"},
			"--log-bytes (%s) is over --log-bytes-total (%s): one feed can't have more than all", c.LogBytes, c.LogBytesTotal)
	}
	return nil
}

func (l *loader) checkRoutes() error {
	if len(l.config.Routes) == 0 {
		return l.fault([]string{"route"}, "at least one route is needed (use --route /events=events, or routes in the --config file)")
	}
	return nil
}

func (l *loader) checkPeers() error {
	seen := map[string]bool{}
	for _, p := range l.config.Peers {
		if seen[p.Name] {
			return l.fault([]string{"peers"}, "%s is there twice", quote(p.Name))
		}
		seen[p.Name] = true
	}
	if len(seen) > 0 && l.config.Node == "" {
		return l.fault([]string{"peers"}, "needs --node: by a random name no peer knows this one")
	}
	return nil
}

func (l *loader) checkReport() error {
	if l.config.Node == "" && strings.Contains(l.config.Kafka.ReportGroup, NodeParam) {
		return l.fault([]string{"kafka-report-group"}, "%s needs --node: by a random name every start leaves a group behind", NodeParam)
	}
	return nil
}
