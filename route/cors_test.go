package route

import (
	"strings"
	"testing"
)

func mustCORS(t testing.TB, credentials bool, origins ...string) *CORS {
	t.Helper()
	c, err := NewCORS(origins, credentials)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDecide(t *testing.T) {
	const (
		vary = "Vary: Origin\r\n"
		cred = "Access-Control-Allow-Credentials: true\r\n"
	)
	allow := func(origin string) string { return "Access-Control-Allow-Origin: " + origin + "\r\n" }
	for _, tc := range []struct {
		list        string // origins by blank; a leading + adds credentials
		origin      string // empty: the request has none
		want        string // the field lines
		explanation string
	}{
		{"", "https://app.test", "", "nothing listed"},
		{"", "", "", "nothing listed, no origin"},
		{"*", "https://app.test", allow("*"), "any page"},
		{"*", "null", allow("*"), "any page, null too"},
		{"*", "", allow("*"), "the same answer for all, so a cache may share it"},
		{"* https://app.test", "https://app.test", allow("*"), "the star wins: nothing varies"},
		{"https://app.test", "https://app.test", allow("https://app.test") + vary, "listed"},
		{"https://app.test", "", vary, "no origin still varies"},
		{"https://app.test", "https://evil.test", vary, "not listed"},
		{"https://app.test", "http://app.test", vary, "another scheme"},
		{"https://app.test", "https://app.test:8443", vary, "another port"},
		{"https://app.test", "https://app.test.evil.test", vary, "a longer host"},
		{"https://app.test", "https://app.tes", vary, "a shorter host"},
		{"https://app.test", "HTTPS://APP.TEST", vary, "browsers send lower case"},
		{"https://app.test", "https://app.test https://app.test", vary, "two on one line"},
		{"https://app.test", "null", vary, "null is not listed"},
		{"null", "null", allow("null") + vary, "null is listed"},
		{"null", "https://app.test", vary, "only null is listed"},
		{"https://a.test https://b.test", "https://b.test", allow("https://b.test") + vary, "the second"},
		{"https://*.app.test", "https://x.app.test", allow("https://x.app.test") + vary, "a subdomain"},
		{"https://*.app.test", "https://x.y.app.test", allow("https://x.y.app.test") + vary, "a deeper one"},
		{"https://*.app.test", "https://app.test", vary, "the domain itself is no subdomain"},
		{"https://*.app.test", "https://.app.test", vary, "an empty label"},
		{"https://*.app.test", "https://x..app.test", vary, "an empty label inside"},
		{"https://*.app.test", "https://xapp.test", vary, "no dot"},
		{"https://*.app.test", "http://x.app.test", vary, "another scheme"},
		{"https://*.app.test", "https://x.app.test:8443", vary, "a port"},
		{"https://*.app.test", "https://evil.test/.app.test", vary, "a path before"},
		{"https://*.app.test", "https://evil.test#.app.test", vary, "a fragment before"},
		{"https://*.app.test", "https://evil.test?.app.test", vary, "a query before"},
		{"https://*.app.test", "https://evil.test:80.app.test", vary, "a port before"},
		{"https://*.app.test", "https://me@x.app.test", vary, "a user"},
		{"https://*.app.test", "https://x.app.test.evil.test", vary, "a longer host"},
		{"https://*.app.test", "https://\r\nx: y.app.test", vary, "control bytes"},
		{"https://*.app.test:8443", "https://x.app.test:8443", allow("https://x.app.test:8443") + vary, "a port that is listed"},
		{"+https://app.test", "https://app.test", allow("https://app.test") + cred + vary, "credentials"},
		{"+https://app.test", "https://evil.test", vary, "credentials for the listed only"},
		{"+https://*.app.test", "https://x.app.test", allow("https://x.app.test") + cred + vary, "credentials by wildcard"},
		{"+", "https://app.test", "", "credentials with nothing listed"},
	} {
		list, credentials := strings.CutPrefix(tc.list, "+")
		g := mustCORS(t, credentials, strings.Fields(list)...).Decide([]byte(tc.origin))
		if got := string(g.AppendFields(nil)); got != tc.want {
			t.Errorf("%s: %q asked by %q: got %q, want %q", tc.explanation, tc.list, tc.origin, got, tc.want)
		}
		if g.Credentials && string(g.Origin) == "*" {
			t.Errorf("%s: credentials with *", tc.explanation)
		}
	}
}

func TestNilCORS(t *testing.T) {
	var c *CORS
	if got := c.Decide([]byte("https://app.test")).AppendFields(nil); len(got) != 0 {
		t.Fatalf("got %q, want nothing", got)
	}
}

func TestNewCORSRefuses(t *testing.T) {
	for _, tc := range []struct {
		origin      string
		credentials bool
		want        string
	}{
		{"app.test", false, `"app.test" is not an origin: it has no scheme (use https://app.test, https://*.app.test, null or *)`},
		{"*", true, "credentials need listed origins: with * any site could read the stream with its visitor's cookies"},
		{"null", true, "credentials need listed origins: with null any site could read the stream with its visitor's cookies"},
	} {
		_, err := NewCORS([]string{"https://ok.test", tc.origin}, tc.credentials)
		if err == nil || err.Error() != tc.want {
			t.Errorf("NewCORS(%q, %v): %v, want %q", tc.origin, tc.credentials, err, tc.want)
		}
	}
}

func TestPreflight(t *testing.T) {
	const asked = "Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n" +
		"Access-Control-Allow-Headers: last-event-id, authorization, cache-control, content-type\r\n" +
		"Access-Control-Max-Age: 7200\r\n"
	for _, tc := range []struct{ list, origin, want string }{
		{"https://app.test", "https://app.test", "Access-Control-Allow-Origin: https://app.test\r\nVary: Origin\r\n" + asked},
		{"https://app.test", "https://evil.test", "Vary: Origin\r\n"},
		{"*", "https://app.test", "Access-Control-Allow-Origin: *\r\n" + asked},
		{"", "https://app.test", ""},
	} {
		got := mustCORS(t, false, strings.Fields(tc.list)...).Decide([]byte(tc.origin)).AppendPreflightFields(nil, false)
		if string(got) != tc.want {
			t.Errorf("%q asked by %q: got %q, want %q", tc.list, tc.origin, got, tc.want)
		}
	}
}

func TestIsPreflight(t *testing.T) {
	for _, tc := range []struct {
		origin, method string
		want           bool
	}{
		{"https://app.test", "GET", true},
		{"null", "GET", true},
		{"https://app.test", "POST", true}, // the browser reads from Allow-Methods that it may not
		{"https://app.test", "", false},
		{"", "GET", false},
		{"", "", false},
	} {
		if got := IsPreflight([]byte(tc.origin), []byte(tc.method)); got != tc.want {
			t.Errorf("IsPreflight(%q, %q) = %v", tc.origin, tc.method, got)
		}
	}
}
