package main

import (
	"bytes"
	"io"
	"log/slog"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"tailcast/config"
)

const (
	// logLinesMax bounds the lines that wait for a terminal, a pipe or a disk:
	// some 200 KB.
	logLinesMax = 1024
	// logEndMax bounds the wait for them when the process ends.
	logEndMax = time.Second
)

// openLog returns a log to stderr, in the configured form, that never waits for
// whoever reads it: locks are held where something is logged, so a pipe that
// nobody empties would stop the streams. What doesn't fit is dropped and
// counted. A reader that goes away is no reason to end. The log is of no use
// after close, which writes what waits.
func openLog(cfg *config.Config, stderr io.Writer) (log *slog.Logger, closeLog func()) {
	signal.Ignore(syscall.SIGPIPE)
	q := newLogQueue()
	go q.write(stderr, newLog(cfg, stderr))
	return newLog(cfg, q), q.close
}

// newLog writes to w in the configured form.
func newLog(cfg *config.Config, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// logQueue is the lines that are still to be written. Safe from any goroutine.
type logQueue struct {
	lines chan []byte
	lost  atomic.Uint64
	stop  chan struct{} // closed by close
	ended chan struct{} // closed when write has returned
}

func newLogQueue() *logQueue {
	return &logQueue{lines: make(chan []byte, logLinesMax), stop: make(chan struct{}), ended: make(chan struct{})}
}

// Write implements io.Writer for one line a call. It never fails.
func (q *logQueue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.lost.Add(1)
	}
	return len(line), nil
}

// write writes to out until close; say writes to out as well.
func (q *logQueue) write(out io.Writer, say *slog.Logger) {
	defer close(q.ended)
	for {
		select {
		case line := <-q.lines:
			_, _ = out.Write(line) // there is nowhere to say it
			continue
		default:
		}
		if n := q.lost.Swap(0); n > 0 {
			say.Warn("log lines were lost: the log is too slow", slog.Uint64("count", n))
		}
		select {
		case line := <-q.lines:
			_, _ = out.Write(line)
		case <-q.stop:
			if len(q.lines) == 0 {
				return
			}
		}
	}
}

// close ends write when what waits is written, and waits for that a while.
func (q *logQueue) close() {
	close(q.stop)
	select {
	case <-q.ended:
	case <-time.After(logEndMax):
	}
}
