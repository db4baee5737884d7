package loop

import (
	"fmt"
	"strings"
	"testing"
)

// TestResumeSources opens a stream behind ten records, v0 to v9, with an id in
// several places: what comes first says which one was taken.
func TestResumeSources(t *testing.T) {
	const resync = `{"reason":"unknown","topics":{}}`
	for _, tt := range []struct {
		name, target string
		fields       []string
		want         string // data of the events that come at once
	}{
		{"none", "/events", nil, ""},
		{"header", "/events", []string{"Last-Event-ID: v1:0-7"}, "v8 v9"},
		{"header in another case", "/events", []string{"lAST-eVENT-iD:v1:0-7"}, "v8 v9"},
		{"empty header", "/events", []string{"Last-Event-ID:"}, ""},
		{"two headers", "/events", []string{"Last-Event-ID: v1:0-7", "Last-Event-ID: v1:0-7"}, resync},
		{"garbage", "/events", []string{"Last-Event-ID: \xff\xfe'--"}, resync},
		{"of another format", "/events", []string{"Last-Event-ID: 12"}, resync},
		{"too long", "/events", []string{"Last-Event-ID: v1:" + strings.Repeat("0", 9000)}, resync},
		{"of another topic", "/events", []string{"Last-Event-ID: v1:0-7~zz"}, resync},
		{"at the end", "/events", []string{"Last-Event-ID: v1:0-9"}, ""},
		{"from the beginning", "/events", []string{"Last-Event-ID: v1:"}, "v0 v1 v2 v3 v4 v5 v6 v7 v8 v9"},
		{"query", "/events?lastEventId=v1:0-8", nil, "v9"},
		{"query, snake case", "/events?a=b&last_event_id=v1%3a0-8", nil, "v9"},
		{"query of a polyfill", "/events?evs_last_event_id=v1%3A0-8&x", nil, "v9"},
		{"first name wins", "/events?last_event_id=v1:0-1&lastEventId=v1:0-8", nil, "v9"},
		{"header wins", "/events?lastEventId=v1:0-1", []string{"Last-Event-ID: v1:0-8"}, "v9"},
		{"query twice", "/events?lastEventId=v1:0-8&lastEventId=v1:0-8", nil, resync},
		{"query with a broken escape", "/events?lastEventId=v1%3", nil, resync},
		{"empty query", "/events?lastEventId=", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.open(1)
			for i := range 10 {
				r.produce(0, fmt.Sprint("v", i))
			}
			p := r.dial().get(tt.target, tt.fields...)
			if got := p.data(); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if id := p.stream.Parser.LastEventID(); !strings.HasPrefix(id, "v1:0-9~") {
				t.Errorf("stands at %q", id)
			}
			r.produce(0, "v10")
			r.settle()
			if got := p.data(); got != "v10" {
				t.Errorf("then got %q", got)
			}
		})
	}
}

// TestResumeOverSegments resumes behind by several segments of the log, more
// than one turn writes, with records that are still being made.
func TestResumeOverSegments(t *testing.T) {
	s := start(t, nil)
	s.open(1)
	value := strings.Repeat("x", 1000)
	const behind = 4 * pumpBytesMax / 1000
	for i := range behind {
		s.produce(0, fmt.Sprint(i, " ", value))
	}
	c := s.get("/events", "Last-Event-ID: v1:")
	c.expect("retry: ")
	for i := range 2 * behind {
		if i >= behind/2 && i < behind*3/2 {
			s.produce(0, fmt.Sprint(i+behind/2, " ", value))
		}
		c.expect(fmt.Sprint("data: ", i, " "))
	}
	if s.feeds[0].Snapshot().LogBytes < 4*pumpBytesMax {
		t.Fatal("the log is too small for this test")
	}
}

// TestResumeBehindTheLog resumes from what the log no longer holds.
func TestResumeBehindTheLog(t *testing.T) {
	r := newRig(t, func(as *setup) { as.hub.LogBytes = 512 << 10 })
	r.open(1)
	value := strings.Repeat("x", 10_000)
	for range 200 {
		r.produce(0, value)
	}
	p := r.dial().get("/events", "Last-Event-ID: v1:0-3")
	if got := p.data(); got != `{"reason":"unknown","topics":{}}` {
		t.Errorf("got %.100q", got)
	}
	p = r.dial().get("/events", "Last-Event-ID: v1:0-197")
	if got := p.events(); len(got) != 2 {
		t.Errorf("got %d events, want 2", len(got))
	}
}
