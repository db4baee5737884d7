package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"tailcast/auth"
	"tailcast/route"
)

// guardKey is one key of a guard.
type guardKey struct {
	name string
	def  string
	help string // for docs/CONFIGURATION.md
	set  func(f file, k key, g *auth.Spec) error
}

// guardKeys is the table of them: the parser and the docs read it.
var guardKeys = []guardKey{
	{"issuer", "", "who must have made the token: its `iss`", guardText(func(g *auth.Spec) *string { return &g.Issuer })},
	{"audience", "", "who the token must be for, or a list of which one is enough: its `aud`", guardList(parseClaimText, func(g *auth.Spec) *[]string { return &g.Audience })},
	{"roles", "none", "roles that the token must have, all of them", guardList(parseClaimText, func(g *auth.Spec) *[]string { return &g.Roles })},
	{"roles_claim", "`scope`", "the claim that holds them, a text of words or a list; dots lead into objects: `realm_access.roles`, `\"https://app.test/roles\"`", setRolesClaim},
	{"jwks", "`ISSUER/.well-known/jwks.json`", "https URL of the issuer's keys (JWK Set), read at start and every 5 minutes", setJWKS},
	{"keys", "", "instead of `jwks`, a file: public keys or certificates (PEM), a JWK or a JWK Set; for HS algorithms the secret; read at start and every 10 s", setKeys},
	{"algorithms", "those of public keys", "RS256 to RS512, PS256 to PS512, ES256 to ES512, EdDSA; HS256 to HS512 alone, and by a file of keys", guardList(parseText, func(g *auth.Spec) *[]string { return &g.Algorithms })},
	{"leeway", "1s", "how far clocks may differ; streams end so long after `exp`", setLeeway},
	{"sources", "`[authorization, query]`", "where the token is looked for, first to last: `authorization` (Bearer), `query` (access_token), `cookie`", guardList(oneOf(auth.Authorization, auth.Query, auth.Cookie), func(g *auth.Spec) *[]auth.Source { return &g.Sources })},
	{"cookie", "", "name of the cookie that holds a token", guardText(func(g *auth.Spec) *string { return &g.Cookie })},
}

// newGuard returns a guard with every default.
func newGuard() auth.Spec {
	return auth.Spec{
		RolesClaim: []string{"scope"}, Leeway: time.Second,
		Sources: []auth.Source{auth.Authorization, auth.Query},
	}
}

// guard reads a guard: base with the keys that k holds instead.
func (f file) guard(k key, base placedGuard) (placedGuard, error) {
	if word, ok := k.value.(*ast.StringNode); ok && word.Value == "none" {
		return placedGuard{from: k.from}, nil
	}
	g := newGuard()
	if base.spec != nil {
		g = *base.spec
	}
	placed := placedGuard{from: k.from, keysFrom: base.keysFrom, spec: &g}
	sources, keysBy := false, ""
	err := f.mapping(k.value, "guard", func(k key) error {
		i := slices.IndexFunc(guardKeys, func(gk guardKey) bool { return gk.name == k.name })
		if i < 0 {
			names := make([]string, 0, len(guardKeys))
			for _, gk := range guardKeys {
				names = append(names, gk.name)
			}
			return unknownIn("guard", k, names)
		}
		if k.name == "keys" || k.name == "jwks" {
			if keysBy != "" {
				return fmt.Errorf("%s: the guard has %s already", k.from, keysBy)
			}
			keysBy, placed.keysFrom = k.name, k.from
		}
		sources = sources || k.name == "sources"
		if err := guardKeys[i].set(f, k, &g); err != nil {
			return err
		}
		if len(g.Sources) == 0 {
			return fmt.Errorf("%s: holds no source, so no token would ever be found", k.from)
		}
		return nil
	})
	if err == nil && !sources && g.Cookie != "" && !slices.Contains(g.Sources, auth.Cookie) {
		g.Sources = append(slices.Clone(g.Sources), auth.Cookie)
	}
	return placed, err
}

// guards gives the routes of a file their guards: their own, with the keys of
// the file's where they have none, or the file's, which it returns.
func (f file) guards(shared *key, routes []placedRoute) (placedGuard, error) {
	var all placedGuard
	var err error
	if shared != nil {
		if all, err = f.guard(*shared, placedGuard{}); err != nil {
			return all, err
		}
	}
	for i := range routes {
		r := &routes[i]
		own := r.guard.key
		if r.guard = all; own == nil {
			continue
		}
		if r.guard, err = f.guard(*own, all); err != nil {
			return all, err
		}
	}
	return all, nil
}

// placedGuard is a guard and where it was set.
type placedGuard struct {
	key      *key // of a route, until the file's guard is known
	from     string
	keysFrom string     // the place of its keys or jwks; "": it has neither
	spec     *auth.Spec // nil: none
}

// setChecked gives r its guard, if that is whole.
func (p *placedGuard) setChecked(r *placedRoute) error {
	if p.spec == nil {
		if claim := r.claim(); claim != "" {
			return fmt.Errorf("%s: ${claims.%s} needs a guard, which reads the token", r.from, claim)
		}
		if r.MaxStreamsPerSubject > 0 {
			return fmt.Errorf("%s: max_streams_per_subject needs a guard, which reads the token", r.from)
		}
		return nil
	}
	g := *p.spec // routes may share it
	if err := g.Check(); err != nil {
		return fmt.Errorf("%s: %w", p.from, err)
	}
	r.Guard, r.KeysFrom = &g, p.keysFrom
	return nil
}

// claim returns a claim that the route uses, "" if it uses none.
func (r *Route) claim() string {
	for _, path := range r.Claims() {
		return strings.Join(path, ".")
	}
	return ""
}

// Claims returns the claims that the route uses, as paths of names.
func (r *Route) Claims() [][]string {
	var all [][]string
	for _, topic := range r.Topics {
		if t, err := route.ParseTemplate(topic); err == nil {
			all = append(all, t.Claims()...)
		}
	}
	for _, item := range r.Filter {
		for _, term := range item {
			all = append(all, term.Value.Claims()...)
		}
	}
	return all
}

func guardText(field func(*auth.Spec) *string) func(file, key, *auth.Spec) error {
	return func(f file, k key, g *auth.Spec) error {
		return f.read(k, func(text string) (err error) {
			*field(g), err = parseClaimText(text)
			return err
		})
	}
}

func guardList[T any](parse func(string) (T, error), field func(*auth.Spec) *[]T) func(file, key, *auth.Spec) error {
	return func(f file, k key, g *auth.Spec) error {
		items, err := f.items(k, true)
		if err != nil {
			return err
		}
		*field(g) = nil
		for _, it := range items {
			v, err := parse(it.text)
			if err != nil {
				return fmt.Errorf("%s: %w", it.from, err)
			}
			*field(g) = append(*field(g), v)
		}
		return nil
	}
}

// parseClaimText takes a text that a claim is compared with.
func parseClaimText(text string) (string, error) {
	if text == "" {
		return "", errors.New("it is empty")
	}
	return parseText(text)
}

func setRolesClaim(f file, k key, g *auth.Spec) error {
	return f.read(k, func(text string) error {
		t, err := route.ParseTemplate("${claims." + text + "}")
		if paths := t.Claims(); err == nil && len(paths) == 1 && t.String() == "${claims."+text+"}" && !strings.Contains(text, "}") {
			g.RolesClaim = paths[0]
			return nil
		}
		return fmt.Errorf("%s is not the path of a claim (use scope, realm_access.roles, %s)", quote(text), `"https://app.test/roles"`)
	})
}

func setJWKS(f file, k key, g *auth.Spec) error {
	return f.read(k, func(text string) error {
		g.JWKS, g.Keys = text, ""
		return auth.CheckURL(text)
	})
}

func setKeys(f file, k key, g *auth.Spec) error {
	return f.read(k, func(text string) (err error) {
		g.Keys, err = parseClaimText(text)
		g.JWKS = ""
		return err
	})
}

func setLeeway(f file, k key, g *auth.Spec) error {
	return f.read(k, within(&g.Leeway, argDuration, parseDuration, bound[time.Duration]{
		min: 0, max: 5 * time.Minute, why: "clocks differ by less, and a stream outlives its token by it",
	}).add)
}

// setGuard keeps a route's guard until the file's is known.
func setGuard(_ file, k key, r *placedRoute) error {
	r.guard.key = &k
	return nil
}

// parsePeer reads NAME=URL.
func parsePeer(text string) (Peer, error) {
	name, address, ok := strings.Cut(text, "=")
	if !ok {
		return Peer{}, fmt.Errorf("%s is not NAME=URL (use a=http://10.0.0.7:8080)", quote(text))
	}
	err := auth.CheckName(name)
	if err == nil {
		err = auth.CheckPeer(address)
	}
	if err != nil {
		return Peer{}, fmt.Errorf("%s: %w", quote(text), err)
	}
	return Peer{name, address}, nil
}

// parseNode takes the name of this node.
func parseNode(text string) (string, error) {
	if err := auth.CheckName(text); err != nil {
		return "", fmt.Errorf("%s: %w", quote(text), err)
	}
	return text, nil
}

func guardSettings(c *Config) []setting {
	return []setting{
		{
			name: "challenge", def: "30s",
			help: "a guarded stream's client is asked for the next token so long before the stream's ends, or a third of its lifetime if that is less; 0 never asks",
			value: within(&c.Challenge, argDuration, parseDuration, bound[time.Duration]{
				min: time.Second, max: time.Hour, zero: true, why: "less is no time to fetch a token in",
			}),
		}, {
			name: "node", means: "a random one",
			help:  "name of this node in challenges, as its peers have it in --peers",
			value: single(&c.Node, argText, parseNode),
		}, {
			name:  "peers",
			help:  "nodes to which answers to their challenges are sent on; without, their clients reconnect",
			value: list(&c.Peers, "NAME=URL", parsePeer),
		},
	}
}
