package route

import (
	"fmt"
	"strings"
	"testing"
)

// show is what a look-up found, in one line.
func show(table *Table, host, path string) string {
	var params Params
	r, ok := table.Lookup([]byte(host), []byte(path), &params)
	if !ok {
		return "none"
	}
	text := []byte(r.Host + r.Path)
	for _, name := range params.names {
		value, _ := params.Get(name)
		text = fmt.Appendf(text, " %s=%s", name, value)
	}
	return string(text)
}

func TestLookupWithParameters(t *testing.T) {
	table, err := NewTable([]Route{
		{Path: "/users/{user}"},
		{Path: "/users/me"},
		{Path: "/users/{user}/events"},
		{Path: "/users/{user}/{kind}"},
		{Path: "/{area}/{user}/{kind}"},
		{Path: "/dir/{x}/"},
		{Host: "a.test", Path: "/users/{user}"},
		{Host: "a.test", Path: "/only"},
		{Host: "[::1]", Path: "/users/me"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ host, path, want string }{
		{"", "/users/u1", "/users/{user} user=u1"},
		{"", "/users/me", "/users/me"},
		{"", "/users/ü ;a", "/users/{user} user=ü ;a"},
		{"", "/users/{user}", "/users/{user} user={user}"},
		{"", "/users/", "none"},
		{"", "/users", "none"},
		{"", "/users/u1/", "none"},
		{"", "/Users/u1", "none"},
		{"", "/users/u1/events", "/users/{user}/events user=u1"},
		{"", "/users/u1/other", "/users/{user}/{kind} user=u1 kind=other"},
		{"", "/rooms/u1/events", "/{area}/{user}/{kind} area=rooms user=u1 kind=events"},
		{"", "/users//events", "none"},
		{"", "/users/u1/events/x", "none"},
		{"", "/dir/x/", "/dir/{x}/ x=x"},
		{"", "/dir/x", "none"},
		{"", "", "none"},
		{"", "*", "none"},
		{"b.test", "/users/u1", "/users/{user} user=u1"},
		{"a.test", "/users/u1", "a.test/users/{user} user=u1"},
		{"A.Test.", "/users/u1", "a.test/users/{user} user=u1"},
		{"a.test..", "/users/u1", "/users/{user} user=u1"},
		{"a.test", "/users/me", "a.test/users/{user} user=me"}, // the host goes before the exact path
		{"a.test", "/users/u1/events", "/users/{user}/events user=u1"},
		{"a.test", "/only", "a.test/only"},
		{"b.test", "/only", "none"},
		{"[::1]", "/users/me", "[::1]/users/me"},
		{"[::2]", "/users/me", "/users/me"},
		{strings.Repeat("a", 300), "/users/me", "/users/me"},
	} {
		if got := show(table, tc.host, tc.path); got != tc.want {
			t.Errorf("%s%s: %s, want %s", tc.host, tc.path, got, tc.want)
		}
	}
}

func TestNewTableRefuses(t *testing.T) {
	for _, tc := range []struct{ first, second, want string }{ // want: part of the error; empty: both are taken
		{"/a", "/a", `path "/a" is routed twice`},
		{"/a", "/{x}", ""},
		{"/{x}", "/{y}", "serve the same requests"},
		{"/{x}/b", "/a/{y}", "serve the same requests"},
		{"/a/{y}", "/{x}/b", "serve the same requests"},
		{"/a/{y}", "/{x}/{y}", ""},
		{"/{x}/{y}", "/a/{y}", ""},
		{"/{x}/b/{z}", "/a/{y}/c", "serve the same requests"},
		{"/{x}/b/{z}", "/a/c/{y}", ""},
		{"/{x}/b", "/a/{y}/c", ""},
		{"/{x}/", "/a/{y}", ""}, // no parameter is empty
		{"/{x}/", "/{y}/", "serve the same requests"},
		{"/{x}/{x}", "/a", "parameter {x} twice"},
		{"/a{x}", "/a", "a parameter is a whole segment"},
		{"/{x}a", "/a", "a parameter is a whole segment"},
		{"/{x}{y}", "/a", "a parameter is a whole segment"},
		{"/}", "/a", "a parameter is a whole segment"},
		{"/{}", "/a", "{} without a name"},
		{"/{a.b}", "/a", "does not name a parameter"},
		{strings.Repeat("/x", 3) + "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}", "/a", ""},
		{"/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", "/a", "more than 8 parameters"},
	} {
		_, err := NewTable([]Route{{Path: tc.first}, {Path: tc.second}})
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s and %s: %v", tc.first, tc.second, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s and %s: %v, want %q", tc.first, tc.second, err, tc.want)
		}
		if _, err := NewTable([]Route{{Path: tc.first}, {Path: tc.second, Host: "h"}}); err != nil && strings.Contains(err.Error(), "same") {
			t.Errorf("%s and %s of another host: %v", tc.first, tc.second, err)
		}
	}
}
