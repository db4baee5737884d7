package main

import (
	"fmt"
	"io"
	"strconv"
)

// margin is how much more instructions than the baseline's are let pass.
// Counts differ by less than 0.6 % from run to run, on busy machines too.
const margin = 1.03

// report prints a table and says whether anything is worse than the baseline.
func report(out io.Writer, base, got []line, counting bool) (worse bool) {
	fmt.Fprintf(out, "%-20s %-45s %12s %12s %7s %12s\n", "package", "benchmark", "instructions", "baseline", "ratio", "allocations")
	for i, b := range base {
		g := got[i]
		verdict := ""
		ratio := "-"
		if counting && b.instructions > 0 {
			r := g.instructions / b.instructions
			ratio = fmt.Sprintf("%.3f", r)
			switch {
			case r > margin:
				verdict, worse = "  more instructions", true
			case r < 1/margin:
				verdict = "  better: make guard-update keeps it so"
			}
		}
		allocs := strconv.FormatInt(g.allocs, 10)
		if b.allocs >= 0 && g.allocs != b.allocs {
			allocs = fmt.Sprintf("%d, was %d", g.allocs, b.allocs)
			if g.allocs > b.allocs {
				verdict, worse = verdict+"  more allocations", true
			}
		}
		fmt.Fprintf(out, "%-20s %-45s %12s %12s %7s %12s%s\n", b.pkg, b.bench, count(g.instructions), count(b.instructions), ratio, allocs, verdict)
	}
	return worse
}

func count(n float64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", n)
}
