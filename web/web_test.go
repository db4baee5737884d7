package web

import (
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, demo *Demo, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(demo).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
	return w
}

func TestHandler(t *testing.T) {
	demo := &Demo{Stream: "http://127.0.0.1:8080/events", Broker: "127.0.0.1:19092", Topic: "events"}
	for _, c := range []struct {
		demo        *Demo
		path        string
		code        int
		contentType string
		body        string // a part of it
	}{
		{nil, "/", 200, "text/html; charset=utf-8", "dashboard.js"},
		{nil, "/style.css", 200, "text/css; charset=utf-8", "--accent"},
		{nil, "/dashboard.js", 200, "text/javascript; charset=utf-8", `fetch("status"`},
		{nil, "/tailcast.js", 200, "text/javascript; charset=utf-8", "export class Tailcast"},
		{nil, "/icon.svg", 200, "image/svg+xml", "<svg"},
		{nil, "/demo", 404, "text/plain; charset=utf-8", ""},
		{nil, "/demo.json", 404, "text/plain; charset=utf-8", ""},
		{nil, "/demo.html", 404, "text/plain; charset=utf-8", ""},
		{nil, "/files/style.css", 404, "text/plain; charset=utf-8", ""},
		{nil, "/anything", 404, "text/plain; charset=utf-8", ""},
		{demo, "/", 200, "text/html; charset=utf-8", "dashboard.js"},
		{demo, "/demo", 200, "text/html; charset=utf-8", "Drop connection"},
		{demo, "/demo.json", 200, "application/json", `{"stream":"http://127.0.0.1:8080/events","broker":"127.0.0.1:19092","topic":"events"}`},
	} {
		w := get(t, c.demo, c.path)
		if w.Code != c.code || w.Header().Get("Content-Type") != c.contentType || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s (demo %t): got %d, %q, %.100q", c.path, c.demo != nil, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
}

func TestDemoIsFoundFromWhereThePageIs(t *testing.T) {
	for _, c := range []struct{ stream, host, want string }{
		{"http://127.0.0.1:8080/events", "gate.lan:9090", "http://127.0.0.1:8080/events"},
		{"http://0.0.0.0:8080/events", "gate.lan:9090", "http://gate.lan:8080/events"},
		{"http://[::]:8080/events", "192.168.1.5:9090", "http://192.168.1.5:8080/events"},
		{"http://:8080/events", "[fe80::1]:9090", "http://[fe80::1]:8080/events"},
		{"http://0.0.0.0/events", "gate.lan", "http://gate.lan/events"},
		{"http://0.0.0.0:8080/events?a=b", "gate.lan", "http://gate.lan:8080/events?a=b"},
	} {
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/demo.json", nil)
		req.Host = c.host
		w := httptest.NewRecorder()
		Handler(&Demo{Stream: c.stream}).ServeHTTP(w, req)
		var got Demo
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Stream != c.want {
			t.Errorf("%s from %s: got %q (%v), want %q", c.stream, c.host, got.Stream, err, c.want)
		}
	}
}

// The pages work offline, and under their own policy: what they load is beside
// them, and nothing is inline.
func TestPagesLoadNothingFromElsewhere(t *testing.T) {
	handler := Handler(&Demo{})
	refs := regexp.MustCompile(`(?:src|href)="([^"]*)"|from "\./([^"]*)"`)
	endpoints := map[string]bool{"status": true, "metrics": true, "healthz": true, "readyz": true, "debug/pprof/": true}
	inline := regexp.MustCompile(`(?i)<script(?:>| [^>]*>[^<])|<style|\sstyle=|\son[a-z]+=`)
	files, err := fs.Glob(embedded, "files/*")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(embedded, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range refs.FindAllStringSubmatch(string(text), -1) {
			ref := m[1] + m[2]
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/"+ref, nil))
			if w.Code != 200 && !endpoints[ref] {
				t.Errorf("%s refers to %s, which is not served", file, ref)
			}
		}
		if strings.HasSuffix(file, ".html") && inline.Match(text) {
			t.Errorf("%s has inline code or style: %q", file, inline.Find(text))
		}
		if strings.HasSuffix(file, ".css") && regexp.MustCompile(`@import|url\(`).Match(text) {
			t.Errorf("%s loads something", file)
		}
	}
}

func TestPolicy(t *testing.T) {
	for _, path := range []string{"/", "/demo", "/demo.js"} {
		p := get(t, &Demo{}, path).Header().Get("Content-Security-Policy")
		if !strings.Contains(p, "default-src 'none'") || !strings.Contains(p, "script-src 'self'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: %q", path, p)
		}
	}
}

// What docs/PROTOCOL.md shows of the example pages is in them, and so is tested
// with them.
func TestExamplesAreAsDocumented(t *testing.T) {
	lines := map[string]bool{"": true}
	for _, page := range []string{"examples/log.html", "examples/state.html"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	doc, err := os.ReadFile("../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```js\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 2 {
		t.Errorf("%d blocks of code, want one of each page", len(blocks))
	}
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			if !lines[strings.TrimSpace(line)] {
				t.Errorf("no example has the line %q", line)
			}
		}
	}
}

// The client is meant to be read and copied.
func TestClientIsSmall(t *testing.T) {
	text, err := fs.ReadFile(embedded, "files/tailcast.js")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n >= 190 {
		t.Errorf("tailcast.js has %d lines", n)
	}
}
