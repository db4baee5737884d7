package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// stuckAfter is how long a loop may go without ending a turn before /healthz
// fails and an orchestrator restarts the process. Idle loops turn every
// second and passes are sliced into milliseconds; at 30 s its streams have
// missed two heartbeats and only a restart helps them.
const stuckAfter = 30 * time.Second

// stuck says which loops have stopped turning, one line each, or nil.
func stuck(loops []LoopStats) error {
	var errs []error
	for i, l := range loops {
		if l.SinceTurn >= stuckAfter {
			errs = append(errs, fmt.Errorf("loop %d: no turn for %v", i, l.SinceTurn.Round(time.Second)))
		}
	}
	return errors.Join(errs...)
}

// serveProbe answers a probe: 200 and ok, or 503 and the reasons, one a line.
func serveProbe(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "ok"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = err.Error()
	}
	_, _ = io.WriteString(w, text+"\n") // a prober that is gone is no news
}
