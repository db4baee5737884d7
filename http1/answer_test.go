package http1

import (
	"strings"
	"testing"
)

const testDate = "Mon, 30 Nov 2026 05:24:00 GMT"

// lines joins the lines of a head, and its end.
func lines(l ...string) string { return strings.Join(l, "\r\n") + "\r\n\r\n" }

func TestAppendAnswer(t *testing.T) {
	date := []byte(testDate)
	for _, c := range []struct {
		name string
		a    Answer
		want string
	}{
		{"text", Answer{Status: 404, Date: date, Body: "no such route"}, lines("HTTP/1.1 404 Not Found", "Date: "+testDate,
			"Cache-Control: no-store", "Content-Type: text/plain; charset=utf-8", "Content-Length: 14") + "no such route\n"},
		{"text to HEAD", Answer{Status: 404, Date: date, Body: "no such route", Head: true}, lines("HTTP/1.1 404 Not Found", "Date: "+testDate,
			"Cache-Control: no-store", "Content-Type: text/plain; charset=utf-8", "Content-Length: 14")},
		{"page", Answer{Status: 200, Date: date, Body: "<p>", ContentType: "text/html"}, lines("HTTP/1.1 200 OK", "Date: "+testDate,
			"Cache-Control: no-store", "Content-Type: text/html", "Content-Length: 3") + "<p>"},
		{"nothing", Answer{Status: 200, Date: date}, lines("HTTP/1.1 200 OK", "Date: "+testDate, "Cache-Control: no-store", "Content-Length: 0")},
		{"204", Answer{Status: 204, Date: date, Allow: "GET"}, lines("HTTP/1.1 204 No Content", "Date: "+testDate, "Cache-Control: no-store", "Allow: GET")},
		{"204 with text", Answer{Status: 204, Body: "x"}, lines("HTTP/1.1 204 No Content", "Cache-Control: no-store")},
		{"405", Answer{Status: 405, Date: date, Allow: "GET, HEAD, OPTIONS", Close: true}, lines("HTTP/1.1 405 Method Not Allowed", "Date: "+testDate,
			"Cache-Control: no-store", "Allow: GET, HEAD, OPTIONS", "Connection: close", "Content-Length: 0")},
		{"unknown status", Answer{Status: 499, Date: date}, lines("HTTP/1.1 499 ", "Date: "+testDate, "Cache-Control: no-store", "Content-Length: 0")},
		{"fields", Answer{Status: 403, Fields: []byte("Access-Control-Allow-Origin: *\r\nVary: Origin\r\n")}, lines("HTTP/1.1 403 Forbidden", "Cache-Control: no-store",
			"Access-Control-Allow-Origin: *", "Vary: Origin", "Content-Length: 0")},
		{
			"split",
			Answer{Status: 200, Date: []byte("a\nb"), Allow: "GET\r\nX: y"},
			lines("HTTP/1.1 200 OK", "Cache-Control: no-store", "Content-Length: 0"),
		},
	} {
		if got := string(AppendAnswer([]byte("dst"), &c.a)); got != "dst"+c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, "dst"+c.want)
		}
	}
}

func TestAppendStreamHead(t *testing.T) {
	fields := []byte("Access-Control-Allow-Origin: *\r\n")
	for _, c := range []struct {
		name   string
		minor  uint8
		fields []byte
		want   string
	}{
		{"HTTP/1.1", 1, nil, lines("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Cache-Control: no-store, no-transform",
			"X-Accel-Buffering: no", "Date: "+testDate, "Connection: close", "Transfer-Encoding: chunked")},
		{"HTTP/1.0", 0, nil, lines("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Cache-Control: no-store, no-transform",
			"X-Accel-Buffering: no", "Date: "+testDate, "Connection: close")},
		{"CORS", 1, fields, lines("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Cache-Control: no-store, no-transform",
			"X-Accel-Buffering: no", "Date: "+testDate, "Access-Control-Allow-Origin: *", "Connection: close", "Transfer-Encoding: chunked")},
	} {
		if got := string(AppendStreamHead([]byte("dst"), c.minor, []byte(testDate), c.fields)); got != "dst"+c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, "dst"+c.want)
		}
	}
}

// TestEveryByteInAValue: no byte of a value ends a line of the answer.
func TestEveryByteInAValue(t *testing.T) {
	for b := range 256 {
		for pad := range 9 {
			v := strings.Repeat("a", pad) + string([]byte{byte(b), 'b'})
			got := AppendAnswer(nil, &Answer{Status: 200, Allow: v})
			legal := b >= ' ' && b != 0x7F || b == '\t'
			if strings.Contains(string(got), "Allow: "+v+"\r\n") != legal || strings.Contains(string(got), "Allow") != legal {
				t.Errorf("byte %#x after %d: %q", b, pad, got)
			}
		}
	}
}
