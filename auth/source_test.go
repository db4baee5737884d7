package auth

import (
	"strings"
	"testing"
)

func TestSources(t *testing.T) {
	const def = "authorization query"
	for _, tc := range []struct {
		name, order, query string
		fields             []string
		want               string // the token, or why not
	}{
		{"none", def, "", nil, "the stream needs a token"},
		{"header", def, "", []string{"Authorization: Bearer a.b.c"}, "=a.b.c"},
		{"header, any case", def, "", []string{"authorization: bEARER a.b.c"}, "=a.b.c"},
		{"header, more blanks", def, "", []string{"Authorization: Bearer   a.b.c"}, "=a.b.c"},
		{"header, two words", def, "", []string{"Authorization: Bearer a b"}, "has a character that no token has"},
		{"header, a list", def, "", []string{"Authorization: Bearer a, Bearer b"}, "has a character that no token has"},
		{"header, quoted", def, "", []string{`Authorization: Bearer "a.b.c"`}, "has a character that no token has"},
		{"header without a token", def, "", []string{"Authorization: Bearer"}, "the Authorization header is not Bearer and a token"},
		{"header with blanks alone", def, "", []string{"Authorization: Bearer  "}, "the Authorization header is not Bearer and a token"},
		{"header, empty", def, "", []string{"Authorization:"}, "the stream needs a token"},
		{"header, another scheme", def, "", []string{"Authorization: Basic YTpi"}, "the stream needs a token"},
		{"header, another scheme, and query", def, "access_token=q", []string{"Authorization: Basic YTpi"}, "=q"},
		{"header twice", def, "", []string{"Authorization: Bearer a", "Authorization: Bearer a"}, "the request has more than one token"},
		{"header twice, one of another scheme", def, "", []string{"Authorization: Basic a", "Authorization: Bearer a"}, "the request has more than one token"},
		{"header not listed", "query", "", []string{"Authorization: Bearer a"}, "the stream needs a token"},
		{"header not listed, and query", "query", "access_token=q", []string{"Authorization: Bearer a"}, "=q"},

		{"query", def, "access_token=a.b.c", nil, "=a.b.c"},
		{"query among others", def, "x=1&access_token=a.b.c&y=%41", nil, "=a.b.c"},
		{"query, escaped", def, "x=%41&access%5Ftoken=a%2Eb.c&y=%41%42%43%44%45%46", nil, "=a.b.c"},
		{"query, empty", def, "access_token=", nil, "the stream needs a token"},
		{"query, a broken escape", def, "access_token=%zz", nil, "the stream needs a token"},
		{"query, another name", def, "Access_Token=a&access_tokens=b&xaccess_token=c", nil, "the stream needs a token"},
		{"query twice", def, "access_token=a&access_token=a", nil, "the request has more than one token"},
		{"query twice, once empty", def, "access_token=&access_token=a", nil, "the request has more than one token"},
		{"query twice, once escaped", def, "access_token=a&access%5ftoken=b", nil, "the request has more than one token"},
		{"query, line ends", def, "access_token=a%0d%0ab", nil, "has a character that no token has"},
		{"query, a plus", def, "access_token=a+b", nil, "has a character that no token has"},
		{"query, NUL", def, "access_token=a%00", nil, "has a character that no token has"},
		{"query not listed", "authorization", "access_token=a", nil, "the stream needs a token"},
		{"header and query", def, "access_token=a", []string{"Authorization: Bearer a"}, "the request has more than one token"},

		{"cookie", "cookie", "", []string{"Cookie: sid=a.b.c"}, "=a.b.c"},
		{"cookie among others", "cookie", "", []string{"Cookie: x=1; sid=a.b.c; y=2"}, "=a.b.c"},
		{"cookie, names alike", "cookie", "", []string{"Cookie: xsid=1; SID=2; sid2=3"}, "the stream needs a token"},
		{"cookie inside a value", "cookie", "", []string{"Cookie: x=sid=1"}, "the stream needs a token"},
		{"cookie, empty", "cookie", "", []string{"Cookie: sid="}, "the stream needs a token"},
		{"cookie, quoted", "cookie", "", []string{`Cookie: sid="a"`}, "has a character that no token has"},
		{"cookie twice", "cookie", "", []string{"Cookie: sid=a; sid=b"}, "the request has more than one token"},
		{"cookie in a second line", "cookie", "", []string{"Cookie: x=1", "Cookie: sid=b"}, "=b"},
		{"cookie in two lines", "cookie", "", []string{"Cookie: sid=a", "Cookie: sid=b"}, "the request has more than one token"},
		{"cookie not listed", def, "", []string{"Cookie: sid=a"}, "the stream needs a token"},
		{"cookie behind header", "authorization cookie", "", []string{"Cookie: sid=a", "Authorization: Bearer b"}, "=b"},
		{"cookie before header", "cookie authorization", "", []string{"Cookie: sid=a", "Authorization: Bearer b"}, "=a"},
		{"cookie before query", "cookie query", "access_token=b", []string{"Cookie: sid=a"}, "=a"},
		{"cookie of another, and query", "cookie query", "access_token=b", []string{"Cookie: x=a"}, "=b"},

		{"longest", def, "access_token=" + strings.Repeat("a", tokenBytesMax), nil, "=" + strings.Repeat("a", tokenBytesMax)},
		{"longer", def, "access_token=" + strings.Repeat("a", tokenBytesMax+1), nil, "is longer than 8 KiB"},
		{"longer, header", def, "", []string{"Authorization: Bearer " + strings.Repeat("a", tokenBytesMax+1)}, "is longer than 8 KiB"},
	} {
		s := sources{cookie: "sid"}
		for from := range strings.FieldsSeq(tc.order) {
			s.order = append(s.order, Source(from))
		}
		token, refusal := s.token(request(t, "GET /events?"+tc.query, tc.fields...), nil)
		got := reason(refusal)
		if refusal == nil {
			got = "=" + string(token)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A token in the query lies in it, or in the scratch if it had escapes.
func TestSourceAliases(t *testing.T) {
	s := sources{order: []Source{Query}}
	scratch := make([]byte, 0, 64)
	token, _ := s.token(request(t, "GET /events?access_token=a%2Eb"), scratch)
	if string(token) != "a.b" || &token[0] != &scratch[:1][0] {
		t.Errorf("%q is not in the scratch", token)
	}
}
