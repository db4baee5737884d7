// Package admin serves the operator: health, status, metrics, profiles and
// the dashboard, over net/http on a listener of its own. It reads snapshots of
// the gateway through Source and changes nothing. Streams are not its business,
// and it has no access control: the listener belongs on loopback or a private
// network.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Limits. Each says what it protects and where the number comes from.
const (
	// headTimeout bounds the wait for a request's head, which is one packet.
	headTimeout = 5 * time.Second
	// readTimeout bounds a whole request. There are no bodies to read.
	readTimeout = 10 * time.Second
	// writeTimeout bounds an answer. Profiles set it: pprof refuses to run
	// longer than this, and a minute or two is what people ask for.
	writeTimeout = 5 * time.Minute
	// idleTimeout is how long a connection may wait for its next request: over
	// the minute between two scrapes.
	idleTimeout = 2 * time.Minute
	// headBytesMax bounds one request's head. Browsers send under 8 KiB.
	headBytesMax = 16 << 10
	// scrapesMax bounds the scrapes that run at once: two Prometheus servers,
	// a person, and one to spare.
	scrapesMax = 4
)

// Config is what a Server needs.
type Config struct {
	Addr    string // of --admin, host:port
	Version string // of this build
	Source  Source
	Pages   http.Handler // the dashboard at / and what else is not an endpoint here; nil: none
	Log     *slog.Logger
}

// Server is the admin listener. Its methods are safe from any goroutine.
type Server struct {
	http http.Server
	ln   net.Listener
	done chan struct{} // closed when Serve has returned
}

// Open binds the listener and serves it until Close. An error names the flag
// and the address.
func Open(cfg Config) (*Server, error) {
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // the rest says "listen tcp" and the address again
		}
		return nil, fmt.Errorf("--admin %s: %w", cfg.Addr, err)
	}
	s := &Server{ln: ln, done: make(chan struct{})}
	s.http = http.Server{
		Handler:           handler(cfg, time.Now()),
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headBytesMax,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			cfg.Log.Error("admin listener ended", slog.String("addr", ln.Addr().String()), slog.Any("error", err))
		}
	}()
	return s, nil
}

// Addr is where the server listens, with the port that was given for port 0.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Close stops accepting at once, lets answers under way end until ctx is done,
// then cuts them.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("close the admin listener: %w", err), s.http.Close())
	}
	<-s.done
	return err
}

// handler is the whole surface. started is when the process began to serve.
func handler(cfg Config, started time.Time) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		serveProbe(w, stuck(cfg.Source.Snapshot().Loops))
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		serveProbe(w, cfg.Source.Ready())
	})
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		serveStatus(w, newStatus(cfg.Source.Snapshot(), cfg.Source.Ready(), cfg.Version, started, time.Now()))
	})
	mux.Handle("/metrics", metricsHandler(cfg))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	if cfg.Pages != nil {
		mux.Handle("/", cfg.Pages)
	}
	return readOnly(mux)
}

// readOnly refuses what could only be a mistake, and has every answer say that
// it is neither to be guessed at nor kept.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer") // an address may hold a token
		h.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD here", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
