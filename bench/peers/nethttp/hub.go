package main

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// queueMax bounds the events that wait for one client: some seconds of a
	// busy topic, at a slice header each.
	queueMax = 64
	// heartbeat is how long a stream may be silent: well under the minute after
	// which proxies give up.
	heartbeat = 15 * time.Second
)

// hub knows the clients. Safe from any goroutine.
type hub struct {
	mu      sync.RWMutex
	clients map[chan []byte]struct{} // a client's queue; closed when it is too slow
}

func newHub() *hub { return &hub{clients: map[chan []byte]struct{}{}} }

// broadcast queues event for every client, and drops those whose queue is full.
// It keeps event, which must not change any more.
func (h *hub) broadcast(event []byte) {
	var slow []chan []byte
	h.mu.RLock()
	for queue := range h.clients {
		select {
		case queue <- event:
		default:
			slow = append(slow, queue)
		}
	}
	h.mu.RUnlock()
	for _, queue := range slow {
		h.remove(queue)
	}
}

func (h *hub) add() chan []byte {
	queue := make(chan []byte, queueMax)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients[queue] = struct{}{}
	return queue
}

// remove forgets a client and closes its queue, once.
func (h *hub) remove(queue chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.clients[queue]; ok {
		delete(h.clients, queue)
		close(queue)
	}
}

// serve is one client's stream.
func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	queue := h.add()
	defer h.remove(queue)
	if err := flush.Flush(); err != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if _, err := w.Write([]byte(":\n\n")); err != nil {
				return
			}
		case event, ok := <-queue:
			if !ok || !write(w, event, queue) {
				return
			}
		}
		if err := flush.Flush(); err != nil {
			return
		}
	}
}

// write writes event and what else waits, so that they share a flush. It
// reports whether the stream goes on.
func write(w http.ResponseWriter, event []byte, queue <-chan []byte) bool {
	for {
		if _, err := w.Write(event); err != nil {
			return false
		}
		select {
		case next, ok := <-queue:
			if !ok {
				return false
			}
			event = next
		default:
			return true
		}
	}
}

// encode makes the event of a record: its place as the id, its value as data.
func encode(r *kgo.Record) []byte {
	b := make([]byte, 0, len(r.Value)+48)
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, int64(r.Partition), 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, r.Offset, 10)
	for line := range bytes.SplitSeq(r.Value, []byte("\n")) {
		b = append(b, "\ndata: "...)
		b = append(b, line...)
	}
	return append(b, "\n\n"...)
}
