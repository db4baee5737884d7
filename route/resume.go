package route

import "bytes"

// ResumeKind says what kind of id a request came with.
type ResumeKind uint8

// The kinds of Resume.
const (
	ResumeNone    ResumeKind = iota // no id: the route's start policy
	ResumeForeign                   // an id that can't be one of ours: resync, never a 400
	ResumeGiven                     // Resume.ID holds it, still to be parsed
)

// Resume is where a client asks to go on.
type Resume struct {
	Kind ResumeKind
	ID   []byte // for ResumeGiven only; aliases the request or the scratch
}

// The query names that may carry an id, first to last: those of the Yaffle
// polyfill, of snake case clients and of the amvtek polyfill.
var resumeNames = [...]string{"lastEventId", "last_event_id", "evs_last_event_id"}

// ResumeID returns where a request asks to resume. header is the value of its
// Last-Event-ID line, repeated whether there was more than one; query is the raw
// query, without the question mark. The header wins, for an EventSource keeps
// the URL it was made with for ever. Empty means none. A name that came twice,
// or a broken escape, makes the id foreign, so that the client hears of it;
// nothing is an error, for EventSource would give up on a 400.
//
// Escapes are decoded once, into scratch[:0], which needs no more room than
// the query. A plus stays a plus.
func ResumeID(header []byte, repeated bool, query, scratch []byte) Resume {
	switch {
	case repeated:
		return Resume{Kind: ResumeForeign}
	case len(header) > 0:
		return Resume{Kind: ResumeGiven, ID: header}
	}
	for _, name := range resumeNames {
		if r := queryID(query, name, scratch); r.Kind != ResumeNone {
			return r
		}
	}
	return Resume{}
}

// queryID is ResumeID for one query name.
func queryID(query []byte, name string, scratch []byte) Resume {
	var raw []byte
	found := false
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, ampersand) // a semicolon is data (WHATWG URL 5.1)
		key, value, _ := bytes.Cut(pair, equals)
		if string(key) != name {
			continue
		}
		if found {
			return Resume{Kind: ResumeForeign}
		}
		raw, found = value, true
	}
	if len(raw) == 0 {
		return Resume{}
	}
	id, ok := unescape(raw, scratch)
	if !ok {
		return Resume{Kind: ResumeForeign}
	}
	return Resume{Kind: ResumeGiven, ID: id}
}

var (
	ampersand = []byte("&")
	equals    = []byte("=")
)

// unescape decodes the percent escapes of raw into scratch[:0], or returns raw
// itself when it has none. False on a broken one.
func unescape(raw, scratch []byte) ([]byte, bool) {
	if bytes.IndexByte(raw, '%') < 0 {
		return raw, true
	}
	dst := scratch[:0]
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return nil, false
			}
			hi, lo := unhex(raw[i+1]), unhex(raw[i+2])
			if hi > 15 || lo > 15 {
				return nil, false
			}
			c = hi<<4 | lo
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, true
}

// unhex is the value of a hex digit, more than 15 for any other byte.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
