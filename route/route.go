// Package route decides what a request asks for: which route serves its path,
// which pages may read the answer (CORS), where the stream should resume, and
// what the templates of a route stand for. Bytes to bytes: it knows neither
// sockets nor requests nor Kafka, and nothing here allocates while a request is
// served but the texts of templates. Everything it builds is fixed afterwards
// and safe from any goroutine.
package route

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Route is one path and what it serves.
type Route struct {
	Host string // lower case, without port, IPv6 in its brackets; empty: any
	Path string // decoded: /a b, not /a%20b; segments may be {parameters}
	Feed int    // the caller's number for what the route serves
	CORS *CORS  // which pages may read it; nil: none but its own origin's

	names []string // of Path's parameters, in their order
}

// Table finds the route of a request.
type Table struct {
	hosts map[string]*paths
	any   *paths // of routes without a host
}

// paths are the routes of one host.
type paths struct {
	exact map[string]*Route
	tree  node // of those with parameters
}

// node is the routes whose paths begin alike. Segments stand between slashes.
type node struct {
	literal map[string]*node
	param   *node
	route   *Route // whose path ends here; nil: none
}

// hostBytesMax bounds a host's name (RFC 1035 2.3.4: 253, and two for a dot).
const hostBytesMax = 255

// NewTable returns the table of routes, by Add.
func NewTable(routes []Route) (*Table, error) {
	t := &Table{hosts: map[string]*paths{}, any: &paths{exact: map[string]*Route{}}}
	for _, r := range routes {
		if err := t.Add(r); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Add adds a route before the table is used. A route that some request could
// mean as well as another, neither path being the more exact one, is an error.
func (t *Table) Add(r Route) error {
	at := t.any
	if r.Host != "" {
		if at = t.hosts[r.Host]; at == nil {
			at = &paths{exact: map[string]*Route{}}
			t.hosts[r.Host] = at
		}
	}
	return at.add(&r)
}

func (ps *paths) add(r *Route) error {
	names, err := PathParams(r.Path)
	if err != nil {
		return fmt.Errorf("path %q: %w", r.Path, err)
	}
	if len(names) == 0 {
		if ps.exact[r.Path] != nil {
			return fmt.Errorf("path %q is routed twice", r.Path)
		}
		ps.exact[r.Path] = r
		return nil
	}
	r.names = names
	segments := strings.Split(r.Path[1:], "/")
	if other := ps.tree.rival(segments, false, false); other != nil {
		return fmt.Errorf("paths %q and %q would serve the same requests", other.Path, r.Path)
	}
	at := &ps.tree
	for _, s := range segments {
		at = at.child(s)
	}
	at.route = r
	return nil
}

// child returns the node behind a segment, made on first use.
func (n *node) child(segment string) *node {
	if isParam(segment) {
		if n.param == nil {
			n.param = &node{}
		}
		return n.param
	}
	if n.literal == nil {
		n.literal = map[string]*node{}
	}
	if n.literal[segment] == nil {
		n.literal[segment] = &node{}
	}
	return n.literal[segment]
}

// rival returns a route that some request means as well as segments, neither
// being the more exact: wider says that segments had a parameter where the other
// was literal, narrower the reverse.
func (n *node) rival(segments []string, wider, narrower bool) *Route {
	if len(segments) == 0 {
		if n.route != nil && wider == narrower {
			return n.route
		}
		return nil
	}
	segment, rest := segments[0], segments[1:]
	if !isParam(segment) {
		if next := n.literal[segment]; next != nil {
			if r := next.rival(rest, wider, narrower); r != nil {
				return r
			}
		}
		if n.param != nil && segment != "" {
			return n.param.rival(rest, wider, true)
		}
		return nil
	}
	if n.param != nil {
		if r := n.param.rival(rest, wider, narrower); r != nil {
			return r
		}
	}
	for text, next := range n.literal {
		if text == "" {
			continue // no parameter is empty
		}
		if r := next.rival(rest, true, narrower); r != nil {
			return r
		}
	}
	return nil
}

// isParam reports whether a segment of a checked path is a parameter.
func isParam(segment string) bool { return strings.HasPrefix(segment, "{") }

// PathParams returns the names of the parameters in a path. The error is one
// line without the path.
func PathParams(path string) ([]string, error) {
	var names []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if !strings.ContainsAny(segment, "{}") {
			continue
		}
		name, open := strings.CutPrefix(segment, "{")
		name, closed := strings.CutSuffix(name, "}")
		if !open || !closed || strings.ContainsAny(name, "{}") {
			return nil, fmt.Errorf("%s: a parameter is a whole segment, as in /users/{user}", printable(segment))
		}
		if err := checkName(name); err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("it has parameter {%s} twice", name)
		}
		if names = append(names, name); len(names) > paramsMax {
			return nil, fmt.Errorf("it has more than %d parameters", paramsMax)
		}
	}
	return names, nil
}

// paramsMax bounds the parameters of a path, which every request has room for.
const paramsMax = 8

// Params are the parameters of a request's path. Its values alias the path that
// Lookup was given.
type Params struct {
	names  []string
	values [paramsMax][]byte
}

// Get returns the value of a parameter; false if the path has none of the name.
func (p *Params) Get(name string) ([]byte, bool) {
	for i, n := range p.names {
		if n == name {
			return p.values[i], true
		}
	}
	return nil, false
}

// Lookup returns the route of a path that was percent-decoded once, and its
// parameters in params. host is that of the request without its port, in any
// case and with or without a dot at the end.
//
// Of the paths that fit, an exact one goes before those with parameters, and of
// these the one with more literal segments; a path of the host goes before all
// those of any host. A parameter is one whole segment, which is not empty.
//
// Paths are compared as bytes and nothing is folded: case, //, /./ and ;x make
// another path, so that a guard can't be shown one path and the router another.
// It borrows host, and params borrows path.
func (t *Table) Lookup(host, path []byte, params *Params) (*Route, bool) {
	params.names = nil
	var lower [hostBytesMax]byte
	if len(t.hosts) > 0 && len(host) <= len(lower) {
		name := lower[:copy(lower[:], host)]
		for i, c := range name {
			if c >= 'A' && c <= 'Z' {
				name[i] = c + 'a' - 'A'
			}
		}
		name = bytes.TrimSuffix(name, dot)
		if at := t.hosts[string(name)]; at != nil {
			if r := at.find(path, params); r != nil {
				return r, true
			}
		}
	}
	r := t.any.find(path, params)
	return r, r != nil
}

var (
	dot   = []byte(".")
	slash = []byte("/")
)

func (ps *paths) find(path []byte, params *Params) *Route {
	if r := ps.exact[string(path)]; r != nil {
		return r
	}
	if len(path) == 0 || path[0] != '/' {
		return nil
	}
	r := ps.tree.find(path[1:], true, params, 0)
	if r != nil {
		params.names = r.names
	}
	return r
}

// find walks down by the segments of rest, literal ones first; more is false
// behind the last one. met counts the parameters on the way.
func (n *node) find(rest []byte, more bool, params *Params, met int) *Route {
	if !more {
		return n.route
	}
	segment, rest, more := bytes.Cut(rest, slash)
	if next := n.literal[string(segment)]; next != nil {
		if r := next.find(rest, more, params, met); r != nil {
			return r
		}
	}
	if n.param == nil || len(segment) == 0 {
		return nil
	}
	params.values[met] = segment
	return n.param.find(rest, more, params, met+1)
}
