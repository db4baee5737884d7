package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"tailcast/bench/harness"
)

// barWidth is how many letters a progress bar has.
const barWidth = 24

// isTerminal reports whether people look at the file.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// progress draws one line on a terminal that says what a plan is doing.
type progress struct {
	out  *os.File
	done chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex // guards what follows
	now   harness.Progress
	began time.Time
	seen  int64
	at    time.Time
	rate  float64
}

// startProgress begins to draw.
func startProgress(out *os.File) *progress {
	p := &progress{out: out, done: make(chan struct{}), began: time.Now()}
	p.wg.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				return
			case now := <-tick.C:
				p.draw(now)
			}
		}
	})
	return p
}

// show takes what is done now. Safe from any goroutine.
func (p *progress) show(now harness.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.began = now, time.Now()
}

// draw draws the line anew.
func (p *progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Events != nil {
		seen := p.now.Events()
		if d := now.Sub(p.at).Seconds(); d > 0 && seen >= p.seen {
			p.rate = float64(seen-p.seen) / d
		}
		p.seen, p.at = seen, now
	}
	fmt.Fprintf(p.out, "\r\x1b[K[%d/%d] %s  %s%s  %.0f events/s", p.now.Run, p.now.Of, p.now.Target, p.now.Doing, bar(p.now.For, now.Sub(p.began)), p.rate)
}

// bar draws how much of a time has passed; nothing where it is not known.
func bar(of, passed time.Duration) string {
	if of <= 0 {
		return ""
	}
	full := min(barWidth, int(barWidth*passed/of))
	return fmt.Sprintf("  %s%s %s of %s", strings.Repeat("█", full), strings.Repeat("░", barWidth-full),
		passed.Round(time.Second), of.Round(time.Second))
}

// stop ends drawing and clears the line.
func (p *progress) stop() {
	close(p.done)
	p.wg.Wait()
	fmt.Fprint(p.out, "\r\x1b[K")
}
