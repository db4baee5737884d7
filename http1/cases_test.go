package http1

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// hardCase is one entry of testdata/cases.json: what a client sends on one
// connection, and the behaviours that are right.
type hardCase struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	Note      string   `json:"note"`
	Input     []byte   `json:"input_base64"`
	HalfClose bool     `json:"half_close"` // the client ends its side behind the input
	Wait      string   `json:"wait"`       // header_timeout: the answer may take that long
	Expect    expect   `json:"expect"`
	Alt       []expect `json:"expect_alt"`
}

// expect is one behaviour that is right.
type expect struct {
	Status         []int  `json:"status"`      // of the first answer; 0: closed without one
	LastStatus     []int  `json:"last_status"` // of the last answer
	Closes         *bool  `json:"closes"`      // nil: either
	ResponsesMin   int    `json:"responses_min"`
	ResponsesMax   int    `json:"responses_max"`
	MustNotServe   string `json:"must_not_serve"`   // a target
	MustNotContain string `json:"must_not_contain"` // any answer
}

// second says why a case is met by its second best behaviour.
var second = map[string]string{
	"B82":  "an empty member beside chunked is what smugglers send and nobody else",
	"B117": "an expectation that can't be met is said, rather than ignored",
}

func loadCases(t testing.TB) []hardCase {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []hardCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 80 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

// TestCases plays every case to a connection, cut in every way, once with a
// server that answers before it reads bodies and once with one that reads them.
func TestCases(t *testing.T) {
	for _, c := range loadCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			for _, patient := range []bool{false, true} {
				want := play(c, patient)
				if got := play(c, patient, everyByte(c.Input)...); got != want {
					t.Errorf("%s\nbyte by byte: %+v\nwhole:        %+v", c.Note, got, want)
				}
				for i := 0; i < len(c.Input); i += step(c.Input) {
					if got := play(c, patient, i); got != want {
						t.Errorf("%s\ncut at %d: %+v\nwhole:     %+v", c.Note, i, got, want)
					}
				}
				c.check(t, want, patient)
			}
		})
	}
}

// check wants the best behaviour, but where second says why not, and where a
// server that does not wait for the body can't see that the body is bad.
func (c *hardCase) check(t *testing.T, got ending, patient bool) {
	t.Helper()
	mayDiffer := second[c.ID] != "" || c.Kind == "chunk" && !patient
	why := c.Expect.miss(t, got)
	for _, alt := range c.Alt {
		if why != "" && mayDiffer {
			why = alt.miss(t, got)
		}
	}
	if why != "" {
		t.Errorf("%s: %s\n%q", c.Note, why, got.out)
	}
}

// miss says how got is not what e wants.
func (e *expect) miss(t *testing.T, got ending) string {
	first, last, finals := statuses(t, got)
	switch {
	case !slices.Contains(e.Status, first):
		return "wrong first status"
	case e.LastStatus != nil && !slices.Contains(e.LastStatus, last):
		return "wrong last status"
	case e.Closes != nil && *e.Closes != got.closed:
		return "wrong about the connection's end"
	case finals > e.ResponsesMax, finals < e.ResponsesMin && first >= 200:
		return "wrong number of answers"
	case e.MustNotServe != "" && strings.Contains(got.served, e.MustNotServe):
		return "served " + e.MustNotServe
	case e.MustNotContain != "" && strings.Contains(got.out, e.MustNotContain):
		return "said " + e.MustNotContain
	}
	return ""
}

// statuses reads the answers as a client would: the first and last status, and
// how many are final. A closed connection without answer has status 0.
func statuses(t *testing.T, got ending) (first, last, finals int) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(got.out))
	served := strings.Fields(got.served)
	for i := 0; ; i++ {
		if _, err := in.Peek(1); err == io.EOF {
			return first, last, finals
		}
		method := "GET"
		if 2*finals < len(served) {
			method = served[2*finals]
		}
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("answer %d is not HTTP: %v\n%q", i, err, got.out)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatalf("answer %d has a bad body: %v\n%q", i, err, got.out)
		}
		if first == 0 {
			first = res.StatusCode
		}
		last = res.StatusCode
		if last >= 200 {
			finals++
		}
	}
}

// ending is how a played connection came out.
type ending struct {
	out    string // all that the server wrote
	served string // METHOD TARGET of all that was answered by the route
	closed bool
}

func play(c hardCase, patient bool, cuts ...int) ending {
	s := server{patient: patient}
	start := 0
	for _, end := range append(cuts, len(c.Input)) {
		s.write(c.Input[start:end])
		start = end
	}
	if c.Wait == "header_timeout" {
		s.headTimeout()
	}
	if c.HalfClose {
		s.closed = true
	}
	return ending{string(s.out), strings.Join(s.served, " "), s.closed}
}

// server is the smallest HTTP server around this package: one connection, and
// a route that has one page.
type server struct {
	patient bool // reads bodies before it answers
	parser  Parser
	body    Body
	answer  Answer // to give when the body is read
	reading bool   // a body
	in, out []byte
	served  []string
	closed  bool
}

func (s *server) write(b []byte) {
	if s.closed {
		return
	}
	s.in = append(bytes.Clone(s.in), b...) // the bytes move, as the contract of Parse allows
	for !s.closed && s.turn() {
	}
}

// turn reads a head or a part of a body. It reports whether there is more to do.
func (s *server) turn() bool {
	if s.reading {
		_, n, err := s.body.Next(s.in)
		s.in = s.in[n:]
		if err != nil {
			return s.fail(err.(*Error))
		}
		if s.body.Done() {
			s.reading = false
			return s.give(s.answer)
		}
		return n > 0
	}
	var r Request
	n, err := s.parser.Parse(s.in, &r)
	if err == ErrIncomplete {
		return false
	}
	if err != nil {
		return s.fail(err.(*Error))
	}
	s.in = s.in[n:]
	s.served = append(s.served, string(r.MethodName), string(r.Path)+"?"+string(r.Query))
	a := route(&r)
	a.Head = r.Method == MethodHead
	a.Close = !r.KeepAlive()
	if !r.HasBody() {
		return s.give(a)
	}
	if !s.patient {
		a.Close = true
		return s.give(a)
	}
	if err := s.body.Start(&r, 64<<10); err != nil {
		return s.fail(err.(*Error))
	}
	if r.WantsContinue() {
		s.out = append(s.out, "HTTP/1.1 100 Continue\r\n\r\n"...)
	}
	s.reading, s.answer = true, a
	return true
}

func (s *server) give(a Answer) bool {
	s.out = AppendAnswer(s.out, &a)
	s.closed = a.Close
	return true
}

func (s *server) fail(e *Error) bool {
	return s.give(Answer{Status: e.Status, Body: e.Reason, Close: true})
}

// headTimeout is what a server does when a head takes too long.
func (s *server) headTimeout() {
	if !s.closed && len(s.in) > 0 {
		s.fail(&Error{408, "the request head did not come in time"})
	}
}

func route(r *Request) Answer {
	const allow = "GET, HEAD, OPTIONS"
	path, err := AppendPath(nil, r.Path)
	switch {
	case r.Method == MethodOptions:
		return Answer{Status: 204, Allow: allow}
	case r.Method != MethodGet && r.Method != MethodHead:
		return Answer{Status: 405, Allow: allow, Body: "the route answers " + allow}
	case err != nil:
		return Answer{Status: err.(*Error).Status, Body: err.Error()}
	case string(path) != "/":
		return Answer{Status: 404, Body: "there is no such route"}
	}
	return Answer{Status: 200, ContentType: "text/html; charset=utf-8", Body: "<p>hello"}
}
