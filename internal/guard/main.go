// Command guard compares what the hot functions cost with the committed
// baseline: allocations and user-space instructions an operation, which are
// the same on a busy machine and an idle one, where time is not.
//
// Each line of the baseline names a benchmark. It is run under valgrind, which
// counts instructions, with n and with 2n operations; the difference is free
// of start and setup. Counts are comparable for one version of Go and one
// architecture: another compiler makes other code. Then, and without valgrind,
// allocations alone are compared.
//
// It measures nothing of the kernel and no cache misses: those are what
// docs/BENCHMARKS.md is for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
)

// baselineFile is where the baseline lives, from the module's root.
const baselineFile = "internal/guard/baseline.txt"

// errWorse is what a run ends with that found a cost above the baseline.
var errWorse = errors.New("above the baseline; if that is meant, make guard-update and say why in the commit")

func main() {
	update := flag.Bool("update", false, "measure and rewrite the baseline")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *update); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1) //nolint:gocritic // the signal's handler ends with the process
	}
}

func run(ctx context.Context, out io.Writer, update bool) error {
	text, err := os.ReadFile(baselineFile)
	if err != nil {
		return err
	}
	base, err := parseBaseline(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", baselineFile, err)
	}
	_, err = exec.LookPath("valgrind")
	counting := err == nil
	here := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	switch {
	case update && !counting:
		return errors.New("a baseline is written with valgrind, which is not installed")
	case update:
	case !counting:
		fmt.Fprintln(out, "valgrind is not installed: instructions are not counted, only allocations")
	case base.made != here:
		counting = false
		fmt.Fprintf(out, "the baseline was made by %s, this is %s: instructions are not compared, only allocations (make guard-update makes a new one)\n", base.made, here)
	}
	got, err := measureAll(ctx, base.lines, counting)
	if err != nil {
		return err
	}
	worse := report(out, base.lines, got, counting)
	if update {
		return os.WriteFile(baselineFile, []byte(baseline{here, got}.String()), 0o644)
	}
	if worse {
		return errWorse
	}
	return nil
}
