//go:build browser

package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// guarded is a stream that needs a token and challenges its client at once.
type guarded struct {
	answer int // to the first answer; those after it get 204

	mu    sync.Mutex
	seen  []string      // requests, in short
	renew chan struct{} // by an answer
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	note := func(format string, args ...any) int {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen = append(g.seen, fmt.Sprintf(format, args...))
		return len(g.seen)
	}
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Access-Control-Allow-Methods", "POST")
		w.Header().Set("Access-Control-Allow-Headers", "authorization, content-type, x-challenge")
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		n := note("answer %s %s %s %q", r.Header.Get("X-Challenge"), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.URL.RawQuery)
		status := http.StatusNoContent
		if n == 2 {
			status = g.answer
		}
		w.WriteHeader(status)
		if status == http.StatusNoContent {
			g.renew <- struct{}{}
		}
	default:
		token := r.URL.Query().Get("access_token")
		n := note("stream %s %s", token, r.URL.Query().Get("lastEventId"))
		if token == "t0" {
			http.Error(w, "expired", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "retry: 100\nid: v1:0-%d\n\n", n)
		fmt.Fprintf(w, "event: challenge\ndata: {\"method\":\"POST\",\"headers\":{\"content-type\":\"application/x-challenge-response\",\"x-challenge\":\"n.%d\"}}\n\n", n)
		w.(http.Flusher).Flush()
		select {
		case <-g.renew:
			fmt.Fprintf(w, "id: v1:0-%d0\ndata: renewed\n\n", n)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	}
}

// The client answers challenges with the page's next token, opens a new stream
// where the server says so, and asks for another token when one is refused.
func TestClientRenewsItsToken(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer int
		first  int // number of the first token
		want   string
	}{
		{"renewed", 204, 1, `stream t1 |answer n.1 application/x-challenge-response Bearer t2 ""`},
		{"on another node", 409, 1, `stream t1 |answer n.1 application/x-challenge-response Bearer t2 ""|stream t3 v1:0-1|answer n.3 application/x-challenge-response Bearer t4 ""`},
		{"refused first", 204, 0, `stream t0 |stream t1 |answer n.2 application/x-challenge-response Bearer t2 ""`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := &guarded{answer: tc.answer, renew: make(chan struct{}, 1)}
			s := httptest.NewServer(g)
			defer s.Close()
			defer s.CloseClientConnections()
			got := client(t, &gateway{URL: s.URL + "/events"}, fmt.Sprintf(`
				let n = %d;
				return await new Promise((done) => {
					const stream = new Tailcast(url, {
						getToken: async () => "t" + n++,
						onEvent: ({ data }) => { if (%d !== 409 || n === 5) { stream.close(); done(data); } },
					});
				});`, tc.first, tc.answer))
			g.mu.Lock()
			defer g.mu.Unlock()
			if seen := strings.Join(g.seen, "|"); got != "renewed" || seen != tc.want {
				t.Errorf("got %q after %s\nwant %s", got, seen, tc.want)
			}
		})
	}
}
