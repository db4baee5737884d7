package route

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	table, err := NewTable([]Route{{Path: "/", Feed: 0}, {Path: "/events", Feed: 1}, {Path: "/a b/é", Feed: 2}, {Path: "/admin", Feed: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		feed int // -1: no route
	}{
		{"/", 0},
		{"/events", 1},
		{"/a b/é", 2},
		{"/admin", 3},
		{"", -1},
		{"*", -1},
		{"/events/", -1},
		{"/event", -1},
		{"/eventsx", -1},
		{"/EVENTS", -1},
		{"//admin", -1},
		{"/./admin", -1},
		{"/admin;x", -1},
		{"/x/../admin", -1},
		{"/%61dmin", -1}, // decoding happened before
		{"/admin\x00", -1},
		{"/a%20b/é", -1},
	} {
		r, ok := table.Lookup(nil, []byte(tc.path), &Params{})
		if ok != (tc.feed >= 0) || ok && r.Feed != tc.feed {
			t.Errorf("Lookup(%q) = %+v, %v, want feed %d", tc.path, r, ok, tc.feed)
		}
	}
}

func TestNewTableRefusesATwicePath(t *testing.T) {
	_, err := NewTable([]Route{{Path: "/a"}, {Path: "/b"}, {Path: "/a", Feed: 1}})
	if err == nil || err.Error() != `path "/a" is routed twice` {
		t.Fatalf("got %v", err)
	}
}

// A table is fixed: what its maker does to the slice later is not seen.
func TestTableKeepsItsRoutes(t *testing.T) {
	routes := []Route{{Path: "/a", Feed: 7}}
	table, err := NewTable(routes)
	if err != nil {
		t.Fatal(err)
	}
	routes[0] = Route{Path: "/b"}
	if r, ok := table.Lookup(nil, []byte("/a"), &Params{}); !ok || r.Feed != 7 || r.Path != "/a" {
		t.Fatalf("got %+v, %v", r, ok)
	}
}

func TestCheckOrigin(t *testing.T) {
	for _, tc := range []struct{ origin, want string }{ // want: part of the error; empty: fine
		{"*", ""},
		{"null", ""},
		{"https://app.test", ""},
		{"https://app.test:8443", ""},
		{"https://app.test:80", ""},
		{"http://localhost", ""},
		{"http://127.0.0.1:3000", ""},
		{"http://[::1]:3000", ""},
		{"http://[::1]", ""},
		{"https://*.app.test", ""},
		{"https://*.app.test:8443", ""},
		{"https://xn--bcher-kva.test", ""},
		{"https://my_app.test", ""},
		{"chrome-extension://abcdefghijklmnop", ""},
		{"", "it has no scheme"},
		{"app.test", "it has no scheme"},
		{"*.app.test", "it has no scheme"},
		{"Null", "it has no scheme"},
		{"https://", "it has no host"},
		{"https://*", "* may only stand before the first dot"},
		{"https://*.", "it has no host"},
		{"https://*app.test", "* may only stand before the first dot"},
		{"https://a.*.test", "* may only stand before the first dot"},
		{"https://*.*.test", "* may only stand before the first dot"},
		{"*://app.test", "its scheme is not one"},
		{"://app.test", "its scheme is not one"},
		{"https://app.test/", "it ends before the path"},
		{"https://app.test/app", "it ends before the path"},
		{"https://app.test?x", "it ends before the path"},
		{"https://app.test#x", "it ends before the path"},
		{"https://me@app.test", "it holds no user"},
		{"HTTPS://app.test", "browsers send lower case"},
		{"https://App.test", "browsers send lower case"},
		{"https://bücher.test", "browsers send other alphabets as punycode"},
		{"https://app.test:443", "browsers leave the default port out"},
		{"http://app.test:80", "browsers leave the default port out"},
		{"https://app.test:", "its port is not 1 to 65535"},
		{"https://app.test:0", "its port is not 1 to 65535"},
		{"https://app.test:08443", "its port is not 1 to 65535"},
		{"https://app.test:65536", "its port is not 1 to 65535"},
		{"https://app.test:*", "its port is not 1 to 65535"},
		{"https://app..test", "its host is not one"},
		{"https://app.test.", "its host is not one"},
		{"https://.app.test", "its host is not one"},
		{"https://app test", "its host is not one"},
		{"https://app.test\r\nx: y", "its port is not 1 to 65535"},
		{"https://app.test\r\n", "its host is not one"},
		{"https://[::1", "its address is not one"},
		{"https://[]", "its address is not one"},
		{"https://[app.test]", "its address is not one"},
	} {
		err := CheckOrigin(tc.origin)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("CheckOrigin(%q): %v", tc.origin, err)
		case tc.want != "" && err == nil:
			t.Errorf("CheckOrigin(%q) passed, want %q", tc.origin, tc.want)
		case tc.want != "" && (!strings.Contains(err.Error(), tc.want) || strings.ContainsAny(err.Error(), "\r\n")):
			t.Errorf("CheckOrigin(%q): %q, want one line with %q", tc.origin, err, tc.want)
		}
	}
}
