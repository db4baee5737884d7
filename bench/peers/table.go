package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"tailcast/bench/harness"
)

// tables is what was measured, as Markdown.
func (b *battery) tables() string {
	var t strings.Builder
	first := b.done[0].res
	m := first.Machine
	fmt.Fprintf(&t, "Measured on %s: %s, %d processors, Linux %s, Go %s; everything on loopback. The server under test has processor %s to\n"+
		"itself; clients, broker and publishers share processor %s. Each figure is the median of %d runs, in rounds of all servers whose order\n"+
		"rotates, with the least and the most behind it.\n\n", first.Began.Format("2006-01-02"),
		m.CPU, m.CPUs, m.Kernel, strings.TrimPrefix(m.Go, "go"), b.o.serverCPU, b.o.clientCPU, b.plan.Runs)
	for _, s := range first.Summaries {
		fmt.Fprintf(&t, "* %s: %s\n", s.Target, b.describe(&s))
	}
	for i := range b.done {
		b.done[i].table(&t)
	}
	t.WriteString("\n### Where a peer is better\n\n")
	better := 0
	for i := range b.done {
		better += b.done[i].betterPeers(&t)
	}
	if better == 0 {
		t.WriteString("Nowhere in these tables.\n")
	}
	return t.String()
}

// describe says what a target of a summary is.
func (b *battery) describe(s *harness.Summary) string {
	switch i := slices.IndexFunc(b.peers, func(p peer) bool { return p.name == s.Target }); {
	case i >= 0:
		return fmt.Sprintf("%s. %s.", s.Version, b.peers[i].about)
	case s.Target == harness.FloorName:
		return "a bare loop of write(2), one for all events that are due, of as many bytes as tailcast's."
	}
	return s.Version + "."
}

// table writes the figures of one measurement, and below them how tailcast's
// relate to the others'.
func (o *outcomeOf) table(t *strings.Builder) {
	fmt.Fprintf(t, "\n### %s\n\n|", o.title)
	head := []string{""}
	if o.best {
		head = append(head, "records a second")
	}
	for _, name := range o.columns {
		f := figure(name)
		head = append(head, f.Title+", "+f.Unit)
	}
	head = append(head, "missing", "dropped")
	t.WriteString(" " + strings.Join(head, " | ") + " |\n" + strings.Repeat("|---", len(head)) + "|\n")
	for _, s := range o.res.Summaries {
		row := []string{s.Target}
		if o.best {
			row = append(row, short(o.rate(s.Target)))
		}
		for _, name := range o.columns {
			row = append(row, cell(name, s.Figures))
		}
		missing, dropped := o.lost(s.Target)
		row = append(row, strconv.FormatInt(missing, 10), strconv.FormatInt(dropped, 10))
		t.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	for _, s := range o.res.Summaries[1:] {
		var all []string
		for _, r := range o.res.Ratios {
			if r.To == s.Target && slices.Contains(o.columns, r.Figure) {
				all = append(all, figure(r.Figure).Title+" "+between(r.Spread, 1))
			}
		}
		fmt.Fprintf(t, "\ntailcast ÷ %s, round by round: %s.\n", s.Target, strings.Join(all, "; "))
	}
	if bad := o.res.Invalid; len(bad) > 0 {
		fmt.Fprintf(t, "\nNot to be trusted: %s; and %d more.\n", bad[0], len(bad)-1)
	}
}

// betterPeers writes a line for each figure in which a peer beats tailcast, and
// returns how many there are.
func (o *outcomeOf) betterPeers(t *strings.Builder) (n int) {
	for _, r := range o.res.Ratios {
		worse := r.Median > 1
		if figure(r.Figure).More {
			worse = r.Median < 1
		}
		if r.To == harness.FloorName || !worse || !slices.Contains(o.columns, r.Figure) {
			continue
		}
		n++
		fmt.Fprintf(t, "* %s, %s: tailcast ÷ %s is %s.\n", o.title, figure(r.Figure).Title, r.To, between(r.Spread, 1))
	}
	return n
}

// rate is what a target was asked for.
func (o *outcomeOf) rate(target string) float64 {
	for _, r := range o.res.Runs {
		if r.Target == target {
			return r.Rate
		}
	}
	return 0
}

// lost is how many records did not reach a stream in between others that did,
// and how many streams ended, in all runs of a target.
func (o *outcomeOf) lost(target string) (missing, dropped int64) {
	for _, r := range o.res.Runs {
		if n := &r.Counts; r.Target == target {
			missing += n.Missing
			dropped += n.EndedClean + n.EndedEOF + n.EndedReset
		}
	}
	return missing, dropped
}

// figure is what is known of a figure's name.
func figure(name string) harness.Figure {
	i := slices.IndexFunc(harness.Figures, func(f harness.Figure) bool { return f.Name == name })
	if i < 0 {
		return harness.Figure{Name: name, Title: name}
	}
	return harness.Figures[i]
}

func scale(name string) float64 {
	if f := figure(name); f.Scale != 0 {
		return f.Scale
	}
	return 1
}

// cell is a figure of a table: the median, and how far the runs go.
func cell(name string, figures map[string]harness.Spread) string {
	s, ok := figures[name]
	if !ok {
		return ""
	}
	return between(s, scale(name))
}

// between is a median, and how far the runs go where they differ.
func between(s harness.Spread, scale float64) string {
	if s.Min == s.Max {
		return short(s.Median * scale)
	}
	return fmt.Sprintf("%s (%s to %s)", short(s.Median*scale), short(s.Min*scale), short(s.Max*scale))
}

// brief is some figures of one run.
func brief(figures map[string]float64, names []string) string {
	var all []string
	for _, name := range names {
		if v, ok := figures[name]; ok {
			all = append(all, fmt.Sprintf("%s %s %s", figure(name).Title, short(v*scale(name)), figure(name).Unit))
		}
	}
	return strings.Join(all, ", ")
}

// short is x with three digits, or with commas when it is large.
func short(x float64) string {
	switch {
	case x >= 1000:
		return commas(int64(x + 0.5))
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// commas is n, which is not negative, with a comma every three digits.
func commas(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// The marks in a document between which tables are written.
var (
	tablesBegin = []byte("<!-- make bench-peers writes from here -->\n")
	tablesEnd   = []byte("<!-- to here -->\n")
)

// writeBetween puts text between the marks of a file.
func writeBetween(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(old, tablesBegin)
	_, after, ok2 := bytes.Cut(rest, tablesEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no marks %q and %q", file, tablesBegin, tablesEnd)
	}
	return os.WriteFile(file, slices.Concat(before, tablesBegin, []byte(text), tablesEnd, after), 0o644)
}
