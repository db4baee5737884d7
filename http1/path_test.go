package http1

import (
	"fmt"
	"strings"
	"testing"
)

func TestAppendPath(t *testing.T) {
	for _, c := range []struct {
		raw, want string
		err       *Error
	}{
		{"/", "/", nil},
		{"/events", "/events", nil},
		{"/events/", "/events/", nil},
		{"/a/b.c/..d/.e/f../...", "/a/b.c/..d/.e/f../...", nil},
		{"/%61dmin", "/admin", nil},
		{"/%65%76ents/%C3%A9", "/events/\u00E9", nil},
		{"/%252F", "/%2F", nil},
		{"/%252e%252e/", "/%2e%2e/", nil},
		{"/a;x=1,2", "/a;x=1,2", nil},
		{"/A+b%20c", "/A+b c", nil},
		{"/%3Fa%23b%25", "/?a#b%", nil},
		{"/a|b[c]{d}", "/a|b[c]{d}", nil},

		{"/%7Ea%2Db%5F", "/~a-b_", nil},
		{"/%20", "/ ", nil},
		{"/%F0%9F%98%80", "/\U0001F600", nil},
		{"/%e2%80%8b", "/\u200b", nil},
		{"/%C2%85", "/\u0085", nil},
		{"/...%2e", "/....", nil},
		{"/%25%32%46", "/%2F", nil},
		{"/a:b@c!$&'()*,=", "/a:b@c!$&'()*,=", nil},

		{"/static/%zz%2", "", errPathEscape},
		{"/%", "", errPathEscape},
		{"/%6", "", errPathEscape},
		{"/%%41", "", errPathEscape},
		{"/%u0041", "", errPathEscape},
		{"/% 1", "", errPathEscape},
		{"/%+1", "", errPathEscape},
		{"/static/..%2f..%2fetc", "", errPathByte},
		{"/a%2Fb", "", errPathByte},
		{"/..%5c..%5Cetc", "", errPathByte},
		{"/..\\etc", "", errPathByte},
		{"/a%00", "", errPathByte},
		{"/a%0d%0a", "", errPathByte},
		{"/a%1F", "", errPathByte},
		{"/a%7f", "", errPathByte},
		{"/%09", "", errPathByte},
		{"/a%5C%2e%2e", "", errPathByte},
		{"/%2f%2f", "", errPathByte},
		{"/%ff", "", errPathText},
		{"/%f4%90%80%80", "", errPathText},
		{"/%C3", "", errPathText},
		{"/%C3/%A9", "", errPathText},
		{"/%c0%ae%c0%ae/", "", errPathText},
		{"/%c0%af", "", errPathText},
		{"/%ed%a0%80", "", errPathText},
		{"/static/../x", "", errPathSegment},
		{"/static/%2e%2e/x", "", errPathSegment},
		{"/.%2E", "", errPathSegment},
		{"/%2e", "", errPathSegment},
		{"/./admin", "", errPathSegment},
		{"/a/.", "", errPathSegment},
		{"/a/..", "", errPathSegment},
		{"/..", "", errPathSegment},
		{"//admin", "", errPathSegment},
		{"/%61dmin//./x", "", errPathSegment},
		{"/a//", "", errPathSegment},
		{"/a/%2e", "", errPathSegment},
		{"/%2e%2E/", "", errPathSegment},
		{"/a/.%2e/b", "", errPathSegment},
		{"//", "", errPathSegment},
		{"a", "", errPathSegment},
		{"", "", errPathSegment},
		{"*", "", errPathSegment},
	} {
		got, err := AppendPath([]byte("dst"), []byte(c.raw))
		if c.err == nil && (err != nil || string(got) != "dst"+c.want) || c.err != nil && err != c.err {
			t.Errorf("AppendPath(%q) = %q, %v, want %q, %v", c.raw, got, err, c.want, c.err)
		}
		if err != nil && string(got) != "dst" {
			t.Errorf("AppendPath(%q) leaves %q behind", c.raw, got)
		}
	}
}

// queries are queries and their pairs.
var queries = []struct{ query, want string }{
	{"", ""},
	{"a", `"a"=""`},
	{"a=", `"a"=""`},
	{"=a", `""="a"`},
	{"=", `""=""`},
	{"a=b", `"a"="b"`},
	{"a=b=c==", `"a"="b=c=="`},
	{"a=b&c=d", `"a"="b" "c"="d"`},
	{"&&a=b&&c&", `"a"="b" "c"=""`},
	{"a=b;c=d", `"a"="b;c=d"`},
	{"a+b=c+d", `"a+b"="c+d"`},
	{"a%20b=c%2Bd", `"a b"="c+d"`},
	{"%61%62=%63%64", `"ab"="cd"`},
	{"a=%2526", `"a"="%26"`},
	{"a=b%26c%3Dd", `"a"="b&c=d"`},
	{"a=%00%0a%ff", `"a"="\x00\n\xff"`},
	{"lastEventId=v1%3A0-5~ab%2Cx", `"lastEventId"="v1:0-5~ab,x"`},
	{"%=a&b=c", `"b"="c"`},
	{"a=%&b=c", `"b"="c"`},
	{"a=%4&a=%g1&a=%1g&a=d", `"a"="d"`},
	{"a%=b&a%zz=b&%41=c", `"A"="c"`},
	{"lastEventId=a+b%zz;x=1&lastEventId=c&access_token=%", `"lastEventId"="c"`},
	{"a=1&a=2&%61=3", `"a"="1" "a"="2" "a"="3"`},
	{"a=%E2%82%AC&%C3%A9=b", `"a"="€" "é"="b"`},
	{"a&a=&=a", `"a"="" "a"="" ""="a"`},
	{"?a=b", `"?a"="b"`},
	{"a==b", `"a"="=b"`},
	{"a=b%", ""},
	{"a[]=1&a[]=2", `"a[]"="1" "a[]"="2"`},
	{"a=|&b={x}&c=^`&d=[1]", "\"a\"=\"|\" \"b\"=\"{x}\" \"c\"=\"^`\" \"d\"=\"[1]\""},
}

func TestPairs(t *testing.T) {
	for _, c := range queries {
		scratch := make([]byte, len(c.query))
		var pairs []string
		for p := NewPairs([]byte(c.query), scratch); p.Next(); {
			pairs = append(pairs, fmt.Sprintf("%q=%q", p.Name, p.Value))
		}
		if got := strings.Join(pairs, " "); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.query, got, c.want)
		}
	}
}
