package loop

import (
	"fmt"
	"strings"
	"testing"

	"tailcast/hub"
)

// TestStarts opens a stream behind ten records, v0 to v9, which memory holds:
// what comes first says where it began. One that could begin before the end is
// told once when it has caught up, whatever it had to catch up.
func TestStarts(t *testing.T) {
	const resync = `{"reason":"unknown","topics":{}}`
	const all = "v0 v1 v2 v3 v4 v5 v6 v7 v8 v9"
	latest, earliest, last := hub.Policy{}, hub.Policy{From: hub.FromEarliest}, hub.Policy{From: hub.FromLast, N: 2}
	for _, tt := range []struct {
		name, query, id string
		start           hub.Policy
		clients         bool   // may choose
		want            string // data of the events that come at once; {} is live's
	}{
		{"latest", "", "", latest, true, ""},
		{"earliest", "", "", earliest, false, all + " {}"},
		{"last two", "", "", last, false, "v8 v9 {}"},
		{"an id", "", "v1:0-6", earliest, false, "v7 v8 v9 {}"},
		{"an id at the end", "", "v1:0-9", earliest, false, "{}"},
		{"a foreign id", "", "nonsense", last, false, resync + " v8 v9 {}"},
		{"the client's", "?last=3", "", latest, true, "v7 v8 v9 {}"},
		{"the client's, of none", "?last=0", "", last, true, "{}"},
		{"the client's instead of the route's", "?last=3", "", earliest, true, "v7 v8 v9 {}"},
		{"an id before the client's", "?last=3", "v1:0-8", latest, true, "v9 {}"},
		{"a foreign id and the client's", "?last=3", "nonsense", latest, true, resync + " v7 v8 v9 {}"},
		{"the client's, unreadable", "?last=x", "", last, true, resync + " v8 v9 {}"},
		{"an id before the client's, unreadable", "?last=x", "v1:0-8", latest, true, "v9"},
		{"the client's where it has none", "?last=3", "", latest, false, ""},
		{"unreadable where it has none", "?last=x&since=y", "", last, false, "v8 v9 {}"},
	} {
		for _, minor := range []string{"1.1", "1.0"} {
			t.Run(tt.name+" by HTTP/"+minor, func(t *testing.T) {
				r := newRig(t, func(as *setup) { as.serving = Serving{Start: tt.start, ClientStart: tt.clients} })
				r.open(1)
				for i := range 10 {
					r.produce(0, fmt.Sprint("v", i))
				}
				p := r.dial()
				p.send(req("GET /events"+tt.query+" HTTP/"+minor, "Last-Event-ID: "+tt.id))
				r.settle()
				var got []string
				for _, e := range p.events() {
					if (e.Type == "live") != (e.Data == "{}") {
						t.Errorf("got %+v", e)
					}
					got = append(got, e.Data)
				}
				if got := strings.Join(got, " "); got != tt.want {
					t.Fatalf("got %q, want %q", got, tt.want)
				}
				r.produce(0, "v10")
				r.settle()
				if got := p.data(); got != "v10" {
					t.Errorf("then got %q", got)
				}
			})
		}
	}
}
