// Package static serves the files of one directory by net/http, on connections
// that an event loop hands over: file servers wait for disks, loops must not.
// It accepts nothing itself, writes no file and runs no program.
package static

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// Limits of a Server.
const (
	// connsMax bounds the connections, each of which is a goroutine with
	// buffers, some 20 KB: a page asks for its files over six at a time.
	connsMax = 1024
	// headMax bounds the head of a request, as loops do.
	headMax = 16 << 10
	// bodyMax bounds the body of a request that goes back to a loop.
	bodyMax = 64 << 10
	// rangesMax bounds the ranges of one request: readers of documents ask for a
	// few. Who asks for more, each of which is a part of the answer with a head of
	// its own, gets the whole file (RFC 9110 14.2, 17.15).
	rangesMax = 16
	// idleMax is the time between two requests.
	idleMax = 60 * time.Second
)

// Config is what a Server needs to know.
type Config struct {
	Dir         string
	HeadTimeout time.Duration // for the head of a request

	// Routed reports whether a path, as a request line has it, is for a loop.
	// Its error says why the path is for nobody.
	Routed func(host, path string) (bool, error)
	// Back gives a connection back to a loop, for the request in first, which
	// may have others behind it. Conn is one that Take was given.
	Back func(c net.Conn, first []byte)
	// Answered is told of every answer; the path is without query.
	Answered func(addr net.Addr, method, path string, status int)

	Log *slog.Logger
}

// Server serves files.
type Server struct {
	cfg   Config
	root  *os.Root
	http  *http.Server
	queue *queue
}

// Open opens the directory and begins to serve. The error names the flag.
func Open(cfg Config) (*Server, error) {
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("--static: %w", err)
	}
	s := &Server{cfg: cfg, root: root, queue: newQueue()}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: cfg.HeadTimeout, IdleTimeout: idleMax, MaxHeaderBytes: headMax,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, clientAddr{}, c.RemoteAddr())
		},
		// A client that takes nothing is ended by the kernel (--stall).
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	go func() { _ = s.http.Serve(s.queue) }() // until Close
	return s, nil
}

// Take serves a connection, from its first request on; false when as many are
// served as may be. It doesn't wait.
func (s *Server) Take(c net.Conn) bool { return s.queue.put(c) }

// Close ends the connections that are at rest at once, and the others when
// they are, or with ctx.
func (s *Server) Close(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	_ = s.root.Close()
}

// handler answers requests: those for files here, those for routes, which come
// on a connection that asked for a file before, by giving it back.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		w := &answer{ResponseWriter: plain, status: http.StatusOK}
		defer func() {
			if !w.back {
				s.cfg.Answered(r.Context().Value(clientAddr{}).(net.Addr), r.Method, path, w.status)
			}
		}()
		routed, err := s.cfg.Routed(r.Host, path)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case routed:
			w.back = s.back(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "files are read with GET", http.StatusMethodNotAllowed)
		default:
			if strings.Count(r.Header.Get("Range"), ",") >= rangesMax {
				r.Header.Del("Range")
			}
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cache-Control", "no-cache") // ask each time, by the file's ETag or date
			http.FileServerFS(tagged{visible{s.root}, w.Header()}).ServeHTTP(w, r)
		}
	})
}

// clientAddr is the key of the client's address in a request's context.
type clientAddr struct{}

// answer remembers what was answered.
type answer struct {
	http.ResponseWriter
	status int
	back   bool // nothing was: the loop does
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// back gives the connection of a request back, with the request as a loop
// reads it; false when it has answered itself.
func (s *Server) back(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		http.Error(w, "the body is too long, or broken", http.StatusRequestEntityTooLarge)
		return false
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return true // the server is closing
	}
	behind, _ := rw.Peek(rw.Reader.Buffered()) // in memory, it can't fail
	p := c.(*placed)
	p.rest()
	p.leave()
	s.cfg.Back(p.Conn, slices.Concat(head(r, len(body)), body, behind))
	return true
}

// head writes the head of a request as it came, but for the order of its
// fields, and with its body in one piece.
func head(r *http.Request, body int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/%d.%d\r\nHost: %s\r\n", r.Method, r.RequestURI, r.ProtoMajor, r.ProtoMinor, r.Host)
	if body > 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", body)
	}
	r.Header.Del("Content-Length") // it may have come in chunks
	r.Header.Del("Expect")         // net/http has asked for the body
	_ = r.Header.Write(&b)         // a buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}
