package config

import (
	"fmt"
	"regexp"
	"strings"
)

// envIgnored are variables with our prefix that are no settings.
var envIgnored = map[string]string{
	"TAILCAST_KAFKA_LIBS": "where the tests find the jars of a Kafka broker",
}

// Kubernetes puts these into every container of a namespace with a Service
// named tailcast or tailcast-something (service links), as Docker links do.
// They must not keep a node from starting.
var (
	serviceVar = regexp.MustCompile(`^TAILCAST_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	linkVar    = regexp.MustCompile(`^TAILCAST_([A-Z0-9_]+_)?PORT$`) // tcp://10.0.0.1:8080
)

// readEnv reads the variables with our prefix. An empty one counts as not set,
// for that is how composed environments leave one out.
func (l *loader) readEnv(env []string) ([]assignment, error) {
	byEnv := make(map[string]*setting, len(l.byName))
	for _, s := range l.byName {
		byEnv[envName(s.name)] = s
	}
	var all []assignment
	for _, pair := range env {
		name, text, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || envIgnored[name] != "" || text == "" {
			continue
		}
		if s := byEnv[name]; s != nil {
			all = append(all, assignment{setting: s, from: name, items: split(s.value.list, text, name)})
			continue
		}
		if !isServiceVar(name, text) {
			return nil, l.unknownVar(name)
		}
	}
	return all, nil
}

func isServiceVar(name, text string) bool {
	return serviceVar.MatchString(name) || linkVar.MatchString(name) && strings.Contains(text, "://")
}

func (l *loader) unknownVar(name string) error {
	typed := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))
	return fmt.Errorf("%s: unknown setting%s", printable(name), l.hint(typed, envName))
}
