package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/pflag"

	"tailcast/bench/harness"
	benchreport "tailcast/bench/report"
)

// benchmark is the name of the command.
const benchmark = "bench"

const benchUsage = `tailcast bench SCENARIO [flags] [-- flags of tailcast serve]
tailcast bench compare A.json B.json

measures tailcast, and in the same run the floor: a bare loop of write(2), which
is what the kernel takes. What it needs it starts itself, the server on a
processor of its own; or --url names a server that runs already. Every stream is
checked: each record once, in order, with the right id. Latencies count from
when a record was due. With --tls the gateway is measured without it, too.
tailcast bench SCENARIO --help lists the flags.

`

// The exit codes of bench.
const (
	benchDone   = 0
	benchFailed = 1 // it could not be measured as asked
	benchUsed   = 2 // a mistake in the command line
	benchBroken = 3 // the server broke a promise
)

// benchCommand is tailcast bench.
func benchCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(stdout, benchUsage+harness.About())
		return benchDone
	}
	fail := func(code int, err error) int {
		fmt.Fprintf(stderr, "tailcast bench %s: %v\n", args[0], err)
		return code
	}
	if args[0] == "compare" {
		if err := benchCompare(args[1:], stdout); err != nil {
			return fail(benchUsed, err)
		}
		return benchDone
	}
	if run, ok := benchProcesses[args[0]]; ok {
		if err := run(ctx, args[1:], os.Stdin, stdout); err != nil {
			return fail(benchFailed, err)
		}
		return benchDone
	}
	opts, err := parseBench(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(stdout, "tailcast bench %s [flags] [-- flags of tailcast serve]\n\n%s", args[0], opts.flags().FlagUsages())
		return benchDone
	}
	if err != nil {
		return fail(benchUsed, err)
	}
	res, err := opts.run(ctx, stderr)
	if res != nil && len(res.Summaries) > 0 {
		err = errors.Join(err, opts.write(res, stdout, stderr))
	}
	if err != nil {
		return fail(benchFailed, err)
	}
	if res.Summaries[0].Faults > 0 {
		return benchBroken
	}
	return benchDone
}

// benchCompare writes two results side by side.
func benchCompare(args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("want two files of results")
	}
	a, err := benchreport.Load(args[0])
	if err != nil {
		return err
	}
	b, err := benchreport.Load(args[1])
	if err != nil {
		return err
	}
	return benchreport.Compare(stdout, a, b)
}

func (o *benchOptions) run(ctx context.Context, stderr io.Writer) (*harness.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := harness.Pin(o.clientCPU); err != nil {
		return nil, fmt.Errorf("--client-cpu: %w", err)
	}
	plan := harness.Plan{
		Spec: o.spec, Runs: o.runs, Topic: o.topic, Tailcast: self, ServerCPU: o.serverCPU, LoadCPU: o.clientCPU,
		Targets: o.targets(),
	}
	if o.verbose {
		plan.Log = stderr
	} else if f, ok := stderr.(*os.File); ok && isTerminal(f) {
		bar := startProgress(f)
		defer bar.stop()
		plan.Progress = bar.show
	}
	return plan.Run(ctx)
}

// targets are what is measured: a server of ours, or the one of --url, and what
// it is compared with.
func (o *benchOptions) targets() (all []harness.Target) {
	if o.url == "" {
		g := harness.Gateway{Version: version(), Brokers: o.brokers, Args: o.serve}
		all = append(all, g.Target())
		if o.plain && o.spec.TLS != "" {
			g.Plain = true
			all = append(all, g.Target())
		}
	} else {
		all = append(all, harness.External{
			Name: "server", URL: o.url, PIDs: o.pids, Metrics: o.metrics, Brokers: o.brokers,
			Checks: harness.Checks{IDs: true, Exact: true, Resume: true, Places: true, Users: true, Records: true},
		}.Target())
	}
	if o.floor {
		all = append(all, harness.FloorTarget())
	}
	return all
}

// onStdout stands for the standard output where a file is named.
const onStdout = "-"

// write writes the table, and the files that were asked for. One of them may be
// the standard output: then nothing else goes there.
func (o *benchOptions) write(res *harness.Result, stdout, stderr io.Writer) error {
	table := stdout
	if o.json == onStdout || o.html == onStdout {
		table = stderr
	}
	return errors.Join(
		benchreport.Table(table, res),
		writeFile(o.json, stdout, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", " ")
			return enc.Encode(res)
		}),
		writeFile(o.html, stdout, func(w io.Writer) error { return benchreport.HTML(w, res) }),
	)
}

// writeFile writes a file, or the standard output; nothing for an empty path.
func writeFile(path string, stdout io.Writer, write func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case onStdout:
		return write(stdout)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// defaultCPUs gives the server one processor and the load the others.
func defaultCPUs(n int) (server, load string) {
	switch {
	case n < 2 || runtime.GOOS != "linux":
		return "", ""
	case n == 2:
		return "0", "1"
	}
	return "0", fmt.Sprintf("1-%d", n-1)
}
