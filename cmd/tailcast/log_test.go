package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"tailcast/config"
)

// gate is a writer that takes nothing until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(b)
}

// Nobody waits for a log that takes nothing: it keeps the first lines, in their
// order, and says how many it lost.
func TestLogNeverWaits(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	log, closeLog := openLog(&config.Config{LogFormat: config.LogText}, g)
	const more = 10
	for i := range logLinesMax + more {
		log.Info("line", slog.Int("n", i))
	}
	close(g.open)
	closeLog()
	lines := strings.Split(strings.TrimSuffix(g.text.String(), "\n"), "\n")
	last := lines[len(lines)-1]
	kept := len(lines) - 1
	for i, line := range lines[:kept] {
		if want := fmt.Sprint("msg=line n=", i); !strings.HasSuffix(line, want) {
			t.Fatalf("line %d is %q, want %s", i, line, want)
		}
	}
	if kept < logLinesMax || !strings.HasSuffix(last, fmt.Sprint("count=", logLinesMax+more-kept)) {
		t.Errorf("%d lines, and then %q", kept, last)
	}
}

// The process ends though its last lines can't be written.
func TestLogEndsWithoutItsReader(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	log, closeLog := openLog(&config.Config{LogFormat: config.LogJSON}, g)
	log.Info("unheard")
	closeLog()
	close(g.open)
}
