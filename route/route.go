// Package route decides what a request asks for: which route serves its path,
// which pages may read the answer (CORS), and where the stream should resume.
// Bytes to bytes: it knows neither sockets nor requests nor Kafka, and nothing
// here allocates while a request is served. Everything it builds is fixed
// afterwards and safe from any goroutine.
package route

import "fmt"

// Route is one path and what it serves.
type Route struct {
	Path string // exact and decoded: /a b, not /a%20b
	Feed int    // the caller's number for what the route serves
	CORS *CORS  // which pages may read it; nil: none but its own origin's
}

// Table finds the route of a path.
type Table struct {
	byPath map[string]*Route
}

// NewTable returns the table of routes. A path that occurs twice is an error.
func NewTable(routes []Route) (*Table, error) {
	t := &Table{byPath: make(map[string]*Route, len(routes))}
	for i := range routes {
		r := routes[i]
		if _, ok := t.byPath[r.Path]; ok {
			return nil, fmt.Errorf("path %q is routed twice", r.Path)
		}
		t.byPath[r.Path] = &r
	}
	return t, nil
}

// Lookup returns the route of a path that was percent-decoded once. It compares
// bytes and folds nothing: case, //, /./ and ;x make another path, so that a
// guard can't be shown one path and the router another. It borrows path.
func (t *Table) Lookup(path []byte) (*Route, bool) {
	r, ok := t.byPath[string(path)]
	return r, ok
}
