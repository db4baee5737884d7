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
)

const benchUsage = `tailcast bench SCENARIO [flags] [-- flags of tailcast serve]

measures tailcast, or with --url a server that runs, and beside it the floor: a
bare loop of write(2), which is what the kernel takes. Everything it needs it
starts itself, the server on a processor of its own.

Scenarios:
%s
%s`

// benchmark is the name of the command.
const benchmark = "bench"

// benchOptions is the command line of bench.
type benchOptions struct {
	spec                 harness.Spec
	runs                 int
	floor                bool
	serverCPU, clientCPU string
	brokers              []string
	json, html           string
	verbose              bool
	serve                []string // flags of tailcast serve
}

// benchCommand is tailcast bench. It returns the exit code: 0 done, 1 the run
// did not happen as asked, 2 a mistake in the command line, 3 the server broke
// a promise.
func benchCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if run, ok := benchProcesses[args[0]]; ok {
		if err := run(ctx, args[1:], os.Stdin, stdout); err != nil {
			fmt.Fprintf(stderr, "tailcast bench %s: %v\n", args[0], err)
			return 1
		}
		return 0
	}
	opts, err := parseBench(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(stdout, benchUsage, harness.About(), opts.flags().FlagUsages())
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "tailcast bench: %v\n", err)
		return 2
	}
	res, err := opts.run(ctx, stderr)
	if res != nil {
		err = errors.Join(err, opts.write(res, stdout))
	}
	if err != nil {
		fmt.Fprintf(stderr, "tailcast bench: %v\n", err)
		return 1
	}
	for _, s := range res.Summaries {
		if s.Faults > 0 {
			return 3
		}
	}
	return 0
}

func (o *benchOptions) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.Usage = func() {}
	f.SortFlags = false
	o.specFlags(f)
	f.IntVar(&o.runs, "runs", 1, "how often to measure, server and floor in turn")
	f.BoolVar(&o.floor, "floor", o.spec.Scenario.Floor(), "measure the floor, too")
	serverCPU, clientCPU := defaultCPUs(runtime.NumCPU())
	f.StringVar(&o.serverCPU, "server-cpu", serverCPU, "processors of the server, as 0 or 0,2-5; empty for any")
	f.StringVar(&o.clientCPU, "client-cpu", clientCPU, "processors of clients, broker and publisher")
	f.StringSliceVar(&o.brokers, "kafka-brokers", nil, "publish into the topic "+harness.Topic+" of these brokers instead of one of our own")
	f.StringVar(&o.json, "json", "", "write the result to this file; - for the standard output")
	f.BoolVar(&o.verbose, "verbose", false, "show what the processes log")
	return f
}

// specFlags adds the flags that matter to the scenario.
func (o *benchOptions) specFlags(f *pflag.FlagSet) {
	s := &o.spec
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SortFlags = false
	all.IntVar(&s.Streams, "streams", s.Streams, "streams")
	all.IntVar(&s.Partitions, "partitions", s.Partitions, "partitions of the topic")
	all.Float64Var(&s.Rate, "rate", s.Rate, "records a second")
	all.IntVar(&s.Size, "size", s.Size, "bytes of a record's value")
	all.StringVar(&s.Codec, "codec", s.Codec, "compression of the records: none, gzip, snappy, lz4 or zstd")
	all.Int64Var(&s.Records, "records", s.Records, "records to read")
	all.IntVar(&s.Behind, "behind", s.Behind, "records published while the streams are away")
	all.IntVar(&s.Stalled, "stalled", s.Stalled, "streams, of all, that stop to read")
	all.Var(durationFlag{&s.Churn}, "churn", "how long a stream stays, on average")
	all.Var(durationFlag{&s.P99}, "p99", "latency that the rate must keep")
	all.IntVar(&s.Steps, "steps", s.Steps, "rates to try at most, each a quarter faster")
	all.Var(durationFlag{&s.Settle}, "settle", "quiet time before the figures of idle streams are taken")
	all.Var(durationFlag{&s.Warm}, "warm", "time with records before measuring")
	all.Var(durationFlag{&s.For}, "for", "time to measure")
	all.IntVar(&s.Sample, "sample", s.Sample, "take the latency of one of this many streams")
	all.IntVar(&s.Opening, "opening", s.Opening, "streams that wait for their response head at a time")
	all.VisitAll(func(flag *pflag.Flag) {
		if s.Scenario.Uses(flag.Name) {
			f.AddFlag(flag)
		}
	})
}

// durationFlag makes a duration a flag.
type durationFlag struct{ *harness.Duration }

func (d durationFlag) String() string {
	if d.Duration == nil {
		return ""
	}
	b, _ := d.MarshalText() //nolint:errcheck // it never fails
	return string(b)
}
func (d durationFlag) Set(s string) error { return d.UnmarshalText([]byte(s)) }
func (d durationFlag) Type() string       { return "duration" }

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

func parseBench(args []string) (*benchOptions, error) {
	o := &benchOptions{}
	o.spec, _ = harness.Default(string(harness.Fanout))
	if args[0] == "-h" || args[0] == "--help" {
		return o, pflag.ErrHelp
	}
	var err error
	if o.spec, err = harness.Default(args[0]); err != nil {
		return o, err
	}
	f := o.flags()
	if err := f.Parse(args[1:]); err != nil {
		return o, err
	}
	o.serve = f.Args()
	if n := f.ArgsLenAtDash(); n > 0 || n < 0 && f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, o.spec.Check()
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
		Spec: o.spec, Runs: o.runs, Tailcast: self, ServerCPU: o.serverCPU, LoadCPU: o.clientCPU,
		Targets: []harness.Target{harness.Gateway{Version: version(), Brokers: o.brokers, Args: o.serve}.Target()},
	}
	if o.floor {
		plan.Targets = append(plan.Targets, harness.FloorTarget())
	}
	if o.verbose {
		plan.Log = stderr
	}
	return plan.Run(ctx)
}

func (o *benchOptions) write(res *harness.Result, stdout io.Writer) error {
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(res)
}
