package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"tailcast/auth"
	"tailcast/http1"
	"tailcast/hub"
	"tailcast/route"
)

// Config is what a Server needs to know; the flags of the same names say more.
// Zero means off for MaxConnsPerIP, AcceptRate, MaxAge and SndBuf, and the limit of file
// descriptors for MaxConns.
type Config struct {
	Loops         int
	MaxConns      int
	MaxConnsPerIP int
	NotSentLowat  int // bytes
	SndBuf        int // bytes
	MaxLag        int64
	Stall         time.Duration
	HeaderTimeout time.Duration
	MaxAge        time.Duration
	Retry         time.Duration
	Drain         time.Duration
	TLS           *tls.Config // of Listen.TLS
	AcceptRate    int         // connections a second
	AccessLog     int         // one of so many requests is logged; 0: none
	Proxy         Proxy
	ProxyTrusted  []netip.Prefix
	Log           *slog.Logger
}

// Site is what the streams are: the route of each path, the feed of each
// route, and the CORS policy of answers that belong to no route.
type Site struct {
	Routes *route.Table
	Serves []Serving // by Route.Feed
	CORS   *route.CORS
	Files  Files // for paths without route; nil: they are 404
}

// Serving is what one route serves.
type Serving struct {
	Feed    *hub.Feed   // nil if requests have a say in it
	Guard   *auth.Guard // nil: everyone may read it
	Restart bool        // streams that can't go on exactly begin by the start policy

	MaxStreams           int // at a time; 0: no limit
	MaxStreamsPerSubject int // of one token's subject; 0: no limit
	room                 *room

	Start       hub.Policy
	ClientStart bool // clients may ask for another start

	// Open opens the feed that a request asks for, by hub.Lend or hub.Find, if
	// that is not always Feed. It borrows v, waits for nothing, and is called by
	// any loop. Its error is a *route.Refusal, which answers the request,
	// ErrFull, or, with wait, a *Later.
	Open func(v *route.Values, wait bool) (*hub.Feed, error)

	// Filter says what streams get of the feed, which was opened with its
	// Fields; nil: all of it.
	Filter Filter
}

// Server is the listener and the loops of one process.
type Server struct {
	cfg   Config
	waits waits
	site  Site
	loops []*Loop

	plain, secure net.Listener // either may be nil
	accepter      accepter
	journal       *journal
}

// New makes the loops, which wait for Serve. Errors are those of the system.
func New(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, waits: defaultWaits, journal: newJournal(cfg.Log, cfg.AccessLog)}
	s.journal.start()
	s.accepter.init(s)
	for range cfg.Loops {
		l, err := newLoop(s)
		if err != nil {
			s.stop()
			return nil, err
		}
		s.loops = append(s.loops, l)
	}
	return s, nil
}

func newLoop(s *Server) (*Loop, error) {
	w, far, err := newWaker()
	if err != nil {
		return nil, err
	}
	l := makeLoop(s, w)
	if err = l.run(far); err != nil {
		l.timer.Stop()
		w.close()
		_ = far.Close()
		return nil, fmt.Errorf("start an event loop: %w", err)
	}
	return l, nil
}

// makeLoop returns a loop that nothing runs yet.
func makeLoop(s *Server, w *waker) *Loop {
	return &Loop{
		srv: s, waker: w, box: hub.NewMailbox(w.wake), began: time.Now(),
		timer: time.AfterFunc(idleTurn, w.wake),
		feeds: map[*hub.Feed]*streams{},
		rand:  rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		path:  make([]byte, 0, http1.HeadMax),
	}
}

// run starts the loop, which reads its wakes from far.
func (l *Loop) run(far net.Conn) (err error) {
	l.client, err = gnet.NewClient(l,
		gnet.WithNumEventLoop(1), gnet.WithReadBufferCap(readBuffer),
		gnet.WithLogger(gnetLog{l.srv.cfg.Log}), gnet.WithLogLevel(logging.ErrorLevel))
	if err != nil {
		return err
	}
	if err = l.client.Start(); err != nil {
		return err
	}
	if _, err = l.client.Enroll(far); err == nil && l.el == nil {
		err = errNotPolled
	}
	if err != nil {
		return errors.Join(err, l.client.Stop())
	}
	return nil
}

// Mailboxes returns the loops' mailboxes, for the hub.
func (s *Server) Mailboxes() []*hub.Mailbox {
	var boxes []*hub.Mailbox
	for _, l := range s.loops {
		boxes = append(boxes, l.box)
	}
	return boxes
}

// Listen is where a Server listens, host:port each; "" for not at all.
type Listen struct {
	Plain string
	TLS   string // needs Config.TLS
}

// Serve listens and serves site until Stop. The error names the flag and the
// address.
func (s *Server) Serve(at Listen, site Site) (err error) {
	if at.Plain != "" {
		if s.plain, err = s.listen("--listen", at.Plain); err != nil {
			return err
		}
	}
	if at.TLS != "" {
		if s.secure, err = s.listen("--listen-tls", at.TLS); err != nil {
			if s.plain != nil {
				_ = s.plain.Close()
			}
			return err
		}
	}
	s.site = site
	for i := range site.Serves {
		site.Serves[i].room = newRoom(&site.Serves[i])
	}
	s.accepter.start(s.plain, s.secure)
	return nil
}

// Addr is the address of Listen.Plain, nil without.
func (s *Server) Addr() net.Addr { return addrOfListener(s.plain) }

// AddrTLS is the address of Listen.TLS, nil without.
func (s *Server) AddrTLS() net.Addr { return addrOfListener(s.secure) }

func addrOfListener(ln net.Listener) net.Addr {
	if ln == nil {
		return nil
	}
	return ln.Addr()
}

// Stop ends accepting, then every connection: streams by their last chunk and
// a time to come back, spread over half of Config.Drain; what is left when
// Drain is over or ctx ends is dropped. Afterwards the Server is done.
func (s *Server) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Drain)
	defer cancel()
	s.accepter.stop()
	for _, l := range s.loops {
		l.order(orderDrain)
	}
	s.await(ctx)
	for _, l := range s.loops {
		l.order(orderKill)
	}
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.await(last)
	s.stop()
}

// await returns when no connection is left or ctx ends.
func (s *Server) await(ctx context.Context) {
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for s.accepter.count() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (s *Server) stop() {
	for _, l := range s.loops {
		if err := l.client.Stop(); err != nil {
			s.cfg.Log.Error("event loop", slog.Any("error", err))
		}
		l.timer.Stop()
		l.waker.close()
	}
	s.journal.stop()
}

// gone is called by a loop for each connection it forgets.
func (s *Server) gone(c *conn) { s.accepter.gone(c.edge) }

// MaxConns is how many connections there may be at a time.
func (s *Server) MaxConns() int { return s.accepter.max }

// Stats returns the counts of every loop. Safe from any goroutine.
func (s *Server) Stats() []Stats {
	var all []Stats
	for _, l := range s.loops {
		all = append(all, l.stats.snapshot(l.began))
	}
	return all
}

// Accepted returns the connections accepted and enrolled, and those refused by
// reason. Safe from any goroutine.
func (s *Server) Accepted() (accepted uint64, refused map[string]uint64) {
	return s.accepter.counts()
}

// gnetLog passes what gnet has to say to our log.
type gnetLog struct{ log *slog.Logger }

func (g gnetLog) Debugf(string, ...any) {}
func (g gnetLog) Infof(string, ...any)  {}
func (g gnetLog) Warnf(string, ...any)  {} // of events of connections that a turn closed: one each
func (g gnetLog) Errorf(f string, a ...any) {
	g.log.Error("gnet", slog.String("message", fmt.Sprintf(f, a...)))
}
func (g gnetLog) Fatalf(f string, a ...any) { g.Errorf(f, a...) }
