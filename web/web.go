// Package web holds the pages a browser gets from tailcast itself: the
// operator's dashboard, the demo, and tailcast.js, the small client that other
// pages may copy. Everything is embedded and loads nothing from elsewhere, so
// the pages work offline; there is no build step. It serves files: what they
// show comes from the admin room's /status and from the streams.
package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"
)

//go:embed files
var embedded embed.FS

// policy is the Content-Security-Policy of the pages. Scripts and styles are
// ours alone, so text from a record can't become code. The demo may connect
// anywhere, because ?stream= names any gateway.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src *; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Demo is what the demo page has to know; it reads it from /demo.json.
type Demo struct {
	// Stream is the URL of the stream to show. A host that means "every
	// address", such as 0.0.0.0 or none at all, becomes the host by which the
	// browser reached the page.
	Stream string `json:"stream"`
	Broker string `json:"broker"` // host:port of a Kafka listener, for the kcat line
	Topic  string `json:"topic"`
}

// Handler serves the dashboard at /, the files beside it, and, when demo is
// not nil, the demo at /demo. It expects a caller that lets only GET and HEAD
// pass.
func Handler(demo *Demo) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/{$}", page("dashboard.html"))
	for _, name := range []string{"dashboard.js", "demo.js", "icon.svg", "spark.js", "style.css", "tailcast.js", "tally.js"} {
		mux.Handle("/"+name, page(name))
	}
	if demo != nil {
		mux.Handle("/demo", page("demo.html"))
		mux.HandleFunc("/demo.json", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(demo.seenFrom(r.Host)) // strings encode; a reader that is gone is no news
		})
	}
	return mux
}

// page serves one embedded file. It panics if there is no such file.
func page(name string) http.Handler {
	body, err := fs.ReadFile(embedded, "files/"+name)
	if err != nil {
		panic("BUG: web: " + err.Error())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})
}

// seenFrom is d for a browser that reached the page by host, which may have a
// port.
func (d Demo) seenFrom(host string) Demo {
	u, err := url.Parse(d.Stream)
	if err != nil || !everyAddress(u.Hostname()) {
		return d
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host // without a port
	}
	if u.Port() == "" {
		u.Host = name
	} else {
		u.Host = net.JoinHostPort(name, u.Port())
	}
	d.Stream = u.String()
	return d
}

// everyAddress says whether a listener of this host is reached by any of the
// machine's names.
func everyAddress(host string) bool {
	return host == "" || net.ParseIP(host).IsUnspecified()
}
