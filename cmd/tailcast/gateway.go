package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tailcast/admin"
	"tailcast/auth"
	"tailcast/certs"
	"tailcast/config"
	"tailcast/hub"
	"tailcast/internal/share"
	"tailcast/kafkatail"
	"tailcast/loop"
	"tailcast/route"
	"tailcast/static"
	"tailcast/web"
)

// gateway is the rooms wired together.
type gateway struct {
	cfg   *config.Config
	log   *slog.Logger
	loops *loop.Server
	hub   *hub.Hub
	tail  *kafkatail.Tail
	guard *auth.Node
	admin *admin.Server
	certs *certs.Store   // nil without --listen-tls
	files *static.Server // nil without --static

	served  []served        // by route
	literal map[string]bool // the topics that routes name, whatever requests do

	draining atomic.Bool
}

// feedIdle is how long a feed that requests made is kept without streams: longer
// than any browser waits before it comes back.
const feedIdle = 2 * time.Minute

func serve(ctx context.Context, cfg *config.Config, stderr io.Writer) error {
	log, closeLog := openLog(cfg, stderr)
	defer closeLog()
	g, err := open(cfg, log, func(string) http.Handler { return web.Handler(nil) })
	if err != nil {
		return err
	}
	return g.run(ctx)
}

// open builds the rooms and listens; nothing is read from Kafka before run.
// pages makes the admin listener's pages, given the streams' origin (http://host:port).
func open(cfg *config.Config, log *slog.Logger, pages func(streams string) http.Handler) (*gateway, error) {
	g := &gateway{cfg: cfg, log: log, literal: map[string]bool{}}
	var err error
	if g.tail, err = kafkatail.New(kafkaConfig(cfg), log); err != nil {
		return nil, err
	}
	lcfg := loopConfig(cfg, log)
	share.Reserve(lcfg.Loops)
	if cfg.ListenTLS != "" {
		if g.certs, err = certs.Open(certsConfig(cfg, log)); err != nil {
			return nil, err
		}
		lcfg.TLS = g.certs.TLS()
	}
	if g.loops, err = loop.New(lcfg); err != nil {
		return nil, err
	}
	g.hub = hub.New(hub.Options{
		LogBytes: int64(cfg.LogBytes), LogBytesTotal: int64(cfg.LogBytesTotal), Heartbeat: cfg.Heartbeat, FlushWindow: cfg.FlushWindow, Idle: feedIdle,
		History: g.tail.History(), ReplayMax: int64(cfg.ReplayMax), ReplayScan: int64(cfg.ReplayScan), Replays: cfg.Replays,
		SnapshotBytes: int64(cfg.SnapshotBytes), Log: log,
	}, g.loops.Mailboxes())
	g.guard = auth.NewNode(guardConfig(cfg, log))
	site, err := g.site()
	if err != nil {
		return nil, err
	}
	if cfg.Static != "" {
		g.files, err = static.Open(static.Config{
			Dir: cfg.Static, HeadTimeout: cfg.HeaderTimeout, Routed: g.loops.Routed, Back: g.loops.Back, Answered: g.loops.Answered, Log: log,
		})
		if err != nil {
			return nil, err
		}
		site.Files = g.files
	}
	if err := g.loops.Serve(loop.Listen{Plain: cfg.Listen, TLS: cfg.ListenTLS}, site); err != nil {
		return nil, err
	}
	g.admin, err = admin.Open(admin.Config{
		Addr: cfg.Admin, Version: version(), Source: g, Pages: pages(g.origin()), Log: log,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// origin is that of the streams.
func (g *gateway) origin() string {
	if at := g.loops.Addr(); at != nil {
		return "http://" + at.String()
	}
	return "https://" + g.loops.AddrTLS().String()
}

// site says what every route serves, and opens the feeds of those whose topics
// no request has a say in.
func (g *gateway) site() (loop.Site, error) {
	var site loop.Site
	var routes []route.Route
	for i, r := range g.cfg.Routes {
		cors, err := route.NewCORS(r.CORS.Origins, r.CORS.Credentials)
		if err != nil {
			return site, fmt.Errorf("route %s: %w", r.Path, err)
		}
		guard, err := guardOf(g.guard, &r)
		if err != nil {
			return site, err
		}
		filter := filterOf(&r)
		sv := served{route: r}
		what := loop.Serving{
			Guard: guard, Restart: r.Resync == config.ResyncRestart, Start: policy(r.Start), ClientStart: r.ClientStart,
			Filter: filter, MaxStreams: r.MaxStreams, MaxStreamsPerSubject: r.MaxStreamsPerSubject,
		}
		if r.Literal() {
			sv.feed, err = g.hub.Open(hub.Spec{Topics: r.Topics, Format: r.Format, Keys: r.Start.From == config.StartSnapshot, Fields: filter.Fields()}, g.tail)
			what.Feed = sv.feed
			for _, name := range r.Topics {
				g.literal[name] = true
			}
		} else {
			var o *opener
			if o, err = g.opener(r, filter.Fields()); err == nil {
				sv.lot, what.Open = o.lot, o.open
			}
		}
		if err != nil {
			return site, fmt.Errorf("route %s: %w", r.Path, err)
		}
		g.served = append(g.served, sv)
		site.Serves = append(site.Serves, what)
		routes = append(routes, route.Route{Host: r.Host, Path: r.Path, Feed: i, CORS: cors})
	}
	var err error
	if site.Routes, err = route.NewTable(routes); err != nil {
		return site, err
	}
	if site.CORS, err = route.NewCORS(g.cfg.CORS.Origins, false); err != nil {
		return site, fmt.Errorf("--cors-origins: %w", err)
	}
	return site, nil
}

// served is a route and what serves it.
type served struct {
	route config.Route
	feed  *hub.Feed // nil if requests have a say in it
	lot   *hub.Lot  // then: the feeds they made
}

// opener returns what opens the feeds of a route for its requests.
func (g *gateway) opener(r config.Route, fields []hub.Field) (*opener, error) {
	o := &opener{hub: g.hub, tail: g.tail, spec: hub.Spec{Format: r.Format, Keys: r.Start.From == config.StartSnapshot, Fields: fields}, lot: hub.NewLot()}
	for _, text := range r.Topics {
		t, err := route.ParseTemplate(text)
		if err != nil {
			return nil, err
		}
		o.topics = append(o.topics, t)
	}
	var err error
	o.allow, err = route.NewAllow(r.Allow)
	return o, err
}

// filterOf is a route's filter in the loop's terms.
func filterOf(r *config.Route) loop.Filter {
	var filter loop.Filter
	for _, terms := range r.Filter {
		var item []loop.FilterTerm
		for _, t := range terms {
			item = append(item, loop.FilterTerm{Field: field(t), Value: t.Value})
		}
		filter = append(filter, item)
	}
	return filter
}

func field(t config.FilterTerm) hub.Field {
	switch t.Kind {
	case config.TermHeader:
		return hub.Field{Kind: hub.HeaderField, Name: t.Name}
	case config.TermJSON:
		return hub.Field{Kind: hub.JSONField, Name: t.Name}
	case config.TermKey:
	}
	return hub.Field{Kind: hub.KeyField}
}

// policy is a route's start in the hub's terms.
func policy(s config.Start) hub.Policy {
	switch s.From {
	case config.StartEarliest:
		return hub.Policy{From: hub.FromEarliest}
	case config.StartSnapshot:
		return hub.Policy{From: hub.FromSnapshot}
	case config.StartTime:
		return hub.Policy{From: hub.FromTime, N: s.Time.UnixMilli()}
	case config.StartAgo:
		return hub.Policy{From: hub.FromAgo, N: s.Ago.Milliseconds()}
	case config.StartLast:
		return hub.Policy{From: hub.FromLast, N: int64(s.Last)}
	case config.StartLatest:
	}
	return hub.Policy{}
}

// run serves until ctx ends, then drains. A second signal ends the drain.
func (g *gateway) run(ctx context.Context) error {
	work, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	var tailErr error
	failed := make(chan struct{})
	wg.Go(func() { g.hub.Run(work) })
	if g.certs != nil {
		wg.Go(func() { g.certs.Run(work) })
	}
	wg.Go(func() { g.guard.Run(work) })
	wg.Go(func() {
		if tailErr = g.tail.Run(work); tailErr != nil && work.Err() == nil {
			close(failed)
		}
	})
	g.log.Info("serving",
		slog.String("listen", addrOrOff(g.loops.Addr())), slog.String("listen-tls", addrOrOff(g.loops.AddrTLS())),
		slog.String("admin", g.admin.Addr().String()),
		slog.String("version", version()), slog.Int("routes", len(g.served)), slog.Int("loops", len(g.loops.Stats())),
		slog.Int("max-conns", g.loops.MaxConns()))
	select {
	case <-ctx.Done():
	case <-failed:
	}
	g.drain()
	stop()
	wg.Wait()
	closing, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = g.admin.Close(closing) // whoever still reads metrics has had a second
	if errors.Is(tailErr, context.Canceled) {
		return nil
	}
	return tailErr
}

func addrOrOff(a net.Addr) string {
	if a == nil {
		return "off"
	}
	return a.String()
}

// drain tells balancers first, then ends the streams.
func (g *gateway) drain() {
	hurry, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	g.draining.Store(true)
	g.log.Info("draining", slog.Duration("delay", g.cfg.DrainDelay), slog.Duration("drain", g.cfg.Drain))
	delay := time.NewTimer(g.cfg.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-hurry.Done():
	}
	var files sync.WaitGroup
	if g.files != nil {
		until, cancel := context.WithTimeout(hurry, g.cfg.Drain)
		defer cancel()
		files.Go(func() { g.files.Close(until) })
	}
	g.loops.Stop(hurry)
	files.Wait()
	g.log.Info("stopped")
}

func loopConfig(cfg *config.Config, log *slog.Logger) loop.Config {
	loops := cfg.Loops
	if loops == 0 {
		loops = runtime.GOMAXPROCS(0)
	}
	return loop.Config{
		Loops: loops, MaxConns: cfg.MaxConns, MaxConnsPerIP: cfg.MaxConnsPerIP,
		NotSentLowat: int(cfg.NotSentLowat), SndBuf: int(cfg.SndBuf), MaxLag: int64(cfg.MaxLag), Stall: cfg.Stall,
		HeaderTimeout: cfg.HeaderTimeout, MaxAge: cfg.MaxAge, Retry: cfg.Retry, Drain: cfg.Drain, Log: log,
		AcceptRate: cfg.AcceptRate, AccessLog: accessLog(cfg), Proxy: proxyModes[cfg.Proxy], ProxyTrusted: cfg.ProxyTrusted,
	}
}

// accessLog is one of how many requests is logged, 0 for none.
func accessLog(cfg *config.Config) int {
	if cfg.AccessLog == config.Off {
		return 0
	}
	return cfg.AccessLogSample
}

var proxyModes = map[config.ProxyProtocol]loop.Proxy{
	config.ProxyOff: loop.ProxyOff, config.ProxyOptional: loop.ProxyOptional, config.ProxyRequired: loop.ProxyRequired,
}

func certsConfig(cfg *config.Config, log *slog.Logger) certs.Config {
	c := certs.Config{ClientCA: cfg.TLS.ClientCA, Log: log}
	for i, cert := range cfg.TLS.CertFiles {
		c.Pairs = append(c.Pairs, certs.Pair{Cert: cert, Key: cfg.TLS.KeyFiles[i]})
	}
	return c
}

func kafkaConfig(cfg *config.Config) kafkatail.Config {
	k := &cfg.Kafka
	return kafkatail.Config{
		Warmup:      int64(cfg.Warmup),
		ReportGroup: strings.ReplaceAll(k.ReportGroup, config.NodeParam, cfg.Node),
		Brokers:     k.Brokers, ClientID: k.ClientID, Isolation: string(k.Isolation), Rack: k.Rack,
		TLS: kafkatail.TLS{
			On: k.TLS.Enabled, CA: k.TLS.CAFile, Cert: k.TLS.CertFile, Key: k.TLS.KeyFile,
			ServerName: k.TLS.ServerName, InsecureSkipVerify: k.TLS.InsecureSkipVerify,
		},
		SASL: kafkatail.SASL{
			Mechanism: string(k.SASL.Mechanism), Username: k.SASL.Username, PasswordFile: k.SASL.PasswordFile,
		},
	}
}
