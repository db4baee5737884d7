// Package http1 reads and writes HTTP/1.1 (RFC 9112) for the event loop:
// request heads, request bodies, the heads of streams and short answers. Bytes
// to bytes: it opens no socket, reads no clock and allocates nothing.
//
// It is strict where leniency lets two parsers in a row see different requests,
// and lenient only towards what browsers really send. It knows no routes, and
// speaks neither HTTP/2 nor WebSocket.
package http1

import "iter"

// Method is a request method. Methods are case-sensitive.
type Method uint8

// The methods that tailcast answers; for MethodOther see Request.MethodName.
const (
	MethodOther Method = iota
	MethodGet
	MethodHead
	MethodOptions
	MethodPost
)

// Form is how the request target was written (RFC 9112 section 3.2).
// Authority-form belongs to CONNECT, which is refused.
type Form uint8

// The forms of a target.
const (
	FormOrigin   Form = iota // a path: /events?x=1
	FormAbsolute             // a URL: http://gw.test/events?x=1
	FormAsterisk             // OPTIONS for the whole server: * or a URL without path; Path and Query are empty
)

// Name is a header field that is recognised while the head is read. Every
// other field is found by Request.Field.
type Name uint8

// The recognised fields.
const (
	other Name = iota
	Host
	Connection
	ContentLength
	TransferEncoding
	Expect
	Origin
	LastEventID
	Authorization
	Cookie
	ContentType
	RequestMethod  // Access-Control-Request-Method
	RequestHeaders // Access-Control-Request-Headers
	names          // how many there are
)

// Request is one request head. Its slices alias the bytes given to Parse and
// its fields live in the Parser, so it dies with either, and at the latest at
// the next Parse. Loop only.
type Request struct {
	Method     Method
	Form       Form
	Minor      uint8  // of the version: 0, or 1 for all above
	Chunked    bool   // the body comes in chunks
	Length     int64  // of the body as announced; 0 without one and when Chunked
	MethodName []byte // as sent
	Path       []byte // as sent, not decoded: see AppendPath; never empty but in FormAsterisk
	Query      []byte // as sent, without the question mark: see Pairs
	Host       []byte // of the target if that is absolute, else of the Host field: see SplitHost; empty only in HTTP/1.0

	close    bool
	expect   bool
	first    [names]uint8
	repeated uint16
	head     []byte
	fields   []field
}

// Size is the length of the head in bytes.
func (r *Request) Size() int { return len(r.head) }

// HasBody reports whether bytes of a body follow the head, whatever the method.
func (r *Request) HasBody() bool { return r.Chunked || r.Length > 0 }

// KeepAlive reports whether the connection may serve another request after the
// answer to this one, provided that the body was read to its end: an answer
// given before that ends the connection, else the rest of the body would be
// taken for a request. Connections of HTTP/1.0 always end.
func (r *Request) KeepAlive() bool { return r.Minor == 1 && !r.close }

// WantsContinue reports whether the client waits for 100 Continue, or for a
// final answer, before it sends the body (RFC 9110 section 10.1.1).
func (r *Request) WantsContinue() bool { return r.expect && r.HasBody() }

// Value returns the first value of a recognised field: nil when it is missing,
// empty but not nil when it is there without a value.
func (r *Request) Value(n Name) []byte {
	if r.first[n] == 0 {
		return nil
	}
	return r.fields[r.first[n]-1].value(r.head)
}

// Repeated reports whether a recognised field came in more than one line. Host,
// Content-Length and Transfer-Encoding never do: such a request is refused.
func (r *Request) Repeated(n Name) bool { return r.repeated&(1<<n) != 0 }

// Field returns the first value of the field of that name, in any case; nil
// when it is missing.
func (r *Request) Field(name string) []byte {
	for i := range r.fields {
		if equalFold(r.fields[i].name(r.head), name) {
			return r.fields[i].value(r.head)
		}
	}
	return nil
}

// Fields yields name and value of every field line, in their order.
func (r *Request) Fields() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := range r.fields {
			if !yield(r.fields[i].name(r.head), r.fields[i].value(r.head)) {
				return
			}
		}
	}
}

// field is one header line, as places in the head: HeadMax fits 16 bits, and
// the head may move until it is complete.
type field struct {
	start, colon     uint16 // the name is head[start:colon]
	valStart, valEnd uint16 // the value, without the blanks around it
	known            Name
}

func (f *field) name(head []byte) []byte  { return head[f.start:f.colon:f.colon] }
func (f *field) value(head []byte) []byte { return head[f.valStart:f.valEnd:f.valEnd] }
