package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"tailcast/auth"
)

// The file's guard stands before every route, those of flags too. A route's own
// takes its keys, but for those it names.
func TestGuards(t *testing.T) {
	shared := auth.Spec{
		Issuer: "https://issuer.test", Audience: []string{"streams"}, RolesClaim: []string{"scope"},
		JWKS: "https://issuer.test/.well-known/jwks.json", Leeway: time.Second,
		Sources: []auth.Source{auth.Authorization, auth.Query},
	}
	but := func(change func(*auth.Spec)) *auth.Spec {
		g := shared
		change(&g)
		return &g
	}
	for _, tc := range []struct {
		name, guard, own string // of the file, of the route
		want             *auth.Spec
	}{
		{"none", "", "", nil},
		{"the file's", "{issuer: https://issuer.test, audience: streams}", "", &shared},
		{"opened", "{issuer: https://issuer.test, audience: streams}", "none", nil},
		{"the route's", "", "{issuer: https://issuer.test, audience: [streams]}", &shared},
		{"a slash behind the issuer", "", "{issuer: https://issuer.test/, audience: streams}", but(func(g *auth.Spec) { g.Issuer = "https://issuer.test/" })},
		{"roles of a route", "{issuer: https://issuer.test, audience: streams}", "{roles: [a, b]}", but(func(g *auth.Spec) { g.Roles = []string{"a", "b"} })},
		{"roles of a route instead", "{issuer: https://issuer.test, audience: streams, roles: a}", "{roles: [b]}", but(func(g *auth.Spec) { g.Roles = []string{"b"} })},
		{"a claim inside", "", `{issuer: https://issuer.test, audience: streams, roles_claim: realm_access.roles}`, but(func(g *auth.Spec) { g.RolesClaim = []string{"realm_access", "roles"} })},
		{"a claim with dots", "", `{issuer: https://issuer.test, audience: streams, roles_claim: '"https://app.test/roles"'}`, but(func(g *auth.Spec) { g.RolesClaim = []string{"https://app.test/roles"} })},
		{"keys of a route instead of the file's URL", "{issuer: https://issuer.test, audience: streams, jwks: http://127.0.0.1/keys}", "{keys: keys.pem}", but(func(g *auth.Spec) { g.JWKS, g.Keys = "", "keys.pem" })},
		{"a URL of a route instead of the file's keys", "{issuer: https://issuer.test, audience: streams, keys: keys.pem}", "{jwks: 'http://[::1]:80/keys'}", but(func(g *auth.Spec) { g.JWKS = "http://[::1]:80/keys" })},
		{"a secret", "", "{issuer: us, audience: streams, keys: secret, algorithms: [HS256]}", but(func(g *auth.Spec) { g.Issuer, g.JWKS, g.Keys, g.Algorithms = "us", "", "secret", []string{"HS256"} })},
		{"a cookie", "", "{issuer: https://issuer.test, audience: streams, cookie: sid}", but(func(g *auth.Spec) {
			g.Cookie, g.Sources = "sid", []auth.Source{auth.Authorization, auth.Query, auth.Cookie}
		})},
		{"a cookie first", "", "{cookie: sid, sources: [cookie, query], issuer: https://issuer.test, audience: streams}", but(func(g *auth.Spec) { g.Cookie, g.Sources = "sid", []auth.Source{auth.Cookie, auth.Query} })},
		{"leeway", "", "{issuer: https://issuer.test, audience: streams, leeway: 0s}", but(func(g *auth.Spec) { g.Leeway = 0 })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := "routes:\n  - {path: /events, topic: events"
			if tc.own != "" {
				file += ", guard: " + tc.own
			}
			file += "}\n"
			if tc.guard != "" {
				file += "guard: " + tc.guard + "\n" // behind the routes: the order is all one
			}
			c := mustLoad(t, Serve, "--route /more=more", "", file)
			if got := c.Routes[0].Guard; !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
			if (c.Routes[1].Guard != nil) != (tc.guard != "") {
				t.Errorf("the flag's route has guard %+v", c.Routes[1].Guard)
			}
		})
	}
}

func TestGuardErrors(t *testing.T) {
	const ok = "issuer: https://issuer.test, audience: streams"
	for _, tc := range []struct{ guard, want string }{
		{"none of it", `1:48: guard must be a mapping of keys, not a single value`},
		{"{issuer: https://issuer.test}", `1:41: key "guard": needs the audience of tokens: without one, a token for any other service would do`},
		{"{audience: streams}", `1:41: key "guard": needs the issuer of tokens`},
		{"{issuer: us, audience: streams}", `1:41: key "guard": needs keys or jwks: the issuer is no https URL to find its keys by`},
		{"{" + ok + ", jwks: https://issuer.test/jwks, keys: keys.pem}", `key "keys": the guard has jwks already`},
		{"{" + ok + ", keys: keys.pem, jwks: https://issuer.test/jwks}", `key "jwks": the guard has keys already`},
		{"{" + ok + ", sources: []}", `key "sources": holds no source, so no token would ever be found`},
		{"{" + ok + ", isuer: x}", `key "isuer": unknown in guard (did you mean "issuer"?)`},
		{"{" + ok + ", jwks: http://issuer.test/keys}", `key "jwks": not https; plain http is for loopback addresses`},
		{"{" + ok + ", jwks: 'https://me:pw@issuer.test/'}", `key "jwks": not a URL like https://issuer.test/jwks.json`},
		{"{" + ok + ", jwks: 'file:///etc/keys'}", `key "jwks": not a URL like https://issuer.test/jwks.json`},
		{"{" + ok + ", algorithms: [none]}", `"none" is not an algorithm`},
		{"{" + ok + ", algorithms: [HS256]}", `HS algorithms need a file of keys: a secret is not published`},
		{"{" + ok + ", keys: k, algorithms: [HS256, RS256]}", `HS algorithms exclude the others`},
		{"{" + ok + ", sources: [header]}", `"header" is not one of authorization, query, cookie`},
		{"{" + ok + ", sources: [cookie]}", `the source cookie and the name of the cookie need each other`},
		{"{" + ok + ", cookie: sid, sources: [query]}", `the source cookie and the name of the cookie need each other`},
		{"{" + ok + ", leeway: 10m}", `"10m" is outside 0s to 5m`},
		{"{" + ok + ", roles_claim: a..b}", `"a..b" is not the path of a claim`},
		{"{" + ok + ", roles_claim: 'a}${claims.b'}", `is not the path of a claim`},
		{"{" + ok + ", roles: ['']}", `key "roles": it is empty`},
	} {
		file := "routes: [{path: /events, topic: events, guard: " + tc.guard + "}]\n"
		_, err := load(t, Serve, "", "", file)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "tailcast.yaml:1:") {
			t.Errorf("%s: %v, want %q", tc.guard, err, tc.want)
		}
	}
	for args, want := range map[string]string{
		"--peers a":                 `--peers: "a" is not NAME=URL (use a=http://10.0.0.7:8080)`,
		"--peers a=10.0.0.7:8080":   `a peer's URL is like http://10.0.0.7:8080`,
		"--peers a=http://a.test/x": `a peer's URL is like http://10.0.0.7:8080`,
		"--peers a/b=http://a.test": `a node's name is 1 to 64 letters`,
		"--node a:b":                `a node's name is 1 to 64 letters`,
		"--peers a=http://a.test":   `--peers: needs --node: by a random name no peer knows this one`,
		"--challenge 10ms":          `--challenge: "10ms" is outside 0, or 1s to 1h`,
		"--node c --peers a=http://a.test,a=http://b.test": `--peers: "a" is there twice`,
	} {
		_, err := load(t, Serve, "--route /e=e "+args, "", "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
