package route

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestParseTemplate(t *testing.T) {
	for _, tc := range []struct {
		text, want string   // want: part of the error; empty: taken
		names      []string // of parameters
		claims     [][]string
	}{
		{text: ""},
		{text: "plain $ text"},
		{text: "{user}", names: []string{"user"}},
		{text: "{_a-1}x{b}{_a-1}", names: []string{"_a-1", "b"}},
		{text: "tenant-{tenant}.${claims.sub}", names: []string{"tenant"}, claims: [][]string{{"sub"}}},
		{text: `${claims.a.b}${claims."https://app.test/id".x}${claims.a.b}`, claims: [][]string{{"a", "b"}, {"https://app.test/id", "x"}}},
		{text: "{{user}}"},
		{text: "${{user}}"},
		{text: "{", want: "a { without }"},
		{text: "a{user", want: "a { without }"},
		{text: "a}", want: "a } without {"},
		{text: "{}", want: "{} without a name"},
		{text: "{1a}", want: "does not name a parameter"},
		{text: "{-a}", want: "does not name a parameter"},
		{text: "{a b}", want: "does not name a parameter"},
		{text: "{a\n}", want: "does not name a parameter"},
		{text: "{a\xff}", want: "does not name a parameter"},
		{text: "{claims.sub}", want: "does not name a parameter"},
		{text: "{" + strings.Repeat("a", 65) + "}", want: "longer than 64 bytes"},
		{text: "${user}", want: "not followed by claims.NAME}"},
		{text: "${claims}", want: "not followed by claims.NAME}"},
		{text: "${claims.}", want: "not followed by claims.NAME}"},
		{text: "${claims.a", want: "not followed by claims.NAME}"},
		{text: "${claims.a.", want: "not followed by claims.NAME}"},
		{text: "${claims.a..b}", want: "not followed by claims.NAME}"},
		{text: `${claims."a}`, want: "not followed by claims.NAME}"},
		{text: `${claims."a"b}`, want: "not followed by claims.NAME}"},
		{text: `${claims.""}`, want: "not followed by claims.NAME}"},
		{text: "${claimsx.a}", want: "not followed by claims.NAME}"},
	} {
		got, err := ParseTemplate(tc.text)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%q: %v", tc.text, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.ContainsAny(err.Error(), "\r\n")):
			t.Errorf("%q: %v, want one line with %q", tc.text, err, tc.want)
		case tc.want != "":
		case !reflect.DeepEqual(got.Names(), tc.names) || !reflect.DeepEqual(got.Claims(), tc.claims) || got.String() != tc.text:
			t.Errorf("%q: names %q, claims %q", tc.text, got.Names(), got.Claims())
		}
	}
}

func TestLiteral(t *testing.T) {
	for _, tc := range []struct {
		text, want string
		ok         bool
	}{
		{"", "", true},
		{"events", "events", true},
		{"{{a}}$", "{a}$", true},
		{"{a}", "", false},
		{"a${claims.b}", "", false},
	} {
		if got, ok := mustTemplate(t, tc.text).Literal(); got != tc.want || ok != tc.ok {
			t.Errorf("%q: %q, %v", tc.text, got, ok)
		}
	}
}

func mustTemplate(t testing.TB, text string) Template {
	t.Helper()
	tpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func TestExpand(t *testing.T) {
	var claims ClaimMap
	dec := json.NewDecoder(strings.NewReader(`{"sub":"u1","n":12345678901234567890,"e":1e3,"yes":true,"none":null,"empty":"",
		"list":["a","b"],"mixed":["a",7,false],"deep":{"list":["x"]},"void":[],"hole":["a",null],"gap":["a",""],"nested":[["a"]],
		"https://app.test/id":"q","a.b":"dotted"}`))
	dec.UseNumber()
	if err := dec.Decode(&claims); err != nil {
		t.Fatal(err)
	}
	long := make([]any, 65)
	for i := range long {
		long[i] = "x"
	}
	claims["long"] = long
	table, err := NewTable([]Route{{Path: "/t/{tenant}/{user}"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text, query string
		want        []string
		status      int // of the refusal
		reason      string
	}{
		{text: "plain", want: []string{"plain"}},
		{text: "{tenant}", want: []string{"acme inc"}},
		{text: "{tenant}", query: "tenant=evil", want: []string{"acme inc"}}, // the path names it
		{text: "x-{room}-{user}", query: "room=r%201+1", want: []string{"x-r 1+1-ü"}},
		{text: "{room}", query: "%72oom=r", want: []string{"r"}},
		{text: "{room}", query: "a&room=r;room=s&b=", want: []string{"r;room=s"}},
		{text: "{room}", query: "room=%2541", want: []string{"%41"}}, // decoded once
		{text: "{room}", query: "room==", want: []string{"="}},
		{text: "{room}", query: "%zz=1&room=r", want: []string{"r"}},
		{text: "{room}", query: "Room=r", status: 400, reason: `the query has no parameter "room"`},
		{text: "{room}", query: "", status: 400, reason: `the query has no parameter "room"`},
		{text: "{room}", query: "room", status: 400, reason: `the query has no parameter "room"`},
		{text: "{room}", query: "room=", status: 400, reason: `the query has no parameter "room"`},
		{text: "{room}", query: "room=r&room=r", status: 400, reason: `the query has parameter "room" more than once`},
		{text: "{room}", query: "room=&r%6Fom=r", status: 400, reason: `the query has parameter "room" more than once`},
		{text: "{room}", query: "room=%", status: 400, reason: `parameter "room" of the query has a broken escape`},
		{text: "${claims.sub}", want: []string{"u1"}},
		{text: "${claims.n}/${claims.e}/${claims.yes}", want: []string{"12345678901234567890/1e3/true"}},
		{text: `${claims."https://app.test/id"}-${claims."a.b"}`, want: []string{"q-dotted"}},
		{text: "t-${claims.list}", want: []string{"t-a", "t-b"}},
		{text: "${claims.mixed}", want: []string{"a", "7", "false"}},
		{text: "${claims.deep.list}", want: []string{"x"}},
		{text: "${claims.list}${claims.list}", want: []string{"aa", "ab", "ba", "bb"}},
		{text: "${claims.a.b}", status: 403, reason: `the token has no claim "a.b"`},
		{text: "${claims.none}", status: 403, reason: `the token has no claim "none"`},
		{text: "${claims.empty}", status: 403, reason: `the token has no claim "empty"`},
		{text: "${claims.void}", status: 403, reason: `the token has no claim "void"`},
		{text: "${claims.hole}", status: 403, reason: `the token has no claim "hole"`},
		{text: "${claims.gap}", status: 403, reason: `the token has no claim "gap"`},
		{text: "${claims.nested}", status: 403, reason: `the token has no claim "nested"`},
		{text: "${claims.deep}", status: 403, reason: `the token has no claim "deep"`},
		{text: "${claims.sub.x}", status: 403, reason: `the token has no claim "sub.x"`},
		{text: "${claims.Sub}", status: 403, reason: `the token has no claim "Sub"`},
		{text: "${claims.long}", status: 403, reason: "${claims.long} stands for more than 64 values"},
	} {
		v := Values{Query: []byte(tc.query), Claims: claims}
		if _, ok := table.Lookup(nil, []byte("/t/acme inc/ü"), &v.Path); !ok {
			t.Fatal("no route")
		}
		got, err := mustTemplate(t, tc.text).Expand(&v, []string{"before"})
		if tc.reason != "" {
			no, ok := err.(*Refusal)
			if !ok || no.Status != tc.status || no.Reason != tc.reason || len(got) != 1 {
				t.Errorf("%s of %q: %q, %v, want %d %s", tc.text, tc.query, got, err, tc.status, tc.reason)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, append([]string{"before"}, tc.want...)) {
			t.Errorf("%s of %q: %q, %v, want %q", tc.text, tc.query, got, err, tc.want)
		}
	}
	if _, err := mustTemplate(t, "${claims.sub}").Expand(&Values{}, nil); err == nil {
		t.Error("a claim without a token passed")
	}
}

func TestClaimText(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  string
		ok    bool
	}{
		{"a", "a", true},
		{1e21, "1000000000000000000000", true},
		{0.5, "0.5", true},
		{json.Number("1e3"), "1e3", true},
		{false, "false", true},
		{nil, "", false},
		{[]any{"a"}, "", false},
		{map[string]any{}, "", false},
	} {
		if got, ok := ClaimText(tc.value); got != tc.want || ok != tc.ok {
			t.Errorf("%v: %q, %v", tc.value, got, ok)
		}
	}
}
