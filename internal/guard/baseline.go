package main

import (
	"fmt"
	"strconv"
	"strings"
)

// baseline is the committed file.
type baseline struct {
	made  string // the Go version and platform that instructions were counted with
	lines []line
}

// line is one benchmark and what an operation of it costs.
type line struct {
	pkg, bench   string
	n            int     // operations to run; twice as many in the second run
	instructions float64 // negative: not counted
	allocs       int64   // negative: not known
}

const (
	madeBy = "# made by "
	notes  = `# package, benchmark, operations to run, instructions and allocations of one.
# To add a benchmark, write its first three fields and run make guard-update.
`
)

// parseBaseline reads what String wrote, and lines without figures.
func parseBaseline(text string) (baseline, error) {
	var b baseline
	for i, s := range strings.Split(text, "\n") {
		if made, ok := strings.CutPrefix(s, madeBy); ok {
			b.made = made
		}
		if s == "" || s[0] == '#' {
			continue
		}
		l, err := parseLine(strings.Fields(s))
		if err != nil {
			return b, fmt.Errorf("line %d: %w", i+1, err)
		}
		b.lines = append(b.lines, l)
	}
	return b, nil
}

func parseLine(f []string) (line, error) {
	l := line{instructions: -1, allocs: -1}
	if len(f) != 3 && len(f) != 5 {
		return l, fmt.Errorf("%d fields, want 3 or 5", len(f))
	}
	l.pkg, l.bench = f[0], f[1]
	var err error
	if l.n, err = strconv.Atoi(f[2]); err != nil || l.n < 1 {
		return l, fmt.Errorf("%q is no number of operations", f[2])
	}
	if len(f) == 3 {
		return l, nil
	}
	if l.instructions, err = strconv.ParseFloat(f[3], 64); err != nil {
		return l, err
	}
	l.allocs, err = strconv.ParseInt(f[4], 10, 64)
	return l, err
}

func (b baseline) String() string {
	var s strings.Builder
	s.WriteString(madeBy + b.made + "\n" + notes)
	for _, l := range b.lines {
		fmt.Fprintf(&s, "%-20s %-45s %8d %10.1f %4d\n", l.pkg, l.bench, l.n, l.instructions, l.allocs)
	}
	return s.String()
}
