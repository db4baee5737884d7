// Package report shows results of the harness to people: as a table, as a
// comparison of two, and as one HTML page with plots that needs nothing else.
package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tailcast/bench/harness"
)

// number writes v with three digits that count, and commas.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 1000:
		return commas(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func commas(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// value writes a figure's median with its unit, and how far the runs go where
// there are several.
func value(f harness.Figure, s harness.Spread, runs int) string {
	scale := f.Scale
	if scale == 0 {
		scale = 1
	}
	text := number(s.Median * scale)
	if f.Unit != "" {
		text += " " + f.Unit
	}
	if runs > 1 {
		text += fmt.Sprintf(" (%s to %s)", number(s.Min*scale), number(s.Max*scale))
	}
	return text
}

// Describe says in a line what was measured.
func Describe(s *harness.Spec) string {
	uses := func(flag string) bool { return s.Scenario.Uses(flag) }
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if uses("streams") {
		add("%s streams", number(float64(s.Streams)))
	}
	switch {
	case s.Scenario == harness.Saturate:
		add("from %s records a second", number(s.Rate))
	case uses("rate"):
		add("%s records a second", number(s.Rate))
	}
	if uses("keys") {
		add("%s keys", number(float64(s.Keys)))
	}
	if uses("records") {
		add("%s records", number(float64(s.Records)))
	}
	if uses("behind") {
		add("%s records behind", number(float64(s.Behind)))
	}
	if uses("stalled") {
		add("%s stalled", number(float64(s.Stalled)))
	}
	if uses("attackers") {
		add("%s attackers, five times as many of those that hold connections", number(float64(s.Attackers)))
	}
	if uses("churn") {
		add("each stays %v on average", time.Duration(s.Churn))
	}
	add("%d B values", s.Size)
	if s.Codec != "none" {
		add("%s", s.Codec)
	}
	if s.Partitions == 1 {
		add("1 partition")
	} else {
		add("%d partitions", s.Partitions)
	}
	switch {
	case s.Resume:
		add("TLS %s with sessions taken up", s.TLS)
	case s.TLS != "":
		add("TLS %s", s.TLS)
	}
	if uses("for") {
		add("measured %v", time.Duration(s.For))
	}
	return strings.Join(parts, ", ")
}
