package report

import (
	"fmt"
	"io"
	"strings"

	"tailcast/bench/harness"
)

// attacks writes what attacks did to honest streams and to the server, as a
// table in Markdown a run; nothing for other scenarios.
func attacks(w io.Writer, res *harness.Result) {
	for i := range res.Runs {
		r := &res.Runs[i]
		if len(r.Attacks) == 0 {
			continue
		}
		fmt.Fprint(w, "\n| attack | rate | honest p99, before and during | opening a stream | RSS, before and most | server CPU, before and during | result |\n"+
			"|---|---|---|---|---|---|---|\n")
		for j := range r.Attacks {
			fmt.Fprintf(w, "| %s |\n", strings.Join(attack(&r.Attacks[j]), " | "))
		}
	}
}

// attack is the cells of one.
func attack(a *harness.Attack) []string {
	before, during := &a.Before, &a.During
	rate := fmt.Sprintf("%s %s/s", number(a.PerSec), a.Unit)
	if a.Failed > 0 {
		rate += fmt.Sprintf(" (%s got no connection)", number(float64(a.Failed)))
	}
	latency := fmt.Sprintf("%s, %s ms", number(before.LatencyMS.P99), number(during.LatencyMS.P99))
	if before.LatencyMS.P99 > 0 {
		latency += fmt.Sprintf(" (%.2f x)", during.LatencyMS.P99/before.LatencyMS.P99)
	}
	result := "held"
	if a.Broke != "" {
		result = "**broke: " + a.Broke + "**"
	}
	return []string{
		a.Name, rate, latency,
		fmt.Sprintf("%s, %s ms", number(before.OpenMS), number(during.OpenMS)),
		fmt.Sprintf("%.1f, %.1f MB", float64(before.RSS)/1e6, float64(during.RSS)/1e6),
		fmt.Sprintf("%.0f, %.0f %%", 100*before.ServerShare, 100*during.ServerShare),
		result,
	}
}
