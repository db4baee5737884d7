package http1

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestParseAccepts: one line a request that is well formed, and what of it
// matters. "~" in want stands for a field of the result.
func TestParseAccepts(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		// Request lines.
		{get(), `GET / ? origin 1.1`},
		{request("HEAD /a HTTP/1.1"), `HEAD /a ? origin 1.1`},
		{request("OPTIONS /a HTTP/1.1"), `OPTIONS /a ? origin 1.1`},
		{request("POST /a HTTP/1.1"), `POST /a ? origin 1.1`},
		{request("get / HTTP/1.1"), `other:get / ? origin 1.1`},
		{request("GETS / HTTP/1.1"), `other:GETS / ? origin 1.1`},
		{request("TRACE / HTTP/1.1"), `other:TRACE / ? origin 1.1`},
		{request("!#$%&'*+-.^_`|~09aZ / HTTP/1.1"), "other:!#$%&'*+-.^_`|~09aZ / ? origin 1.1"},
		{request("GET /a/b?x=1&y=2 HTTP/1.1"), `GET /a/b ?x=1&y=2 origin 1.1`},
		{request("GET /?a?b/c HTTP/1.1"), `GET / ?a?b/c origin 1.1`},
		{request("GET /? HTTP/1.1"), `GET / ? origin 1.1`},
		{request("GET // HTTP/1.1"), `GET // ? origin 1.1`},
		{request("GET //a.test/b HTTP/1.1"), `GET //a.test/b ? origin 1.1`},
		{request("GET /%zz%2 HTTP/1.1"), `GET /%zz%2 ? origin 1.1`},
		{request("GET /a;b=c,d:e@f HTTP/1.1"), `GET /a;b=c,d:e@f ? origin 1.1`},
		{request("GET /?a=|&b={x}&c=^`&d=[1]&e=\"<>\\ HTTP/1.1"), "GET / ?a=|&b={x}&c=^`&d=[1]&e=\"<>\\ origin 1.1"},
		{request("GET /http://x HTTP/1.1"), `GET /http://x ? origin 1.1`},
		{request("GET /* HTTP/1.1"), `GET /* ? origin 1.1`},
		{request("GET /%00%0d%0a HTTP/1.1"), `GET /%00%0d%0a ? origin 1.1`},
		{request("GET /?lastEventId=%00&x=%FF HTTP/1.1"), `GET / ?lastEventId=%00&x=%FF origin 1.1`},
		{request("M-SEARCH / HTTP/1.1"), `other:M-SEARCH / ? origin 1.1`},
		{request(strings.Repeat("A", 1000) + " / HTTP/1.1"), "other:" + strings.Repeat("A", 1000) + " / ? origin 1.1"},
		{"GET / HTTP/1.0\r\n\r\n", `GET / ? origin 1.0`},
		{request("GET / HTTP/1.2"), `GET / ? origin 1.1`},
		{request("GET / HTTP/1.9", "Connection: close"), `GET / ? origin 1.1 ends`},
		{request("POST / HTTP/1.3", "Transfer-Encoding: chunked", "Expect: 100-continue"), `POST / ? origin 1.1 chunked waits`},
		{"\r\n" + get(), `GET / ? origin 1.1`},
		{"\r\n\r\n" + get(), `GET / ? origin 1.1`},
		// Absolute-form and asterisk-form.
		{"GET http://a.test/b?c HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET /b ?c absolute 1.1 a.test`},
		{"GET http://a.test HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET / ? absolute 1.1 a.test`},
		{"GET http://a.test/ HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET / ? absolute 1.1 a.test`},
		{"GET http://a.test?c/d HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET / ?c/d absolute 1.1 a.test`},
		{"GET http://a.test? HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET / ? absolute 1.1 a.test`},
		{"GET HTTPS://A.test:443/ HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET / ? absolute 1.1 A.test:443`},
		{"GET http://[::1]:80/x HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET /x ? absolute 1.1 [::1]:80`},
		{"GET http://a.test/ HTTP/1.0\r\n\r\n", `GET / ? absolute 1.0 a.test`},
		{"HEAD hTTp://a.test:/x//y?z HTTP/1.1\r\nHost: gw.test\r\n\r\n", `HEAD /x//y ?z absolute 1.1 a.test:`},
		{"POST http://a.test HTTP/1.1\r\nHost: gw.test\r\n\r\n", `POST / ? absolute 1.1 a.test`},
		{"GET http://a.test/http://b.test/ HTTP/1.1\r\nHost: gw.test\r\n\r\n", `GET /http://b.test/ ? absolute 1.1 a.test`},
		{"OPTIONS * HTTP/1.0\r\n\r\n", `OPTIONS  ? asterisk 1.0`},
		{request("OPTIONS * HTTP/1.1"), `OPTIONS  ? asterisk 1.1`},
		{"OPTIONS http://a.test:81 HTTP/1.1\r\nHost: gw.test\r\n\r\n", `OPTIONS  ? asterisk 1.1 a.test:81`},
		{"OPTIONS http://a.test/ HTTP/1.1\r\nHost: gw.test\r\n\r\n", `OPTIONS / ? absolute 1.1 a.test`},
		{"OPTIONS http://a.test?x HTTP/1.1\r\nHost: gw.test\r\n\r\n", `OPTIONS / ?x absolute 1.1 a.test`},
		// Host values.
		{"GET / HTTP/1.1\r\nHost: gw.test:8080\r\n\r\n", `GET / ? origin 1.1 gw.test:8080`},
		{"GET / HTTP/1.1\r\nHost: gw.test:\r\n\r\n", `GET / ? origin 1.1 gw.test:`},
		{"GET / HTTP/1.1\r\nHost: 127.0.0.1:65535\r\n\r\n", `GET / ? origin 1.1 127.0.0.1:65535`},
		{"GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", `GET / ? origin 1.1 [::1]`},
		{"GET / HTTP/1.1\r\nHost: [::]:8080\r\n\r\n", `GET / ? origin 1.1 [::]:8080`},
		{"GET / HTTP/1.1\r\nHost: [2001:DB8::192.0.2.1]:1\r\n\r\n", `GET / ? origin 1.1 [2001:DB8::192.0.2.1]:1`},
		{"GET / HTTP/1.1\r\nHost: xn--a_b~c-9.test.\r\n\r\n", `GET / ? origin 1.1 xn--a_b~c-9.test.`},
		{"GET / HTTP/1.1\r\nhOsT:\t gw.test \t\r\n\r\n", `GET / ? origin 1.1`},
		{"GET / HTTP/1.1\r\nHost: gw.test:080\r\n\r\n", `GET / ? origin 1.1 gw.test:080`},
		{"GET / HTTP/1.1\r\nHost: [::ffff:192.0.2.1]:\r\n\r\n", `GET / ? origin 1.1 [::ffff:192.0.2.1]:`},
		{"GET / HTTP/1.1\r\nX: y\r\nHost: gw.test\r\n\r\n", `GET / ? origin 1.1`},
		// Fields.
		{get("X-Empty:", "X-Blank:  \t ", "X-T:a", "!#$%&'*+-.^_`|~: \tb\tc "), `GET / ? origin 1.1`},
		{get("Last-Event-ID: v1\xE2\x80\xA6", "X: \xA0\x85\xFF\x80"), `GET / ? origin 1.1`},
		{get("X:" + strings.Repeat(" \t", 500) + "y" + strings.Repeat("\t ", 500)), `GET / ? origin 1.1`},
		{get("X: a", "x: b", "X: a"), `GET / ? origin 1.1`},
		{get("Content-Length: 0"), `GET / ? origin 1.1`},
		{request("HEAD / HTTP/1.1", "Content-Length: 00"), `HEAD / ? origin 1.1`},
		{get("Content-Length: 41"), `GET / ? origin 1.1 length=41`},
		{post("Content-Length: 010"), `POST / ? origin 1.1 length=10`},
		{post("Content-Length:\t7 "), `POST / ? origin 1.1 length=7`},
		{post("Content-Length: " + strings.Repeat("0", 100) + "9"), `POST / ? origin 1.1 length=9`},
		{post("Content-Length: 9223372036854775806"), `POST / ? origin 1.1 length=9223372036854775806`},
		{post("Transfer-Encoding: chunked"), `POST / ? origin 1.1 chunked`},
		{post("tRANSFER-eNCODING:\tChUnKeD\t"), `POST / ? origin 1.1 chunked`},
		{get("Transfer-Encoding: chunked"), `GET / ? origin 1.1 chunked`},
		{post("Trailer: X", "TE: trailers", "Transfer-Encoding: chunked"), `POST / ? origin 1.1 chunked`},
		// The connection.
		{get("Connection: close"), `GET / ? origin 1.1 ends`},
		{get("Connection:CLoSe"), `GET / ? origin 1.1 ends`},
		{get("Connection: keep-alive, X-Foo", "Connection: Upgrade ,  CLoSe\t"), `GET / ? origin 1.1 ends`},
		{get("Connection: close", "Connection: keep-alive"), `GET / ? origin 1.1 ends`},
		{get("Connection: ,close,"), `GET / ? origin 1.1 ends`},
		{get("Connection: \tclose\t,x"), `GET / ? origin 1.1 ends`},
		{get("Connection: closed, not-close, \"close\", close;x, \xA0close"), `GET / ? origin 1.1`},
		{get("Connection:"), `GET / ? origin 1.1`},
		{get("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAR"), `GET / ? origin 1.1`},
		{get("Proxy-Connection: close"), `GET / ? origin 1.1`},
		{get("Connection: close, close", "Keep-Alive: timeout=5"), `GET / ? origin 1.1 ends`},
		{get("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"), `GET / ? origin 1.1`},
		{get("Connection: Content-Length, Host", "Content-Length: 5"), `GET / ? origin 1.1 length=5`},
		{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", `GET / ? origin 1.0`},
		// Expectations.
		{post("Content-Length: 1", "Expect: 100-continue"), `POST / ? origin 1.1 length=1 waits`},
		{post("Expect: 100-Continue", "Transfer-Encoding: chunked"), `POST / ? origin 1.1 chunked waits`},
		{post("Expect: 100-continue , 100-continue", "Expect:", "Content-Length: 1"), `POST / ? origin 1.1 length=1 waits`},
		{get("Expect: 100-continue"), `GET / ? origin 1.1`},
		{post("Expect:", "Content-Length: 1"), `POST / ? origin 1.1 length=1`},
		{"GET / HTTP/1.0\r\nContent-Length: 1\r\nExpect: the-moon, 100-continue\r\n\r\n", `GET / ? origin 1.0 length=1`},
	} {
		var p Parser
		var r Request
		n, err := p.Parse([]byte(c.in), &r)
		if err != nil || n != len(c.in) {
			t.Errorf("Parse(%q) = %d, %v", c.in, n, err)
			continue
		}
		if got := summary(&r); got != c.want {
			t.Errorf("Parse(%q)\n got %s\nwant %s", c.in, got, c.want)
		}
		parseAnyhow(t, []byte(c.in))
		parseAnyhow(t, []byte(c.in+"GET /next HTTP/1.1\r\n"))
		for i := range c.in {
			if got := parseCuts([]byte(c.in[:i])); got.err != ErrIncomplete {
				t.Errorf("Parse(%q) = %+v, want ErrIncomplete", c.in[:i], got)
			}
		}
	}
}

// summary says of r what a line of TestParseAccepts wants to see. The host is
// left out when it is gw.test, or missing in HTTP/1.0.
func summary(r *Request) string {
	method := [...]string{"other:" + string(r.MethodName), "GET", "HEAD", "OPTIONS", "POST"}[r.Method]
	form := [...]string{"origin", "absolute", "asterisk"}[r.Form]
	s := fmt.Sprintf("%s %s ?%s %s 1.%d", method, r.Path, r.Query, form, r.Minor)
	if h := string(r.Host); h != "gw.test" && h != "" {
		s += " " + h
	}
	if r.Length != 0 {
		s += fmt.Sprintf(" length=%d", r.Length)
	}
	if r.Chunked {
		s += " chunked"
	}
	if !r.KeepAlive() && r.Minor == 1 {
		s += " ends"
	}
	if r.WantsContinue() {
		s += " waits"
	}
	return s
}

// TestParseRefuses: one line a request that is refused. at is a part of the
// input: with the end of its first occurrence the refusal must come, though
// nothing follows; empty means with the last byte.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *Error
		at   string
	}{
		// Other protocols.
		{"\x16\x03\x01\x00o\x01\x00", errTLS, "\x16"},
		{"\r\n\x16\x03", errTLS, "\x16"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", errVersionHigh, "2.0\r\n"},
		{"PROXY TCP4 203.0.113.7 192.0.2.1 56324 443\r\n" + get(), errVersion, "443\r\n"},
		{"\r\n\r\n\x00\r\nQUIT\n\x20\x11", errFirstByte, "\x00"},
		{"SSH-2.0-Go\r\n", errRequestLine, ""},
		{"HTTP/1.1 200 OK\r\n", errMethod, ""},
		{"{\"a\":1}", errFirstByte, "{"},
		{" GET / HTTP/1.1\r\n", errFirstByte, " "},
		{"\tGET / HTTP/1.1\r\n", errFirstByte, "\t"},
		{"\x80GET / HTTP/1.1\r\n", errFirstByte, "\x80"},
		{":path: /\r\n", errFirstByte, ":"},
		// Line ends.
		{"\nGET / HTTP/1.1\r\n", errBareLF, "\n"},
		{"GET / HTTP/1.1\nHost: gw.test\n\n", errBareLF, "1.1\n"},
		{get("X: y\nZ: a"), errBareLF, "y\n"},
		{"GET / HTTP/1.1\r\nHost: gw.test\n\r\n", errBareLF, "test\n"},
		{"GET / HTTP/1.1\r\nHost: gw.test\r\n\n", errBareLF, ""},
		{"GET / HTTP/1.1\r\nHost: gw.test\r\n\rZGET / HTTP/1.1\r\n", errNameByte, ""},
		{"GET / HTTP/1.1\r\nHost: gw.test\r\n\r\r\n", errNameByte, ""},
		{"GET / HTTP/1.1\r\r\nHost: gw.test\r\n", errVersion, "1.1\r\r\n"},
		{"GET / HTTP/1.1\rHost: gw.test\r\n\r\n", errVersion, "test\r\n"},
		{get("X: va\rlue"), errValueByte, "lue\r\n"},
		{get("X: value\r"), errValueByte, "value\r\r\n"},
		{get("X\r: value"), errNameByte, "value\r\n"},
		{"\r\n\r\n\r\n" + get(), errEmptyLines, "\r\n\r\n\r\n"},
		{"\r\r\nGET / HTTP/1.1\r\n", errRequestLine, "\r\r\n"},
		{get("X: one", " two"), errFold, "two\r\n"},
		{get("X: one", "\ttwo"), errFold, "two\r\n"},
		{get("X: one", " "), errFold, "one\r\n \r\n"},
		{"POST / HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: gw.test\r\n\r\n", errFold, "chunked\r\n"},
		{"GET / HTTP/1.1\r\n\tX: y\r\nHost: gw.test\r\n\r\n", errFold, "y\r\n"},
		{post("X:", " Content-Length: 5"), errFold, "5\r\n"},
		{post("X: y", "\t\t chunked"), errFold, "chunked\r\n"},
		{"\r\n \r\n" + get(), errFirstByte, "\r\n "},
		// The request line.
		{"GET\r\n", errRequestLine, ""},
		{"GET /\r\n\r\n", errRequestLine, "/\r\n"},
		{"GET HTTP/1.1\r\n", errRequestLine, ""},
		{"GET  HTTP/1.1\r\n", errRequestLine, ""},
		{"GET  / HTTP/1.1\r\n", errVersion, ""},
		{"GET /  HTTP/1.1\r\n", errVersion, ""},
		{"GET\t/ HTTP/1.1\r\n", errRequestLine, ""},
		{"GET /\tHTTP/1.1\r\n", errRequestLine, ""},
		{"GET /\vHTTP/1.1 HTTP/1.1\r\n", errTarget, ""},
		{"GET / HTTP/1.1 \r\n", errVersion, ""},
		{"GET / HTTP/1.1\t\r\n", errVersion, ""},
		{"GET /a b HTTP/1.1\r\n", errVersion, ""},
		{"G@T / HTTP/1.1\r\n", errMethod, ""},
		{"GE\xC3\xA9T / HTTP/1.1\r\n", errMethod, ""},
		{"GET: / HTTP/1.1\r\n", errMethod, ""},
		{"CONNECT example.org:443 HTTP/1.1\r\n", errConnect, ""},
		{"CONNECT / HTTP/1.0\r\n", errConnect, ""},
		// Versions.
		{"GET / http/1.1\r\n", errVersion, ""},
		{"GET / Http/1.1\r\n", errVersion, ""},
		{"GET / HTTP/1.10\r\n", errVersion, ""},
		{"GET / HTTP/01.1\r\n", errVersion, ""},
		{"GET / HTTP/11\r\n", errVersion, ""},
		{"GET / HTTP/1,1\r\n", errVersion, ""},
		{"GET / HTTP/1.\r\n", errVersion, ""},
		{"GET / HTTP/.1\r\n", errVersion, ""},
		{"GET / HTTP/1.x\r\n", errVersion, ""},
		{"GET / HTTP/+.1\r\n", errVersion, ""},
		{"GET / HTTP/\r\r1.1\r\n", errVersion, ""},
		{"GET / HTTP/\xB9.1\r\n", errVersion, ""},
		{"GET / ICE/1.0\r\n", errVersion, ""},
		{"GET / HTTPS/1.1\r\n", errVersion, ""},
		{"GET / RTSP/1.0\r\n", errVersion, ""},
		{"GET / \r\n", errVersion, ""},
		{"GET / HTTP/1.1HTTP/1.1\r\n", errVersion, ""},
		{"GET / HTTP/1.-1\r\n", errVersion, ""},
		{"GET / HTTP /1.1\r\n", errVersion, ""},
		{"GET / HTTP/1.1;x\r\n", errVersion, ""},
		{"GET / \xA0HTTP/1.1\r\n", errVersion, ""},
		{"GET / HTTP/0.0\r\n", errVersionHigh, ""},
		{"GET / HTTP/3.0\r\n", errVersionHigh, ""},
		{"GET / HTTP/0.9\r\n", errVersionHigh, ""},
		{"GET / HTTP/2.0\r\n", errVersionHigh, ""},
		{"GET / HTTP/9.9\r\n", errVersionHigh, ""},
		// Targets.
		{"GET foo HTTP/1.1\r\n", errTargetForm, ""},
		{"GET ?x HTTP/1.1\r\n", errTargetForm, ""},
		{"GET gw.test:80 HTTP/1.1\r\n", errTargetForm, ""},
		{"GET . HTTP/1.1\r\n", errTargetForm, ""},
		{"GET \\ HTTP/1.1\r\n", errTargetForm, ""},
		{"GET * HTTP/1.1\r\n", errAsterisk, ""},
		{"POST * HTTP/1.1\r\n", errAsterisk, ""},
		{"options * HTTP/1.1\r\n", errAsterisk, ""},
		{"OPTIONS *x HTTP/1.1\r\n", errTargetForm, ""},
		{"OPTIONS ** HTTP/1.1\r\n", errTargetForm, ""},
		{"OPTIONS *?x HTTP/1.1\r\n", errTargetForm, ""},
		{"HEAD * HTTP/1.1\r\n", errAsterisk, ""},
		{"GET %2F HTTP/1.1\r\n", errTargetForm, ""},
		{"GET ../ HTTP/1.1\r\n", errTargetForm, ""},
		{"GET @a.test HTTP/1.1\r\n", errTargetForm, ""},
		{"GET file:///etc/passwd HTTP/1.1\r\n", errTargetForm, ""},
		{"GET http%3A//a.test/ HTTP/1.1\r\n", errTargetForm, ""},
		{"GET http:\\\\a.test HTTP/1.1\r\n", errTargetForm, ""},
		{"GET /\x7F HTTP/1.1\r\n", errTarget, ""},
		{"GET /\x00 HTTP/1.1\r\n", errTarget, ""},
		{"GET http://a.test,b.test/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://a.test:/:80/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", errHostTwice, "Host: b\r\n"},
		{"GET /a#b HTTP/1.1\r\n", errTarget, ""},
		{"GET /?a#b HTTP/1.1\r\n", errTarget, ""},
		{"GET # HTTP/1.1\r\n", errTarget, ""},
		{"GET /d\xC3\xA9t HTTP/1.1\r\n", errTarget, ""},
		{"GET ftp://a.test/ HTTP/1.1\r\n", errTargetForm, ""},
		{"GET ws://a.test/ HTTP/1.1\r\n", errTargetForm, ""},
		{"GET http:/a HTTP/1.1\r\n", errTargetForm, ""},
		{"GET http:a HTTP/1.1\r\n", errTargetForm, ""},
		{"GET http HTTP/1.1\r\n", errTargetForm, ""},
		{"GET ://a HTTP/1.1\r\n", errTargetForm, ""},
		{"GET httpx://a.test/ HTTP/1.1\r\n", errTargetForm, ""},
		{"GET http:// HTTP/1.1\r\n", errAuthority, ""},
		{"GET http:/// HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://?x HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://:80/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://u@a.test/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://u:p@a.test/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://a.test:99999/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://a.test\\@b.test/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://[::1/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://a%2Ftest/ HTTP/1.1\r\n", errAuthority, ""},
		{"GET http://a.test#/ HTTP/1.1\r\n", errTarget, ""},
		{"GET http://a.test/ HTTP/1.1\r\n\r\n", errHostMissing, ""},
		// Host.
		{"GET / HTTP/1.1\r\n\r\n", errHostMissing, ""},
		{"GET / HTTP/1.1\r\nX: y\r\n\r\n", errHostMissing, ""},
		{"GET / HTTP/1.1\r\nHosts: gw.test\r\n\r\n", errHostMissing, ""},
		{get("Host: gw.test"), errHostTwice, "gw.test\r\nHost: gw.test\r\n"},
		{get("X: y", "hOST: gw.test"), errHostTwice, "hOST: gw.test\r\n"},
		{"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", errHostTwice, "a\r\nHost: a\r\n"},
		{"GET / HTTP/1.0\r\nHost: a b\r\n\r\n", errHost, "b\r\n"},
		{"GET / HTTP/1.2\r\nX: y\r\n\r\n", errHostMissing, ""},
		{"GET http://a.test/ HTTP/1.1\r\nHost: a b\r\n\r\n", errHost, "b\r\n"},
		// Names of fields.
		{get("Content-Length : 41"), errNameBlank, "41\r\n"},
		{get("X\t: y"), errNameBlank, "y\r\n"},
		{get("X y: z"), errNameBlank, "z\r\n"},
		{get("Content-Length 41"), errNameBlank, "41\r\n"},
		{get("Content-Length"), errNoColon, "Length\r\n"},
		{get(": ignored"), errNameEmpty, "ignored\r\n"},
		{get(":"), errNameEmpty, "test\r\n:\r\n"},
		{get("Fo@o(bar): x"), errNameByte, "x\r\n"},
		{get("\xA0X: y"), errNameByte, "y\r\n"},
		{get("X\x00: y"), errNameByte, "y\r\n"},
		{get("X\x0B: y"), errNameByte, "y\r\n"},
		{get("\"X\": y"), errNameByte, "y\r\n"},
		{get("X,Y: z"), errNameByte, "z\r\n"},
		{get("{}: z"), errNameByte, "z\r\n"},
		{get("X;y"), errNameByte, "y\r\n"},
		{post("Transfer-Encoding\t: chunked"), errNameBlank, "chunked\r\n"},
		// Values of fields.
		{get("X: a\x00"), errValueByte, "\x00\r\n"},
		{get("X: \x7F"), errValueByte, "\x7F\r\n"},
		{get("X: \x1B[31m"), errValueByte, "31m\r\n"},
		{get("Last-Event-ID: v1:0-5\x00"), errValueByte, "\x00\r\n"},
		// Content-Length.
		{post("Content-Length: "), errLength, "Length: \r\n"},
		{post("Content-Length:"), errLength, "Length:\r\n"},
		{post("Content-Length: +41"), errLength, "41\r\n"},
		{post("Content-Length: -41"), errLength, "41\r\n"},
		{post("Content-Length: -0"), errLength, "-0\r\n"},
		{post("Content-Length: 0x29"), errLength, "29\r\n"},
		{post("Content-Length: 4_1"), errLength, "4_1\r\n"},
		{post("Content-Length: 41x"), errLength, "41x\r\n"},
		{post("Content-Length: 41.0"), errLength, "41.0\r\n"},
		{post("Content-Length: 4 1"), errLength, "4 1\r\n"},
		{post("Content-Length: 4\t1"), errLength, "4\t1\r\n"},
		{post("Content-Length: 5,5"), errLength, "5,5\r\n"},
		{post("Content-Length: 5, 5"), errLength, "5, 5\r\n"},
		{post("Content-Length: ,5"), errLength, ",5\r\n"},
		{post("Content-Length: 5,"), errLength, "5,\r\n"},
		{post("Content-Length: \"5\""), errLength, "\"5\"\r\n"},
		{post("Content-Length: \xA05"), errLength, "\xA05\r\n"},
		{post("Content-Length: 5\x85"), errLength, "5\x85\r\n"},
		{post("Content-Length: \xEF\xBC\x95"), errLength, "\x95\r\n"},
		{post("Content-Length: 1e3"), errLength, "1e3\r\n"},
		{post("Content-Length: 18446744073709551621"), errLengthBig, "621\r\n"},
		{post("Content-Length: 9223372036854775807"), errLengthBig, "807\r\n"},
		{post("Content-Length: 9223372036854775808"), errLengthBig, "808\r\n"},
		{post("Content-Length: 99999999999999999999999999999999999999"), errLengthBig, "99\r\n"},
		{post("Content-Length: 99999999999999999999999999999999999999x"), errLength, "x\r\n"},
		{post("Content-Length: 5", "Content-Length: 5"), errLengthTwice, "5\r\nContent-Length: 5\r\n"},
		{post("Content-Length: 41", "Content-Length: 0"), errLengthTwice, "0\r\n"},
		{get("Content-Length: 0", "content-length:"), errLengthTwice, "length:\r\n"},
		{post("Content-Length: 5, 6"), errLength, "6\r\n"},
		{post("Content-Length: 5;"), errLength, "5;\r\n"},
		{post("Content-Length: 0\x0B"), errValueByte, "\x0B\r\n"},
		{post("Content-Length: 1\r"), errValueByte, "1\r\r\n"},
		{"POST / HTTP/1.0\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", errLengthTwice, "5\r\nContent-Length: 5\r\n"},
		// Transfer-Encoding.
		{post("Content-Length: 5", "Transfer-Encoding: chunked"), errLengthCoding, "chunked\r\n"},
		{post("Transfer-Encoding: chunked", "Content-Length: 5"), errLengthCoding, "5\r\n"},
		{post("Transfer-Encoding: chunked", "Content-Length: 0"), errLengthCoding, "0\r\n"},
		{post("Content-Length: 0", "Transfer-Encoding:"), errLengthCoding, "coding:\r\n"},
		{post("Transfer-Encoding:"), errCoding, "Encoding:\r\n"},
		{post("Transfer-Encoding: ,"), errCoding, ",\r\n"},
		{post("Transfer-Encoding: identity"), errCoding, "identity\r\n"},
		{post("Transfer-Encoding: blegh"), errCoding, "blegh\r\n"},
		{post("Transfer-Encoding: xchunked"), errCoding, "xchunked\r\n"},
		{post("Transfer-Encoding: chunked;q=1"), errCoding, "q=1\r\n"},
		{post("Transfer-Encoding: chunked, gzip"), errCoding, "gzip\r\n"},
		{post("Transfer-Encoding: chunked, "), errCoding, "chunked, \r\n"},
		{post("Transfer-Encoding: chunked,"), errCoding, "chunked,\r\n"},
		{post("Transfer-Encoding: chunk ed"), errCoding, "ed\r\n"},
		{post("Transfer-Encoding: \"chunked\""), errCoding, "\"\r\n"},
		{post("Transfer-Encoding: \xA0chunked\xA0"), errCoding, "\xA0\r\n"},
		{post("Transfer-Encoding: chunked\x85"), errCoding, "\x85\r\n"},
		{post("Transfer-Encoding: chunKed\xE2\x84\xAA"), errCoding, "\xAA\r\n"},
		{post("Transfer-Encoding: ,chunked"), errCodingUnknown, "chunked\r\n"},
		{post("Transfer-Encoding: gzip, chunked"), errCodingUnknown, "chunked\r\n"},
		{post("Transfer-Encoding: chunked, chunked"), errCodingUnknown, "chunked\r\n"},
		{post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), errCodingTwice, "chunked\r\nTransfer-Encoding: chunked\r\n"},
		{post("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), errCodingTwice, "identity\r\n"},
		{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", errCodingIn10, "chunked\r\n"},
		{"POST / HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n", errCodingIn10, "gzip\r\n"},
		{get("Transfer-Encoding: identity"), errCoding, "identity\r\n"},
		{post("Transfer-Encoding: gzip"), errCoding, "gzip\r\n"},
		{post("Transfer-Encoding: chunked;"), errCoding, "chunked;\r\n"},
		{post("Transfer-Encoding: chunked chunked"), errCoding, "chunked chunked\r\n"},
		{post("Transfer-Encoding: chunk\xC3\xA9d"), errCoding, "d\r\n"},
		{post("Transfer-Encoding: identity, chunked"), errCodingUnknown, "chunked\r\n"},
		{post("Transfer-Encoding: x\t,\tChunked"), errCodingUnknown, "Chunked\r\n"},
		{post("Transfer-Encoding: \x0Bchunked"), errValueByte, "chunked\r\n"},
		{post("Transfer-Encoding: chunked\x00"), errValueByte, "\x00\r\n"},
		{post("Transfer-Encoding: chunked", "Content-Length:"), errLength, "Length:\r\n"},
		// Expectations.
		{get("Expect: the-moon"), errExpectation, "moon\r\n"},
		{get("Expect: 100-continue, x"), errExpectation, "x\r\n"},
		{get("Expect: 100-continue;a=b"), errExpectation, "b\r\n"},
		{get("Expect: 100"), errExpectation, "100\r\n"},
		{get("Expect: \"100-continue\""), errExpectation, "\"\r\n"},
		{get("Expect: 100-continue", "Expect: x"), errExpectation, "x\r\n"},
	} {
		if got := parseAnyhow(t, []byte(c.in)); got.err != c.want || got.n != 0 {
			t.Errorf("Parse(%q): %v, want %v", c.in, got.err, c.want)
			continue
		}
		end := len(c.in)
		if c.at != "" {
			end = strings.Index(c.in, c.at) + len(c.at)
		}
		if got := parseCuts([]byte(c.in[:end])); got.err != c.want {
			t.Errorf("Parse(%q): %v, want %v", c.in[:end], got.err, c.want)
		}
		if got := parseCuts([]byte(c.in[:end-1])); got.err != ErrIncomplete {
			t.Errorf("Parse(%q): %v, want ErrIncomplete", c.in[:end-1], got.err)
		}
	}
}

// TestParseEveryByte puts each of the 256 bytes in each kind of place.
func TestParseEveryByte(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const host = "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	in := func(set string) func(byte) bool {
		return func(c byte) bool { return strings.IndexByte(set, c) >= 0 }
	}
	visible := func(c byte) bool { return c > ' ' && c < 0x7F }
	target := func(c byte) bool { return visible(c) && c != '#' }
	value := func(c byte) bool { return visible(c) || c >= 0x80 || c == ' ' || c == '\t' }
	never := func(byte) bool { return false }
	for _, c := range []struct {
		place, before, after string
		good                 func(byte) bool
	}{
		{"method, first", "", "ET / HTTP/1.1\r\nHost: a\r\n\r\n", in(token)},
		{"method, inner", "G", "T / HTTP/1.1\r\nHost: a\r\n\r\n", in(token)},
		{"method, last", "GE", " / HTTP/1.1\r\nHost: a\r\n\r\n", in(token)},
		{"between method and target", "GET", "/ HTTP/1.1\r\nHost: a\r\n\r\n", in(" ")},
		{"path", "GET /a", "b HTTP/1.1\r\nHost: a\r\n\r\n", target},
		{"query", "GET /?a", "b HTTP/1.1\r\nHost: a\r\n\r\n", target},
		{"between target and version", "GET /", "HTTP/1.1\r\nHost: a\r\n\r\n", in(" ")},
		{"before the version", "GET / ", "HTTP/1.1\r\nHost: a\r\n\r\n", never},
		{"major version", "GET / HTTP/", ".1\r\nHost: a\r\n\r\n", in("1")},
		{"dot of the version", "GET / HTTP/1", "1\r\nHost: a\r\n\r\n", in(".")},
		{"minor version", "GET / HTTP/1.", "\r\nHost: a\r\n\r\n", in("0123456789")},
		{"behind the version", "GET / HTTP/1.1", "\r\nHost: a\r\n\r\n", never},
		{"absolute host", "GET http://a", "b/ HTTP/1.1\r\nHost: a\r\n\r\n", in(host + "/?")},
		{"host, inner", "GET / HTTP/1.1\r\nHost: a", "b\r\n\r\n", in(host)},
		{"host, first", "GET / HTTP/1.1\r\nHost:", "b\r\n\r\n", in(host + " \t")},
		{"port", "GET / HTTP/1.1\r\nHost: b:1", "2\r\n\r\n", in("0123456789")},
		{"address", "GET / HTTP/1.1\r\nHost: [:", ":1]\r\n\r\n", in("0123456789abcdefABCDEF.:")},
		{"first of a line", "GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n\r\n", in(token)},
		{"name", "GET / HTTP/1.1\r\nHost: a\r\nX", "Y: z\r\n\r\n", in(token + ":")},
		{"before the colon", "GET / HTTP/1.1\r\nHost: a\r\nXY", ": z\r\n\r\n", in(token + ":")},
		{"behind the colon", "GET / HTTP/1.1\r\nHost: a\r\nX:", "y\r\n\r\n", value},
		{"value", "GET / HTTP/1.1\r\nHost: a\r\nX: y", "z\r\n\r\n", value},
		{"eighth of a value", "GET / HTTP/1.1\r\nHost: a\r\nX: 1234567", "90123456\r\n\r\n", value},
		{"end of a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y", "\r\n\r\n", value},
		{"empty value", "GET / HTTP/1.1\r\nHost: a\r\nX:", "\r\n\r\n", value},
		{"behind the last line", "GET / HTTP/1.1\r\nHost: a\r\n", "\r\n", never},
		{"in the last line end", "GET / HTTP/1.1\r\nHost: a\r\n\r", "\n", in("\n")}, // the head ends there
		{"length", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1", "2\r\n\r\n", in("0123456789")},
		{"behind the length", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1", "\r\n\r\n", in("0123456789 \t")},
		{"before chunked", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:", "chunked\r\n\r\n", in(" \t")},
		{"behind chunked", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", "\r\n\r\n", in(" \t")},
	} {
		for b := range 256 {
			in := c.before + string([]byte{byte(b)}) + c.after
			got := parseCuts([]byte(in))
			if c.good(byte(b)) != (got.err == nil) {
				t.Errorf("%s: byte %#x: %v", c.place, b, got.err)
			}
			if _, ok := got.err.(*Error); got.err != nil && !ok {
				t.Errorf("%s: byte %#x: %v leaves the client waiting", c.place, b, got.err)
			}
		}
	}
}

// TestParseHost: values that are no host (RFC 9112 section 3.2).
func TestParseHost(t *testing.T) {
	for _, host := range []string{
		"", ":", ":80", "gw.test/evil?x HTTP", "a@gw.test", "gw.test,evil.test", "gw test", "gw.test:80:81",
		"gw.test:http", "gw.test:+80", "gw.test:-1", "gw.test: 80", "gw.test :80", "gw.test:65536", "gw.test:000080",
		"http://gw.test", "gw.test/", "gw.test?", "gw.test#", "gw%2etest", "g\xC3\xA9.test", "\"gw.test\"", "gw.test\\",
		"::1", "[::1", "::1]", "[]", "[:]", "[1]", "[1:2]", "[abc:]", "[::1]x", "[::1]x:80", "[::1]:x", "[::1]:80:80", "[::1%25eth0]", "[v1.a:b:c]",
		"[::g]", "[[::1]]", "x[::1]", "gw.test]",
	} {
		if got := parseAnyhow(t, []byte("GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n")); got.err != errHost {
			t.Errorf("Host: %q: %v", host, got.err)
		}
	}
}

func TestSplitHost(t *testing.T) {
	for _, c := range []struct{ host, name, port string }{
		{"gw.test", "gw.test", ""},
		{"gw.test:8080", "gw.test", "8080"},
		{"gw.test:", "gw.test", ""},
		{"[::1]", "[::1]", ""},
		{"[::1]:8080", "[::1]", "8080"},
		{"", "", ""},
	} {
		if name, port := SplitHost([]byte(c.host)); string(name) != c.name || string(port) != c.port {
			t.Errorf("SplitHost(%q) = %q, %q", c.host, name, port)
		}
	}
}

// TestParseLimits: the last size that is taken and the first that is not.
func TestParseLimits(t *testing.T) {
	fill := func(head string, size int) string { // makes head size bytes long at the *
		return strings.Replace(head, "*", strings.Repeat("a", size-len(head)+1), 1)
	}
	fields := func(n int) string { return strings.Repeat("X: y\r\n", n-1) } // Host is one
	for _, c := range []struct {
		name, in string
		want     error
	}{
		{"request line", fill("GET /* HTTP/1.1\r\n", RequestLineMax) + "Host: a\r\n\r\n", nil},
		{"request line", fill("GET /* HTTP/1.1\r\n", RequestLineMax+1) + "Host: a\r\n\r\n", errLineLong},
		{"request line after empty lines", "\r\n\r\n" + fill("GET /* HTTP/1.1\r\n", RequestLineMax) + "Host: a\r\n\r\n", nil},
		{"request line without end", "GET /" + strings.Repeat("a", RequestLineMax), errLineLong},
		{"bad request line", "@ET /" + strings.Repeat("a", RequestLineMax), errFirstByte},
		{"bad long request line", "G@T /" + strings.Repeat("a", RequestLineMax) + "\r\n", errLineLong},
		{"head", fill("GET / HTTP/1.1\r\nHost: a\r\nX: *\r\n\r\n", HeadMax), nil},
		{"head", fill("GET / HTTP/1.1\r\nHost: a\r\nX: *\r\n\r\n", HeadMax+1), errHeadLong},
		{"head with empty lines", "\r\n\r\n" + fill("GET / HTTP/1.1\r\nHost: a\r\nX: *\r\n\r\n", HeadMax-4), nil},
		{"head with empty lines", "\r\n\r\n" + fill("GET / HTTP/1.1\r\nHost: a\r\nX: *\r\n\r\n", HeadMax-3), errHeadLong},
		{"head without end", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", HeadMax), errHeadLong},
		{"bad line beyond the limit", fill("GET / HTTP/1.1\r\nHost: a\r\nX: *\r\n\x00\r\n", HeadMax+3), errHeadLong},
		{"bad line at the limit", fill("GET / HTTP/1.1\r\nHost: a\r\nX: *\r\n\x00\r\n", HeadMax), errNameByte},
		{"fields", "GET / HTTP/1.1\r\nHost: a\r\n" + fields(FieldsMax) + "\r\n", nil},
		{"fields", "GET / HTTP/1.1\r\nHost: a\r\n" + fields(FieldsMax+1) + "\r\n", errFieldsMany},
		{"late second Host", "GET / HTTP/1.1\r\nHost: a\r\n" + fields(FieldsMax-1) + "Host: a\r\n\r\n", errHostTwice},
	} {
		if got := parseAnyhow(t, []byte(c.in)); got.err != c.want {
			t.Errorf("%s, %d bytes: %v, want %v", c.name, len(c.in), got.err, c.want)
		}
	}
}

// TestParseFields: what the fields of a request say, known and unknown ones.
func TestParseFields(t *testing.T) {
	r := mustParse(t, get("Last-Event-ID: a", "last-event-id: b", "Origin:", "X-Challenge:  n.x \t",
		"Cookie: a=b; c=d", "aUTHORIZATION: Bearer x", "Access-Control-Request-Method: GET",
		"Access-Control-Request-Headers: last-event-id", "Content-Type: a/b", "x-challenge: second"))
	for _, c := range []struct {
		name     Name
		want     string
		repeated bool
	}{
		{Host, "gw.test", false},
		{LastEventID, "a", true},
		{Origin, "", false},
		{Cookie, "a=b; c=d", false},
		{Authorization, "Bearer x", false},
		{RequestMethod, "GET", false},
		{RequestHeaders, "last-event-id", false},
		{ContentType, "a/b", false},
	} {
		if v := r.Value(c.name); v == nil || string(v) != c.want || r.Repeated(c.name) != c.repeated {
			t.Errorf("%s: %q, repeated %t", nameText[c.name], v, r.Repeated(c.name))
		}
	}
	for n := other + 1; n < names; n++ {
		if got := nameOf([]byte(strings.ToUpper(nameText[n]))); got != n {
			t.Errorf("nameOf(%q) = %d, want %d", nameText[n], got, n)
		}
	}
	if v := r.Value(Expect); v != nil || r.Repeated(Expect) {
		t.Errorf("a missing field has the value %q", v)
	}
	for name, want := range map[string]string{"x-challenge": "n.x", "X-CHALLENGE": "n.x", "HOST": "gw.test", "origin": ""} {
		if v := r.Field(name); v == nil || string(v) != want {
			t.Errorf("Field(%q) = %q", name, v)
		}
	}
	if v := r.Field("x-challeng"); v != nil {
		t.Errorf("Field of a missing name = %q", v)
	}
	for name := range r.Fields() {
		if string(name) != "Host" {
			t.Errorf("the first field is %q", name)
		}
		break
	}
}

// TestParseClients: heads of real clients, with what an event stream reads of them.
func TestParseClients(t *testing.T) {
	heads := heads(t)
	for _, c := range []struct{ client, want, origin, id string }{
		{"chrome", "GET /events ? origin 1.1 events.example.com", "https://app.example.com", "v1:0-5812.1-5790.2-5833~ab3f9"},
		{"firefox", "GET /events ?lastEventId=v1%3A0-5812~ab3f9 origin 1.1 127.0.0.1:18080", "", ""},
		{"safari", "GET /events ? origin 1.1 events.example.com", "https://app.example.com", "v1:0-42~ab3f9"},
		{"curl", "GET /events ? origin 1.1 127.0.0.1:18080", "", ""},
		{"preflight", "OPTIONS /events ? origin 1.1 events.example.com", "https://app.example.com", ""},
		{"proxied", "GET /events/eu%2Dwest ? origin 1.1 gw.internal:8080", "", ""},
		{"challenge", "POST /events ? origin 1.1 events.example.com", "https://app.example.com", ""},
	} {
		head, ok := heads[c.client]
		if !ok {
			t.Errorf("no head of %s", c.client)
			continue
		}
		r := mustParse(t, string(head))
		if got := summary(r); got != c.want || string(r.Value(Origin)) != c.origin || string(r.Value(LastEventID)) != c.id {
			t.Errorf("%s: %s, origin %q, id %q", c.client, got, r.Value(Origin), r.Value(LastEventID))
		}
		parseAnyhow(t, head)
	}
}

// TestParseReuse: a parser starts anew after a head, an error and a Reset, and
// an unfinished head leaves nothing behind.
func TestParseReuse(t *testing.T) {
	var p Parser
	var r Request
	full := post("Connection: close", "Content-Length: 7", "Expect: 100-continue", "Last-Event-ID: a", "Last-Event-ID: b")
	want := parseCuts([]byte(get()))
	for _, before := range []string{full, full[:len(full)-3], "\r\n" + full[:60], get("Content-Length: x"), "@", "GET http://a.test/ HTTP/1.1\r\nHost: b\r\n\r\n"} {
		if _, err := p.Parse([]byte(before), &r); err == ErrIncomplete {
			p.Reset()
		}
		if got := parseWith(&p, []byte(get())); got != want {
			t.Errorf("after %q: %+v\nwant %+v", before, got, want)
		}
	}
}

// TestParseResumes: a parser that waits for more has looked at all there is and
// goes on behind it, so that a head in small pieces costs no more than a whole one.
func TestParseResumes(t *testing.T) {
	var p Parser
	var r Request
	head := []byte("\r\n" + get("Cookie: "+strings.Repeat("x", 1000), "X: y"))
	for i := range head {
		if _, err := p.Parse(head[:i], &r); err != ErrIncomplete || p.scan != i || p.line > i {
			t.Fatalf("after %d bytes: %v, goes on at %d in the line at %d", i, err, p.scan, p.line)
		}
	}
}

// TestParsePipelined: n is where the next request begins.
func TestParsePipelined(t *testing.T) {
	var p Parser
	var r Request
	in := []byte(get() + request("HEAD /second HTTP/1.1") + "\r\n" + get("X: y") + "GET")
	for _, want := range []string{"/", "/second", "/"} {
		n, err := p.Parse(in, &r)
		if err != nil || string(r.Path) != want {
			t.Fatalf("Parse(%q): %q, %v", in, r.Path, err)
		}
		in = in[n:]
	}
	if _, err := p.Parse(in, &r); err != ErrIncomplete {
		t.Errorf("Parse(%q): %v", in, err)
	}
}

// TestErrors: what a refusal says can be sent and logged.
func TestErrors(t *testing.T) {
	_, err := new(Parser).Parse([]byte("\x16"), new(Request))
	var e *Error
	if !errors.As(err, &e) || err.Error() != e.Reason {
		t.Fatalf("%#v", err)
	}
	for _, e := range []*Error{errTLS, errBodyLong, errLineLong, errExpectation, errHeadLong, errConnect, errVersionHigh} {
		if reason(e.Status) == "" || !legalValue(e.Reason) || e.Reason == "" {
			t.Errorf("%d %q can't be sent", e.Status, e.Reason)
		}
	}
}
