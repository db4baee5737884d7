package harness

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tailcast/bench"
	"tailcast/bench/hostile"
)

// Topic is the name of the topic where a plan says no other.
const Topic = "bench"

// Gateway is tailcast as a target.
type Gateway struct {
	Version string
	// Brokers are the addresses of a cluster that is there already; none:
	// start a broker in a process of its own.
	Brokers []string
	// Args go behind those of tailcast serve.
	Args []string
	// Plain is the gateway without TLS, whatever the specification says, beside
	// one with it.
	Plain bool
}

// PlainName is the name of a plain gateway among the targets.
const PlainName = "plain"

// Target makes the gateway a target.
func (g Gateway) Target() Target {
	name := "tailcast"
	if g.Plain {
		name = PlainName
	}
	return Target{
		Name: name, Version: g.Version,
		Checks: Checks{IDs: true, Exact: true, Resume: true, Places: true, Users: true, Records: true},
		Start:  g.start,
	}
}

func (g Gateway) start(ctx context.Context, s *Setup) (*Server, error) {
	brokers := g.Brokers
	if len(brokers) == 0 {
		addr, err := StartBroker(s)
		if err != nil {
			return nil, err
		}
		brokers = []string{addr}
	}
	publisher, err := StartPublisher(s, brokers)
	if err != nil {
		return nil, err
	}
	args := []string{
		"serve", "--kafka-brokers", strings.Join(brokers, ","),
		"--admin", "127.0.0.1:0", "--log-format", "json", "--drain-delay", "0s",
	}
	var trusted *x509.CertPool
	if s.TLS != "" && !g.Plain {
		cert, key, roots, err := s.keyPair()
		if err != nil {
			return nil, err
		}
		args = append(args, "--listen", "off", "--listen-tls", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
		trusted = roots
	} else {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	path, routes, err := g.routes(s)
	if err != nil {
		return nil, err
	}
	args = append(args, routes...)
	if n := s.backlog(); n > 0 {
		if _, err := publisher.Publish(ctx, bench.Order{Count: n}); err != nil {
			return nil, err
		}
	}
	if s.Scenario == Ingest {
		args = append(args, "--warmup", strconv.FormatInt(1+s.Records/int64(s.Partitions), 10))
	}
	began := time.Now()
	args = append(args, g.Args...)
	p, err := s.Command(OnServer, s.Tailcast, args...)
	if err != nil {
		return nil, err
	}
	var at serving
	if err := p.Await(ctx, func(context.Context) error { return at.find(p.Stderr()) }); err != nil {
		return nil, err
	}
	if err := p.Await(ctx, func(ctx context.Context) error { return answers(ctx, "http://"+at.Admin+"/readyz") }); err != nil {
		return nil, err
	}
	server := &Server{
		URL: "http://" + at.Listen + path, Began: began, PIDs: []int{p.PID()}, Publisher: publisher,
		Metrics: "http://" + at.Admin + "/metrics",
		GC:      "http://" + at.Admin + "/debug/pprof/heap?gc=1",
	}
	if s.site != nil {
		server.Attacked = s.site.Target(at.Listen, at.TLS)
	}
	if trusted != nil {
		server.URL, server.TLS = "https://"+at.TLS+path, s.clientTLS(trusted)
	}
	return server, nil
}

// routes returns the flags for what the scenario's streams are served by, and
// their path.
func (g Gateway) routes(s *Setup) (path string, args []string, err error) {
	var config string
	switch {
	case s.Scenario == Hostile:
		if s.site, err = hostile.NewSite(s.Dir, s.Topic); err != nil {
			return "", nil, err
		}
		return hostile.EventsPath, append([]string{"--listen-tls", "127.0.0.1:0"}, s.site.Args...), nil
	case s.Topics() > 0:
		path, config = "/users/{user}", topicsConfig
	case s.Users() > 0:
		path, config = "/users/{user}", usersConfig
	case s.Scenario == Snapshot:
		path, config = "/snapshot", snapshotConfig
	default:
		return "/events", []string{"--route", "/events=" + s.Topic}, nil
	}
	file, err := s.File("tailcast.yaml", fmt.Sprintf(config, s.Topic))
	return path, []string{"--config", file}, err
}

// usersConfig is a route that gives each user their own records: those whose
// key is the user's number.
const usersConfig = `routes:
  - path: /users/{user}
    topic: %s
    filter:
      - key: "{user}"
`

// snapshotConfig is a route whose streams begin with the latest record of each
// key.
const snapshotConfig = `routes:
  - path: /snapshot
    topic: %s
    start: snapshot
`

// topicsConfig is a route that gives each user the topic of their own.
const topicsConfig = `routes:
  - path: /users/{user}
    topic: "%[1]s-{user}"
    allow: ["%[1]s-*"]
`

// serving is the line of its log in which tailcast says where it listens.
type serving struct {
	Msg    string `json:"msg"`
	Listen string `json:"listen"`
	TLS    string `json:"listen-tls"`
	Admin  string `json:"admin"`
}

// find looks for the line in what was logged.
func (at *serving) find(log string) error {
	for line := range bytes.Lines([]byte(log)) {
		if json.Unmarshal(line, at) == nil && at.Msg == "serving" {
			return nil
		}
	}
	return errors.New("it does not say that it serves")
}

// StartBroker starts a broker with the plan's topic on the processors of the
// load, and returns its address.
func StartBroker(s *Setup) (addr string, err error) {
	args := []string{"bench", "broker", "--topic", s.Topic, "--topics", strconv.FormatInt(s.Topics(), 10), "--partitions", strconv.Itoa(s.Partitions)}
	if s.Scenario == Snapshot {
		args = append(args, "--compacted")
	}
	p, err := s.Command(OnLoad, s.Tailcast, args...)
	if err != nil {
		return "", err
	}
	return NewOrders(p).Hello()
}

// StartPublisher starts a publisher into the plan's topic on the processors
// of the load. It makes the topic, and dials, with its first order.
func StartPublisher(s *Setup, brokers []string) (Publisher, error) {
	p, err := s.Command(OnLoad, s.Tailcast, "bench", "publish", "--kafka-brokers", strings.Join(brokers, ","),
		"--topic", s.Topic, "--topics", strconv.FormatInt(s.Topics(), 10), "--partitions", strconv.Itoa(s.Partitions),
		"--users", strconv.FormatInt(s.Users(), 10), "--keys", strconv.FormatInt(s.Keys, 10),
		"--size", strconv.Itoa(s.Size), "--codec", s.Codec)
	if err != nil {
		return nil, err
	}
	return NewOrders(p), nil
}
