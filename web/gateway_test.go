//go:build browser

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// gateway is a stream of two partitions that does what a test tells it to,
// wrong things included. It resumes after any id that it has sent.
type gateway struct {
	URL string

	mu     sync.Mutex
	more   sync.Cond // events grew, cut changed
	events []event
	next   [2]int64 // next offset of each partition
	seq    [2]int64 // next number of the sample producer
	cut    int      // generation: raising it ends the open streams
	open   int      // streams now
	refuse int      // answers that will be 502
	asked  []string // ids that streams came with, "" for none
}

type event struct{ id, name, data string }

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{next: [2]int64{5812, 40}}
	g.more.L = &g.mu
	s := httptest.NewServer(g)
	g.URL = s.URL + "/events"
	t.Cleanup(func() {
		g.drop(0)
		s.CloseClientConnections()
		s.Close()
	})
	return g
}

// id is the position after everything so far. mu must be held.
func (g *gateway) id() string {
	return fmt.Sprintf("v1:0-%d.1-%d~ab3f9", g.next[0]-1, g.next[1]-1)
}

// produce appends n sample records, turn by turn to each partition.
func (g *gateway) produce(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for range n {
		p := (g.next[0] + g.next[1]) % 2
		data := fmt.Sprintf(`{"p":%d,"seq":%d,"ts":%d,"user":"ada","page":"/checkout","ms":%d}`, p, g.seq[p], time.Now().UnixMilli(), 17+g.next[p]%40)
		g.next[p]++
		g.seq[p]++
		g.events = append(g.events, event{g.id(), "", data})
	}
	g.more.Broadcast()
}

// lose has n records of partition 0 pass without a word.
func (g *gateway) lose(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next[0] += n
	g.seq[0] += n
}

// repeat sends the last n events again.
func (g *gateway) repeat(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, slices.Clone(g.events[len(g.events)-n:])...)
	g.more.Broadcast()
}

// say sends an event of its own. move is how many offsets of partition 1 it passes.
func (g *gateway) say(name, data string, move int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next[1] += move
	g.events = append(g.events, event{g.id(), name, data})
	g.more.Broadcast()
}

// drop ends every open stream and answers 502 to the next refuse requests.
func (g *gateway) drop(refuse int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut++
	g.refuse = refuse
	g.more.Broadcast()
}

// waitOpen waits until n streams are open.
func (g *gateway) waitOpen(p tab, n int) {
	p.Helper()
	stop := context.AfterFunc(p.ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.more.Broadcast()
	})
	defer stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.open != n {
		if p.ctx.Err() != nil {
			p.Fatalf("%d streams are open, not %d", g.open, n)
		}
		g.more.Wait()
	}
}

func (g *gateway) requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("lastEventId")
	}
	g.asked = append(g.asked, id)
	if g.refuse > 0 {
		g.refuse--
		http.Error(w, "a proxy's error", http.StatusBadGateway)
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Type", "text/event-stream")
	pos, now := len(g.events), g.id()
	if id != "" {
		for i, e := range g.events {
			if e.id == id {
				pos, now = i+1, id
			}
		}
	}
	fmt.Fprintf(w, "retry: 100\nid: %s\n\n", now)
	stop := r.Context().Done()
	go func() { // a client that goes wakes us
		<-stop
		g.mu.Lock()
		defer g.mu.Unlock()
		g.more.Broadcast()
	}()
	g.open++
	g.more.Broadcast()
	defer func() { g.open--; g.more.Broadcast() }()
	for cut := g.cut; cut == g.cut && r.Context().Err() == nil; g.more.Wait() {
		for ; pos < len(g.events); pos++ {
			e := g.events[pos]
			fmt.Fprintf(w, "id: %s\n", e.id)
			if e.name != "" {
				fmt.Fprintf(w, "event: %s\n", e.name)
			}
			fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(e.data, "\n", "\ndata: "))
		}
		w.(http.Flusher).Flush()
	}
}
