//go:build clients

package apptest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/internal/testkit"
)

// shelf is a topic as its own reader has it, which knows nothing of gateways:
// every record it ever held, and the state that they leave.
type shelf struct {
	topic string
	tag   string // of ids, as docs/PROTOCOL.md says it is made

	mu    sync.Mutex
	log   map[int32][]*kgo.Record
	items map[string]string
}

// shelve reads a topic from its beginning until the test ends.
func (b *broker) shelve(topic string) *shelf {
	b.t.Helper()
	topics, err := b.admin().ListTopics(within(b.t), topic)
	if err != nil {
		b.t.Fatal(err)
	}
	s := &shelf{topic: topic, tag: tagOf(topic, topics[topic].ID), log: map[int32][]*kgo.Record{}, items: map[string]string{}}
	starts := map[int32]kgo.Offset{}
	for p := range topics[topic].Partitions {
		starts[p] = kgo.NewOffset().AtStart()
	}
	cl := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	b.t.Cleanup(func() { cancel(); reading.Wait() })
	reading.Go(func() {
		for ctx.Err() == nil {
			s.take(cl.PollFetches(ctx))
		}
	})
	return s
}

// tagOf is the tag of a topic in ids.
func tagOf(name string, id [16]byte) string {
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return "~" + hash([]byte(name))[:2] + hash(id[:])[:3]
}

func (s *shelf) take(fetches kgo.Fetches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		s.log[r.Partition] = append(s.log[r.Partition], r)
		if r.Value == nil {
			delete(s.items, string(r.Key))
		} else {
			s.items[string(r.Key)] = string(r.Value)
		}
	})
}

// read waits until all that was written is read, and returns the log.
func (s *shelf) read(b *broker) map[int32][]*kgo.Record {
	b.t.Helper()
	ends, err := b.admin().ListEndOffsets(within(b.t), s.topic)
	if err != nil {
		b.t.Fatal(err)
	}
	log := map[int32][]*kgo.Record{}
	testkit.Eventually(b.t, patience, "the end of "+s.topic, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		log = maps.Clone(s.log)
		for p, end := range ends[s.topic] {
			if n := len(log[p]); end.Offset > 0 && (n == 0 || log[p][n-1].Offset < end.Offset-1) {
				return false
			}
		}
		return true
	})
	return log
}

// state is what the log leaves of each key.
func (s *shelf) state() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.items)
}

// id is where the state belongs, as an event id. mu must be held.
func (s *shelf) id() string {
	var pairs []string
	for _, p := range slices.Sorted(maps.Keys(s.log)) {
		pairs = append(pairs, fmt.Sprintf("%d-%d", p, s.log[p][len(s.log[p])-1].Offset))
	}
	return "v1:" + strings.Join(pairs, ".") + s.tag
}

// site is what the example pages are part of: it serves them, and the state of
// a topic.
type site struct {
	*httptest.Server

	mu      sync.Mutex
	shelf   *shelf
	fetched int
}

func newSite(t *testing.T, first *shelf) *site {
	s := &site{shelf: first}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(filepath.Join("..", "web", "examples"))))
	mux.HandleFunc("/state.json", s.answer)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *site) answer(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched++
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"id": s.shelf.id(), "items": s.shelf.items})
}

// serve has the site answer by another shelf.
func (s *site) serve(next *shelf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shelf = next
}

// fetches is how often the state was asked for.
func (s *site) fetches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched
}
