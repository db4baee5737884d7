package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// addSeeds gives a fuzz target the hard cases and the heads of real clients.
func addSeeds(f *testing.F, add func(in []byte)) {
	for _, c := range loadCases(f) {
		if len(c.Input) < 2000 { // mutating larger ones finds little, slowly
			add(c.Input)
		}
	}
	for _, head := range heads(f) {
		add(head)
	}
}

// FuzzParse: what comes out does not depend on how the input is cut, and holds
// together.
func FuzzParse(f *testing.F) {
	addSeeds(f, func(in []byte) { f.Add(in) })
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:min(len(in), HeadMax+100)]
		want := parseCuts(in)
		every := everyByte(in)
		if len(in) > 2000 { // copying the head for each byte would be most of the time
			every = slices.DeleteFunc(every, func(i int) bool { return i%61 != 0 })
		}
		if got := parseCuts(in, every...); got != want {
			t.Fatalf("in pieces: %+v\nwhole:     %+v", got, want)
		}
		for i := 0; i < len(in); i += 1 + len(in)/64 {
			if got := parseCuts(in, i); got != want {
				t.Fatalf("cut at %d: %+v\nwhole:     %+v", i, got, want)
			}
		}
		var p Parser
		var r Request
		n, err := p.Parse(in, &r)
		switch {
		case err == nil:
			checkRequest(t, &r, in[:n])
		case n != 0:
			t.Fatalf("n = %d with %v", n, err)
		case err == ErrIncomplete:
			if len(in) >= HeadMax {
				t.Fatalf("asks for more after %d bytes", len(in))
			}
		case err.(*Error).Status < 400:
			t.Fatalf("refused with %d", err.(*Error).Status)
		}
	})
}

// checkRequest checks what holds for every request, and that it lies in head.
func checkRequest(t *testing.T, r *Request, head []byte) {
	t.Helper()
	if !bytes.HasSuffix(head, []byte("\r\n\r\n")) || len(head) > HeadMax {
		t.Fatalf("not a head: %q", head)
	}
	parts := [][]byte{r.MethodName, r.Path, r.Query, r.Host}
	for name, value := range r.Fields() {
		parts = append(parts, name, value)
	}
	start := uintptr(unsafe.Pointer(&head[0]))
	for _, part := range parts {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
		if part != nil && (at < start || at+uintptr(cap(part)) > start+uintptr(len(head))) {
			t.Fatalf("%q is not a part of the head", part)
		}
		if !legalValue(part) {
			t.Fatalf("%q has a control character", part)
		}
	}
	switch {
	case len(r.MethodName) == 0,
		len(r.Host) == 0 && r.Minor == 1,
		r.Chunked && (r.Length != 0 || r.Minor == 0),
		r.Length < 0,
		len(r.fields) > FieldsMax:
		t.Fatalf("does not hold together: %s", describe(r))
	case r.Form == FormAsterisk:
		if len(r.Path) != 0 || r.Method != MethodOptions {
			t.Fatalf("asterisk: %s", describe(r))
		}
	case r.Path[0] != '/':
		t.Fatalf("path: %s", describe(r))
	}
}

// FuzzBody: the data of a body does not depend on how it is cut, and net/http
// reads the same from every body that we take. It may refuse where its own
// limits are narrower.
func FuzzBody(f *testing.F) {
	for _, c := range loadCases(f) {
		if _, body, ok := bytes.Cut(c.Input, []byte("\r\n\r\n")); ok && len(body) < 2000 {
			f.Add(true, body)
		}
	}
	f.Add(false, []byte("0123456789"))
	f.Add(true, []byte("a;x=1;y=\"q;\\\"z\"\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n"))
	f.Fuzz(func(t *testing.T, chunked bool, in []byte) {
		head := post("Content-Length: 10")
		if chunked {
			head = post("Transfer-Encoding: chunked")
		}
		const limit = 1000
		in = in[:min(len(in), 2000)]
		r := mustParse(t, head)
		got := readCuts(r, limit, in)
		if pieces := readCuts(r, limit, in, everyByte(in)...); pieces != got {
			t.Fatalf("in pieces: %+v\nwhole:     %+v", pieces, got)
		}
		for i := 0; i < len(in); i += 1 + len(in)/64 {
			if cut := readCuts(r, limit, in, i); cut != got {
				t.Fatalf("cut at %d: %+v\nwhole:     %+v", i, cut, got)
			}
		}
		if len(got.data) > limit || got.taken > len(in) {
			t.Fatalf("%+v", got)
		}
		if !got.done {
			return
		}
		all := bufio.NewReaderSize(strings.NewReader(head+string(in)), 1<<20)
		req, err := http.ReadRequest(all)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(req.Body)
		if err != nil && got.taken > 1000 {
			return // its limits on extensions and trailers are narrower
		}
		rest, _ := io.ReadAll(all)
		if err != nil || string(data) != got.data || !bytes.Equal(rest, in[got.taken:]) {
			t.Fatalf("net/http: %q, %v, then %q\nwe:       %+v", data, err, rest, got)
		}
	})
}

// FuzzPairs: a query holds what net/url reads, but for a plus, which stays one,
// and a semicolon, which is data; the scratch is never left.
func FuzzPairs(f *testing.F) {
	for _, c := range queries {
		f.Add(c.query)
	}
	plus := strings.NewReplacer("+", "%2B", ";", "%3B")
	f.Fuzz(func(t *testing.T, query string) {
		if len(query) > 8000 { // net/url takes 10,000 pairs
			return
		}
		got := url.Values{}
		scratch := make([]byte, len(query), len(query)+1)
		for p := NewPairs([]byte(query), scratch[:0:len(query)]); p.Next(); {
			got.Add(string(p.Name), string(p.Value))
		}
		if scratch[:len(query)+1][len(query)] != 0 {
			t.Fatalf("%q is decoded behind the scratch", query)
		}
		want, _ := url.ParseQuery(plus.Replace(query)) // it passes over what it can't read
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %q, want %q", query, got, want)
		}
	})
}

// FuzzDifferential: net/http accepts every head that we accept, and sees the
// same request. What we refuse it may accept: it takes bare LF, folded lines,
// equal lengths given twice, and more.
//
// It does refuse some that we take: see looseTarget and looseTrailer.
func FuzzDifferential(f *testing.F) {
	addSeeds(f, func(in []byte) { f.Add(in) })
	f.Fuzz(func(t *testing.T, in []byte) {
		var p Parser
		var r Request
		n, err := p.Parse(in, &r)
		if err != nil {
			return
		}
		head := bytes.TrimLeft(in[:n], "\r\n") // it takes no empty lines before a request
		req, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(head), 1<<20))
		if err != nil {
			if !looseTarget(&r) && !looseTrailer(&r) {
				t.Fatalf("net/http: %v\nwe: %s", err, describe(&r))
			}
			return
		}
		compare(t, &r, req)
	})
}

// looseTarget reports whether r has a target that net/http may refuse and we
// leave to the route: a path that AppendPath refuses, or a URL with an IPv6
// address, whose groups we don't count.
func looseTarget(r *Request) bool {
	_, err := AppendPath(nil, r.Path)
	return r.Form != FormAsterisk && err != nil || r.Form != FormOrigin && bytes.HasPrefix(r.Host, []byte("["))
}

// looseTrailer reports whether r announces trailers, which net/http looks at
// and we don't.
func looseTrailer(r *Request) bool { return r.Chunked && r.Field("Trailer") != nil }

// compare fails when the two see different requests.
func compare(t *testing.T, r *Request, req *http.Request) {
	t.Helper()
	differ := func(what string, ours, theirs any) {
		if o, h := fmt.Sprintf("%q", ours), fmt.Sprintf("%q", theirs); o != h {
			t.Fatalf("%s: we have %s, net/http %s\n%s", what, o, h, describe(r))
		}
	}
	differ("method", string(r.MethodName), req.Method)
	differ("version", fmt.Sprintf("1.%d", r.Minor), fmt.Sprintf("%d.%d", req.ProtoMajor, min(req.ProtoMinor, 1)))
	differ("host", string(r.Host), req.Host)
	if r.Form != FormAsterisk {
		differ("query", string(r.Query), req.URL.RawQuery)
		if path, err := AppendPath(nil, r.Path); err == nil {
			theirs := req.URL.Path
			if theirs == "" {
				theirs = "/" // it leaves an empty path as it is
			}
			differ("path", string(path), theirs)
		}
	}
	length := r.Length
	if r.Chunked {
		length = -1
	}
	differ("length", length, req.ContentLength)
	differ("chunked", r.Chunked, slices.Equal(req.TransferEncoding, []string{"chunked"}))
	if r.Minor == 1 {
		differ("close", !r.KeepAlive(), req.Close)
	}
	ours := make(http.Header)
	for name, value := range r.Fields() {
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		ours[key] = append(ours[key], string(value))
	}
	for _, moved := range []string{"Host", "Transfer-Encoding", "Trailer"} { // net/http keeps these elsewhere
		delete(ours, moved)
		delete(req.Header, moved)
	}
	if ours.Get("Pragma") == "no-cache" { // it adds this one
		delete(ours, "Cache-Control")
		delete(req.Header, "Cache-Control")
	}
	differ("fields", ours, req.Header)
}

// FuzzGrammar writes requests of a subset of HTTP/1.1 that nobody has a reason
// to refuse, and both parsers must accept and agree:
//
//   - the seven usual methods; an origin-form or absolute-form target of
//     unreserved characters, sub-delims, escapes of printable ASCII, one query;
//   - HTTP/1.1 or 1.0, one Host with a name or an IPv6 address, maybe a port;
//   - fields with token names, any optional blanks, values of visible ASCII,
//     blanks inside and obs-text; Connection lists; repeated fields;
//   - no body, a Content-Length, or chunks with extensions and trailers.
func FuzzGrammar(f *testing.F) {
	for i := range 40 {
		seed := make([]byte, 64+i*8)
		for j := range seed {
			seed[j] = byte(i*j*j + 7*j + i)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		w := writer{seed: seed}
		in, body := w.request()
		const next = "GET /next HTTP/1.1\r\n\r\n"
		p, r := new(Parser), new(Request)
		n, err := p.Parse([]byte(in+next), r)
		if err != nil {
			t.Fatalf("we refuse %q: %v", in, err)
		}
		all := bufio.NewReaderSize(strings.NewReader(in+next), 1<<20)
		req, err := http.ReadRequest(all)
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", in, err)
		}
		compare(t, r, req)
		got := readCuts(r, 1<<20, []byte((in + next)[n:]))
		if got != (bodyOutcome{body, len(in) - n, true, nil}) {
			t.Fatalf("%q\nbody %q\n got %+v", in, body, got)
		}
		data, err := io.ReadAll(req.Body)
		if rest, _ := io.ReadAll(all); err != nil || string(data) != body || string(rest) != next {
			t.Fatalf("%q\nnet/http: body %q, %v, then %q", in, data, err, rest)
		}
	})
}

// writer writes a request by the decisions in seed; when they end, all that
// follow are 0.
type writer struct {
	seed []byte
	out  strings.Builder
}

func (w *writer) choose(n int) int {
	if len(w.seed) == 0 {
		return 0
	}
	c := int(w.seed[0]) % n
	w.seed = w.seed[1:]
	return c
}

func (w *writer) pick(from ...string) { w.out.WriteString(from[w.choose(len(from))]) }

// some writes up to n picks.
func (w *writer) some(n int, from ...string) {
	for range w.choose(n + 1) {
		w.pick(from...)
	}
}

func (w *writer) request() (text, body string) {
	w.pick("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH")
	w.pick(" ", " http://a.test", " HTTPS://[::1]:8080")
	w.pick("/", "/events", "/a/b.c/", "/%61%7E%20/x;y=1", "/-._~!$&'()*+,;=:@")
	w.pick("", "?", "?a=b&c=%20", "?x=/?:@+;", "?lastEventId=v1%3A0-5~ab,x")
	old := w.choose(4) == 1
	if old {
		w.out.WriteString(" HTTP/1.0\r\n")
	} else {
		w.out.WriteString(" HTTP/1.1\r\n")
	}
	w.pick("Host: gw.test", "hOST:gw.test:8080", "HOST: \t[2001:db8::1]:443\t ")
	w.out.WriteString("\r\n")
	for range w.choose(6) {
		w.pick("X", "X-Y", "last-event-id", "COOKIE", "x!#$%&'*+-.^_`|~1", "Accept")
		w.out.WriteString(":")
		w.some(2, " ", "\t")
		w.some(12, "a", "~", "\"", ",", ";", "=", ":", "b c", "d\te", "\xE2\x82\xAC", "\xFF", "\xA0")
		w.some(2, " ", "\t")
		w.out.WriteString("\r\n")
	}
	w.pick("", "Connection: keep-alive\r\n", "connection: Close\r\n", "Connection: x, close\r\nConnection: y\r\n", "Connection:\r\n")
	framing := w.choose(3)
	if old {
		framing %= 2
	}
	switch framing {
	case 0:
		w.out.WriteString("\r\n")
	case 1:
		body = strings.Repeat("b", w.choose(40))
		fmt.Fprintf(&w.out, "Content-Length: %0*d\r\n\r\n%s", 1+w.choose(4), len(body), body)
	case 2:
		w.pick("Transfer-Encoding: chunked\r\n\r\n", "transfer-encoding:\tCHUNKED \r\n\r\n")
		body = w.chunks()
	}
	return w.out.String(), body
}

func (w *writer) chunks() string {
	var body strings.Builder
	for range w.choose(4) {
		data := strings.Repeat("\r\n", w.choose(10)) + "x"
		body.WriteString(data)
		fmt.Fprintf(&w.out, "%0*x", 1+w.choose(4), len(data))
		w.pick("", ";", ";a=b", ";a=\"\x80 b\"")
		w.out.WriteString("\r\n" + data + "\r\n")
	}
	w.pick("0", "00", "0;last")
	w.out.WriteString("\r\n")
	w.pick("", "X-Trailer: v\r\n", "A: b\r\nC:d\r\n")
	w.out.WriteString("\r\n")
	return body.String()
}
