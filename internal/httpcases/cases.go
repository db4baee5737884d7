// Package httpcases plays hard HTTP/1.1 requests to a running server and judges
// what comes back. The cases, in testdata/http1-cases.json, come from public
// reports of parsers and proxies gone wrong and from the RFCs; each has its
// source. Only tests and bench/cmd/httpcases import it.
//
// It is made for a server whose root path is an ordinary resource, or none:
// where GET / opens an endless stream, a request behind it has no answer and
// the connection no end. Host is gw.test.
package httpcases

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// Case is one input and what may come of it.
type Case struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Note   string `json:"note"`
	Source string `json:"source"`
	// Input is all that the client sends on one connection.
	Input []byte `json:"input_base64"`
	// HalfClose ends the client's side after the input.
	HalfClose bool `json:"half_close"`
	// Wait is "1s" if the answer must come within a second although a body is
	// missing, "header_timeout" if only the server's timer ends the case.
	Wait string `json:"wait"`
	// Expect is the behaviour to have; ExpectAlt are others that the RFCs
	// allow, or that are a matter of policy. One of them must hold.
	Expect    Expect   `json:"expect"`
	ExpectAlt []Expect `json:"expect_alt"`
}

// Expect is one right behaviour.
type Expect struct {
	Accept     bool   `json:"accept"`      // the message is well formed; else no answer may be a 2xx
	Status     []int  `json:"status"`      // of the first answer; 100 counts where listed; 0 is an end without an answer
	LastStatus []int  `json:"last_status"` // of the last answer, where given
	Closes     *bool  `json:"closes"`      // true: the server ends the connection; null: as it likes
	Min        int    `json:"responses_min"`
	Max        int    `json:"responses_max"` // answers on the connection
	NotServe   string `json:"must_not_serve"`
	NotContain string `json:"must_not_contain"`
	Level      string `json:"level"` // how strong the rule is
}

// waitHeaderTimeout is the Wait of a case that the server's timer ends.
const waitHeaderTimeout = "header_timeout"

//go:embed testdata/http1-cases.json
var embedded []byte

// Cases returns all cases; they are shared and must not be changed.
var Cases = sync.OnceValue(func() []Case {
	var all []Case
	if err := json.Unmarshal(embedded, &all); err != nil {
		panic(fmt.Sprintf("BUG: httpcases: testdata/http1-cases.json: %v", err))
	}
	return all
})

// all are the expectations of c, the best first.
func (c *Case) all() []Expect {
	return append([]Expect{c.Expect}, c.ExpectAlt...)
}

// interim reports whether an answer 100 counts for c.
func (c *Case) interim() bool {
	return slices.ContainsFunc(c.all(), func(e Expect) bool { return slices.Contains(e.Status, 100) })
}

var requestLine = regexp.MustCompile(`(?m)^([A-Z]+) \S+ HTTP/1\.\d\r$`)

// heads says which requests of c, in their order, are answered without a body
// because they are HEAD. It takes every line that looks like a request for
// one; that is right for the inputs that have a HEAD.
func (c *Case) heads() (heads []bool) {
	for _, m := range requestLine.FindAllSubmatch(c.Input, -1) {
		heads = append(heads, string(m[1]) == "HEAD")
	}
	return heads
}
