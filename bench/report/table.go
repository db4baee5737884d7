package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"tailcast/bench/harness"
)

// row is a figure of each target, and the first one's ratio to each other.
type row struct {
	Title string
	// Cells are the figure of the first target, then that of each other one and
	// the first one's ratio to it.
	Cells []string
}

// rows makes the rows of every figure that a target has.
func rows(res *harness.Result) (all []row) {
	for _, f := range harness.Figures {
		r := row{Title: f.Title}
		has := false
		for i, s := range res.Summaries {
			v, ok := s.Figures[f.Name]
			text := ""
			if ok {
				text, has = value(f, v, s.Runs), true
			}
			r.Cells = append(r.Cells, text)
			if i > 0 {
				r.Cells = append(r.Cells, ratio(res, f.Name, s.Target))
			}
		}
		if has {
			all = append(all, r)
		}
	}
	return all
}

func ratio(res *harness.Result, figure, to string) string {
	for _, r := range res.Ratios {
		if r.Figure == figure && r.To == to {
			return fmt.Sprintf("%.2f x", r.Median)
		}
	}
	return ""
}

// Table writes what a result comes to.
func Table(w io.Writer, res *harness.Result) error {
	fmt.Fprintf(w, "%s: %s\n\n", res.Spec.Scenario, Describe(&res.Spec))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for i, s := range res.Summaries {
		fmt.Fprintf(t, "\t%s", s.Target)
		if i > 0 {
			fmt.Fprintf(t, "\t%s / %s", res.Summaries[0].Target, s.Target)
		}
	}
	fmt.Fprintln(t, "\t")
	for _, r := range rows(res) {
		fmt.Fprint(t, r.Title)
		for _, c := range r.Cells {
			fmt.Fprintf(t, "\t%s", c)
		}
		fmt.Fprintln(t, "\t")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	attacks(w, res)
	for _, s := range res.Summaries {
		if s.Faults > 0 {
			fmt.Fprintf(w, "\n%s broke its promises %d times:\n", s.Target, s.Faults)
			for _, text := range faultTexts(res, s.Target) {
				fmt.Fprintf(w, "  %s\n", text)
			}
		}
	}
	if len(res.Invalid) > 0 {
		fmt.Fprintln(w, "\nDo not trust these figures:")
	}
	for _, why := range res.Invalid {
		fmt.Fprintf(w, "  %s\n", why)
	}
	return nil
}

// faultTextsMax bounds the faults that are shown of a target.
const faultTextsMax = 5

func faultTexts(res *harness.Result, target string) (all []string) {
	for _, r := range res.Runs {
		if r.Target == target {
			all = append(all, r.FaultText...)
		}
	}
	return all[:min(len(all), faultTextsMax)]
}
