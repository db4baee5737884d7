package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
	"time"

	"tailcast/bench/harness"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// HTML writes a result as one page that needs no other file and no network.
func HTML(w io.Writer, res *harness.Result) error {
	type figure struct {
		Title string
		SVG   template.HTML
	}
	data := struct {
		*harness.Result
		About   string
		Machine string
		Command string
		When    string
		Rows    []row
		Bars    []bars
		Plots   []figure
		Faults  map[string][]string
	}{
		Result: res, About: Describe(&res.Spec), Machine: machine(&res.Machine), Command: strings.Join(res.Command, " "),
		When: res.Began.Format(time.RFC1123), Rows: rows(res), Bars: allBars(res), Faults: map[string][]string{},
	}
	for _, p := range plots(res) {
		data.Plots = append(data.Plots, figure{p.title, p.svg()})
	}
	for _, s := range res.Summaries {
		if s.Faults > 0 {
			data.Faults[s.Target] = faultTexts(res, s.Target)
		}
	}
	return page.Execute(w, data)
}

func machine(m *harness.Machine) string {
	parts := []string{m.CPU, plural(m.CPUs, "processor"), m.OS, m.Kernel, m.Go}
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, p)
		}
	}
	return strings.Join(known, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(float64(n)) + " " + what + "s"
}

// bars is one figure of every target, as bars of a length.
type bars struct {
	Title string
	Bars  []bar
}

type bar struct {
	Name, Text string
	// Percent of the longest one.
	Percent float64
}

// allBars makes bars of the figures that are compared.
func allBars(res *harness.Result) (all []bars) {
	for _, f := range harness.Figures {
		if !f.Ratio {
			continue
		}
		b := bars{Title: f.Title}
		most := 0.0
		for _, s := range res.Summaries {
			most = max(most, s.Figures[f.Name].Median)
		}
		for _, s := range res.Summaries {
			if v, ok := s.Figures[f.Name]; ok && most > 0 {
				b.Bars = append(b.Bars, bar{s.Target, value(f, v, 1), max(0, 100*v.Median/most)})
			}
		}
		if len(b.Bars) > 1 {
			all = append(all, b)
		}
	}
	return all
}
