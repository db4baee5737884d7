package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"text/tabwriter"

	"tailcast/bench/harness"
)

// resultMax bounds a result file: hours of slices take a few megabytes.
const resultMax = 256 << 20

// Load reads a result from a file of JSON.
func Load(path string) (*harness.Result, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	res := new(harness.Result)
	if err := json.NewDecoder(io.LimitReader(file, resultMax)).Decode(res); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if res.Schema != harness.Schema {
		return nil, fmt.Errorf("%s: schema %q, want %q", path, res.Schema, harness.Schema)
	}
	return res, nil
}

// Compare writes the figures of two results side by side, target by target,
// and their ratio.
func Compare(w io.Writer, a, b *harness.Result) error {
	if a.Spec.Scenario != b.Spec.Scenario {
		return fmt.Errorf("%s and %s are not to be compared", a.Spec.Scenario, b.Spec.Scenario)
	}
	fmt.Fprintf(w, "A  %s: %s\nB  %s: %s\n", a.Spec.Scenario, Describe(&a.Spec), b.Spec.Scenario, Describe(&b.Spec))
	if !reflect.DeepEqual(a.Spec, b.Spec) {
		fmt.Fprintln(w, "They were not measured alike.")
	}
	if a.Machine != b.Machine {
		fmt.Fprintln(w, "They come from different machines.")
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for i := range a.Summaries {
		sa := &a.Summaries[i]
		for j := range b.Summaries {
			if sb := &b.Summaries[j]; sb.Target == sa.Target {
				compareTarget(t, sa, sb)
			}
		}
	}
	if a.FloorRatio != nil && b.FloorRatio != nil {
		fmt.Fprintf(t, "\nCPU an event to the floor's\t%.2f x\t%.2f x\t%.2f\t\n", a.FloorRatio.Median, b.FloorRatio.Median, b.FloorRatio.Median/a.FloorRatio.Median)
	}
	return t.Flush()
}

func compareTarget(t io.Writer, a, b *harness.Summary) {
	fmt.Fprintf(t, "\n%s\tA %s\tB %s\tB / A\t\n", a.Target, a.Version, b.Version)
	for _, f := range harness.Figures {
		va, okA := a.Figures[f.Name]
		vb, okB := b.Figures[f.Name]
		if !okA || !okB {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", f.Title, value(f, va, a.Runs), value(f, vb, b.Runs), verdict(f, va, vb, min(a.Runs, b.Runs)))
	}
}

// verdictRuns is how many runs of each it takes to call one better.
const verdictRuns = 3

// verdict is the ratio of B to A, marked where there are some runs and those of
// one are all better than those of the other.
func verdict(f harness.Figure, a, b harness.Spread, runs int) string {
	if a.Median == 0 {
		return ""
	}
	text := fmt.Sprintf("%.2f", b.Median/a.Median)
	switch lower, higher := b.Max < a.Min, b.Min > a.Max; {
	case !f.Ratio || runs < verdictRuns:
	case lower && !f.More, higher && f.More:
		text += " better"
	case lower, higher:
		text += " worse"
	}
	return text
}
