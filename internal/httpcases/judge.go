package httpcases

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outcome is what a server did with an input.
type outcome struct {
	answers []Answer
	raw     []byte
	ended   bool          // the server closed or reset the connection
	first   time.Duration // from the end of the input to the first answer
	err     error         // what came back is no HTTP
}

// signature is what must not depend on how the input is cut.
func (o *outcome) signature() string {
	var s []string
	for _, a := range o.answers {
		s = append(s, strconv.Itoa(a.Status))
	}
	return strings.Join(s, ",")
}

func (o *outcome) String() string {
	s := "no answer"
	if len(o.answers) > 0 {
		s = "answers " + o.signature()
	}
	if o.ended {
		s += ", then the end"
	}
	if o.err != nil {
		s += ", " + o.err.Error()
	}
	return s
}

// faults says why o is not what e allows; empty means that it is.
func (e *Expect) faults(c *Case, o *outcome, target func(Answer) string) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	n := len(o.answers)
	first := 0 // no answer
	if n > 0 {
		first = o.answers[0].Status
	}
	if !slices.Contains(e.Status, first) || first == 0 && !o.ended {
		add("want first status %v", e.Status)
	}
	if n > 0 && n < e.Min {
		add("want at least %d answers", e.Min)
	}
	if n > e.Max {
		add("want at most %d answers", e.Max)
	}
	if n > 0 && e.LastStatus != nil && !slices.Contains(e.LastStatus, o.answers[n-1].Status) {
		add("want last status %v", e.LastStatus)
	}
	if e.Closes != nil && *e.Closes != o.ended {
		add("want the server to end the connection: %t", *e.Closes)
	}
	if c.Wait == "1s" && o.first > time.Second {
		add("want an answer within a second, it took %v", o.first.Round(time.Millisecond))
	}
	if !e.Accept && slices.ContainsFunc(o.answers, func(a Answer) bool { return a.Status/100 == 2 }) {
		add("want no 2xx")
	}
	if e.NotServe != "" && target != nil && slices.ContainsFunc(o.answers, func(a Answer) bool { return target(a) == e.NotServe }) {
		add("%s must not be served", e.NotServe)
	}
	if e.NotContain != "" && bytes.Contains(o.raw, []byte(e.NotContain)) {
		add("%q must not be in an answer", e.NotContain)
	}
	return faults
}

// judge returns nothing if o is allowed, else what each expectation misses.
func (c *Case) judge(o *outcome, target func(Answer) string) (missed []string) {
	if o.err != nil {
		return []string{"want HTTP/1 responses"}
	}
	for _, e := range c.all() {
		faults := e.faults(c, o, target)
		if len(faults) == 0 {
			return nil
		}
		missed = append(missed, strings.Join(faults, " and ")+" ("+e.Level+")")
	}
	return missed
}

// compare judges the outcomes of all ways to send c's input. A cut that makes
// a difference is a failure even where both outcomes are allowed.
func (c *Case) compare(ways []cut, outcomes []*outcome, target func(Answer) string) (all []Failure) {
	whole := outcomes[0].signature()
	for w, o := range outcomes {
		missed := c.judge(o, target)
		if len(missed) == 0 && o.signature() != whole {
			missed = []string{"want the same answers as in one write: " + whole}
		}
		if len(missed) == 0 {
			continue
		}
		f := Failure{Case: c.ID, Note: c.Note, Mode: ways[w].name, Got: o.String(), Want: missed}
		same := slices.IndexFunc(all, func(g Failure) bool { return g.Got == f.Got && slices.Equal(g.Want, f.Want) })
		if same >= 0 {
			all[same].More++
			continue
		}
		all = append(all, f)
	}
	return all
}
