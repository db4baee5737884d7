package http1

import "strconv"

// Answer is a short answer: anything but a stream. It is never cached, since a
// browser that remembers a 404 does not come back to a route that is there now.
type Answer struct {
	Status      int
	Date        []byte // of now, as RFC 9110 section 5.6.7 writes it
	Allow       string // methods: required with 405 (RFC 9110 section 15.5.6)
	ContentType string // of Body; empty: Body is a line of text, and its end is added
	Body        string // empty: the answer has no content
	Head        bool   // the request was a HEAD: the same fields without the content
	Close       bool   // the connection ends after this answer
	Fields      []byte // more field lines, each ending in CRLF: those of CORS
}

// AppendAnswer appends a, head and content.
func AppendAnswer(dst []byte, a *Answer) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(a.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, reason(a.Status)...)
	dst = append(dst, "\r\n"...)
	dst = appendField(dst, "Date: ", a.Date)
	dst = append(dst, "Cache-Control: no-store\r\n"...)
	dst = appendField(dst, "Allow: ", a.Allow)
	dst = append(dst, a.Fields...)
	if a.Close {
		dst = append(dst, "Connection: close\r\n"...)
	}
	if a.Status == 204 { // has neither length nor content (RFC 9110 section 8.6)
		return append(dst, "\r\n"...)
	}
	end := ""
	if a.Body != "" {
		kind := a.ContentType
		if kind == "" {
			kind, end = "text/plain; charset=utf-8", "\n"
		}
		dst = appendField(dst, "Content-Type: ", kind)
	}
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(a.Body)+len(end)), 10)
	dst = append(dst, "\r\n\r\n"...)
	if a.Head {
		return dst
	}
	dst = append(dst, a.Body...)
	return append(dst, end...)
}

// AppendStreamHead appends the head of an event stream for a client of
// HTTP/1.minor; to a HEAD it is the whole answer. The body that follows comes in chunks, or
// for HTTP/1.0 as it is, ended by the end of the connection. date is that of
// now; cors may be nil.
//
// no-transform and X-Accel-Buffering keep proxies from compressing or holding
// back events. A stream's connection serves no second request, and says so:
// else a client that comes back at once could send it down the ending one.
func AppendStreamHead(dst []byte, minor uint8, date, fields []byte) []byte {
	dst = append(dst, "HTTP/1.1 200 OK\r\n"+
		"Content-Type: text/event-stream\r\n"+
		"Cache-Control: no-store, no-transform\r\n"+
		"X-Accel-Buffering: no\r\n"...)
	dst = appendField(dst, "Date: ", date)
	dst = append(dst, fields...)
	dst = append(dst, "Connection: close\r\n"...)
	if minor > 0 {
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// appendField appends a line, name ending in a colon and a blank. A line
// without value is left out, and so is one that would break the head: cutting
// the bad characters out would make it another value.
func appendField[T string | []byte](dst []byte, name string, value T) []byte {
	if len(value) == 0 || !legalValue(value) {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// reason returns the reason phrase of a status; it may be empty.
func reason(status int) string {
	switch status {
	case 200:
		return "OK"
	case 204:
		return "No Content"
	case 400:
		return "Bad Request"
	case 401:
		return "Unauthorized"
	case 403:
		return "Forbidden"
	case 404:
		return "Not Found"
	case 405:
		return "Method Not Allowed"
	case 406:
		return "Not Acceptable"
	case 408:
		return "Request Timeout"
	case 409:
		return "Conflict"
	case 410:
		return "Gone"
	case 413:
		return "Content Too Large"
	case 414:
		return "URI Too Long"
	case 415:
		return "Unsupported Media Type"
	case 417:
		return "Expectation Failed"
	case 421:
		return "Misdirected Request"
	case 431:
		return "Request Header Fields Too Large"
	case 500:
		return "Internal Server Error"
	case 501:
		return "Not Implemented"
	case 503:
		return "Service Unavailable"
	case 505:
		return "HTTP Version Not Supported"
	}
	return ""
}
