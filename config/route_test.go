package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/route"
)

func TestParsePath(t *testing.T) {
	for _, tc := range []struct{ path, want string }{ // want: the end of the error; empty: taken
		{"/", ""},
		{"/events", ""},
		{"/events/", ""},
		{"/a=b,c;d:e@f", ""},
		{"/a b/é", ""},
		{"/..a/.b/c..", ""},
		{"/" + strings.Repeat("x", 1023), ""},
		{"", "it must begin with /"},
		{"events", "it must begin with /"},
		{"*", "it must begin with /"},
		{"/" + strings.Repeat("x", 1024), "it is longer than 1024 bytes"},
		{"/\xff", "it is not UTF-8"},
		{"/a\x00", "it holds control characters"},
		{"/a\nb", "it holds control characters"},
		{"/\u0085", "it holds control characters"},
		{"/a?b", "it ends before ? and #"},
		{"/a#b", "it ends before ? and #"},
		{"/{a}", ""},
		{"/a/{b}/c/{d}/", ""},
		{"/a}", "a}: a parameter is a whole segment, as in /users/{user}"},
		{"/{a}/{a}", "it has parameter {a} twice"},
		{"/a/*", "paths are exact, without wildcards"},
		{`/a\b`, "requests with a backslash are refused"},
		{"/a%20b", "write it decoded, without %"},
		{"//", "it has an empty segment"},
		{"/a//b", "it has an empty segment"},
		{"/.", "clients take . and .. segments away"},
		{"/..", "clients take . and .. segments away"},
		{"/a/../b", "clients take . and .. segments away"},
		{"/a/./b", "clients take . and .. segments away"},
		{"/a/..", "clients take . and .. segments away"},
	} {
		_, err := parsePath(tc.path)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("parsePath(%q): %v", tc.path, err)
		case tc.want != "" && (err == nil || !strings.HasSuffix(err.Error(), " is not a path: "+tc.want)):
			t.Errorf("parsePath(%q): %v, want %q", tc.path, err, tc.want)
		}
	}
}

func TestParseTopic(t *testing.T) {
	for _, tc := range []struct {
		topic string
		ok    bool
	}{
		{"events", true},
		{"a.b_c-D9", true},
		{"...", true},
		{"__consumer_offsets", true},
		{strings.Repeat("x", 249), true},
		{strings.Repeat("x", 250), false},
		{"", false},
		{".", false},
		{"..", false},
		{"a b", false},
		{"a/b", false},
		{"a,b", false},
		{"é", false},
		{"{t}", true},
		{"{t", false},
		{"a\n", false},
	} {
		if _, err := parseTopic(tc.topic); (err == nil) != tc.ok {
			t.Errorf("parseTopic(%q): %v", tc.topic, err)
		}
	}
}

func TestRouteFlag(t *testing.T) {
	for _, tc := range []struct{ text, path, topic string }{
		{"/events=events", "/events", "events"},
		{"/=t", "/", "t"},
		{"/a=b=c", "/a=b", "c"},
		{"/==c", "/=", "c"},
		{"/a b=c", "/a b", "c"},
	} {
		want := newRoute()
		want.Path, want.Topics = tc.path, []string{tc.topic}
		if got, err := parseRoute(tc.text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parseRoute(%q) = %+v, %v", tc.text, got, err)
		}
	}
}

func term(kind TermKind, name, text string) FilterTerm {
	value, err := route.ParseTemplate(text)
	if err != nil {
		panic(err)
	}
	return FilterTerm{kind, name, value}
}

func TestRoutesOfTheFile(t *testing.T) {
	plain := Route{Path: "/a", Topics: []string{"a"}, Start: Start{From: "latest"}, Resync: "continue", Format: frame.Format{Binary: "replace", Delete: "event", MaxEvent: 1 << 20}}
	with := func(change func(*Route)) Route {
		r := plain
		change(&r)
		return r
	}
	for _, tc := range []struct {
		route string
		want  Route
	}{
		{`{path: /a, topic: a}`, plain},
		{`{path: "/a", topics: [a]}`, plain},
		{`{path: /a, topics: a}`, plain},
		{`{path: /a, topics: [a, c, b]}`, with(func(r *Route) { r.Topics = []string{"a", "c", "b"} })},
		{`{path: /a, host: A.test., topic: a}`, with(func(r *Route) { r.Host = "a.test" })},
		{`{path: "/a/{b}", topic: "t-{b}", allow: [t-1, "t-x*"]}`, with(func(r *Route) { r.Path, r.Topics, r.Allow = "/a/{b}", []string{"t-{b}"}, []string{"t-1", "t-x*"} })},
		{`{path: /a, topic: a, max_streams: 500}`, with(func(r *Route) { r.MaxStreams = 500 })},
		{`{path: "/a/{b}", topic: a}`, with(func(r *Route) { r.Path = "/a/{b}" })},
		{`{path: /a, topic: a, start: latest, format: raw, binary: replace, delete: event}`, plain},
		{`{path: /a, topic: a, start: earliest, client_start: true}`, with(func(r *Route) { r.Start.From, r.ClientStart = StartEarliest, true })},
		{`{path: /a, topic: a, start: 2026-01-02T03:04:05Z}`, with(func(r *Route) { r.Start = Start{From: StartTime, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} })},
		{`{path: /a, topic: a, start: "2026-01-02T03:04:05.5Z"}`, with(func(r *Route) {
			r.Start = Start{From: StartTime, Time: time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC)}
		})},
		{`{path: /a, topic: a, start: snapshot}`, with(func(r *Route) { r.Start.From = StartSnapshot })},
		{`{path: /a, topic: a, start: 1h30m}`, with(func(r *Route) { r.Start = Start{From: StartAgo, Ago: 90 * time.Minute} })},
		{`{path: /a, topic: a, start: {last: 100}}`, with(func(r *Route) { r.Start = Start{From: StartLast, Last: 100} })},
		{`{path: /a, topic: a, filter: [{key: "{user}"}]}`, with(func(r *Route) { r.Filter = []FilterItem{{term(TermKey, "", "{user}")}} })},
		{`{path: /a, topic: a, filter: [{key: 7, headers: {b: x, c: "y{z}"}}, {json: {d.e: true}}]}`, with(func(r *Route) {
			r.Filter = []FilterItem{
				{term(TermKey, "", "7"), term(TermHeader, "b", "x"), term(TermHeader, "c", "y{z}")},
				{term(TermJSON, "d.e", "true")},
			}
		})},
		{`{path: /a, topic: 007}`, with(func(r *Route) { r.Topics = []string{"007"} })},
		{`{path: /a, topic: true}`, with(func(r *Route) { r.Topics = []string{"true"} })},
		{`{path: "/a,b", topic: a}`, with(func(r *Route) { r.Path = "/a,b" })},
		{`{path: /a, topic: a, format: envelope}`, with(func(r *Route) { r.Format.Envelope = true })},
		{`{path: /a, topic: a, id: position}`, plain},
		{`{path: /a, topic: a, id: key+position}`, with(func(r *Route) { r.Format.KeyID = true })},
		{`{path: /a, topic: a, binary: base64}`, with(func(r *Route) { r.Format.Binary = frame.Base64 })},
		{`{path: /a, topic: a, binary: drop}`, with(func(r *Route) { r.Format.Binary = frame.Drop })},
		{`{path: /a, topic: a, delete: skip}`, with(func(r *Route) { r.Format.Delete = frame.DeleteSkip })},
		{`{path: /a, topic: a, event: {fixed: tick}}`, with(func(r *Route) { r.Format.Event.Fixed = "tick" })},
		{`{path: /a, topic: a, event: {header: ce_type}}`, with(func(r *Route) { r.Format.Event.Header = "ce_type" })},
		{`{path: /a, topic: a, event: {json: meta.type}}`, with(func(r *Route) { r.Format.Event.JSON = "meta.type" })},
		{`{path: /a, topic: a, cors: {origins: "*"}}`, with(func(r *Route) { r.CORS.Origins = []string{"*"} })},
		{`{path: /a, topic: a, cors: {origins: [https://a.test, "null"]}}`, with(func(r *Route) { r.CORS.Origins = []string{"https://a.test", "null"} })},
		{`{path: /a, topic: a, cors: {credentials: true, origins: ["https://*.a.test"]}}`, with(func(r *Route) { r.CORS = CORS{[]string{"https://*.a.test"}, true} })},
	} {
		c := mustLoad(t, Serve, "", "", "routes:\n  - "+tc.route+"\n")
		if len(c.Routes) != 1 || !reflect.DeepEqual(c.Routes[0], tc.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.route, c.Routes, tc.want)
		}
	}
}

// Files come from editors of every kind.
func TestForms(t *testing.T) {
	const want = 1 << 20
	for _, file := range []string{
		"max-lag: 1MiB",
		"max-lag:   1MiB   # a comment\n\n",
		"max-lag: '1MiB'\n",
		"\"max-lag\": \"1MiB\"\n",
		"max-lag: 1048576\n",
		"{max-lag: 1MiB}\n",
		"---\nmax-lag: 1MiB\n",
		"---\nmax-lag: 1MiB\n...\n",
		"%YAML 1.2\n---\nmax-lag: 1MiB\n",
		"max-lag : 1MiB\n",
		"max-lag:\t1MiB\n",
		"max-lag: 1MiB\r\nloops: 1\r\n",
		"\ufeffmax-lag: 1MiB\n",
	} {
		if c := mustLoad(t, Serve, "--route /a=a", "", file); c.MaxLag != want {
			t.Errorf("%q: got %v", file, c.MaxLag)
		}
	}
	for _, file := range []string{"\n", "# nothing\n", "---\n", "{}\n", "routes: []\n"} {
		if c := mustLoad(t, Serve, "--route /a=a", "", file); c.MaxLag != 4<<20 || len(c.Routes) != 1 {
			t.Errorf("%q: got %+v", file, c)
		}
	}
}
