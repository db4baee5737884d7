package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"tailcast/bench/harness"
)

// benchOptions is the command line of bench.
type benchOptions struct {
	spec                 harness.Spec
	runs                 int
	floor, plain         bool
	serverCPU, clientCPU string
	topic                string
	brokers              []string
	url, metrics         string
	pids                 []int
	json, html           string
	verbose              bool
	serve                []string // flags of tailcast serve
}

// runsMax bounds --runs: a day of short ones.
const runsMax = 1000

// parseBench reads the command line behind bench.
func parseBench(args []string) (*benchOptions, error) {
	o := &benchOptions{}
	var err error
	if o.spec, err = harness.Default(args[0]); err != nil {
		return o, err
	}
	f := o.flags()
	if err := f.Parse(args[1:]); err != nil {
		return o, err
	}
	o.serve = f.Args()
	secure := strings.HasPrefix(o.url, "https:")
	if secure {
		o.spec.TLS = cmp.Or(o.spec.TLS, harness.TLS13)
	}
	switch dash := f.ArgsLenAtDash(); {
	case dash > 0 || dash < 0 && f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.runs < 1 || o.runs > runsMax:
		return o, fmt.Errorf("--runs: %d is outside 1 to %d", o.runs, runsMax)
	case o.json == onStdout && o.html == onStdout:
		return o, errors.New("--json and --html: one of them can be the standard output")
	case o.url != "" && len(o.brokers) == 0:
		return o, errors.New("--url: name the server's brokers, too, by --kafka-brokers")
	case o.url != "" && len(o.serve) > 0:
		return o, errors.New("--url: flags of tailcast serve go to a server that is started here")
	case o.url != "" && o.spec.TLS != "" && !secure:
		return o, errors.New("--tls: the server of --url is to have an https URL")
	case o.url == "" && (len(o.pids) > 0 || o.metrics != ""):
		return o, errors.New("--pid and --metrics are for a server named by --url")
	}
	return o, o.spec.Check()
}

// flags are those of the scenario, with o as their values.
func (o *benchOptions) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet(benchmark, pflag.ContinueOnError)
	f.Usage = func() {} // the caller prints it
	f.SortFlags = false
	o.specFlags(f)
	f.IntVar(&o.runs, "runs", 1, "how often to measure, server and floor in turn")
	f.BoolVar(&o.floor, "floor", o.spec.Scenario.Floor(), "measure the floor, too")
	if o.spec.Scenario.Uses("tls") {
		f.BoolVar(&o.plain, "plain", true, "with --tls, measure without it, too")
	}
	serverCPU, clientCPU := defaultCPUs(runtime.NumCPU())
	f.StringVar(&o.serverCPU, "server-cpu", serverCPU, "processors of the server, as 0 or 0,2-5; empty for any")
	f.StringVar(&o.clientCPU, "client-cpu", clientCPU, "processors of clients, broker and publisher")
	f.StringSliceVar(&o.brokers, "kafka-brokers", nil, "publish to these brokers instead of one of our own")
	f.StringVar(&o.topic, "topic", harness.Topic, "topic to publish into, made unless it exists")
	f.StringVar(&o.url, "url", "", "streams of a server that runs: http://host:port/path or https, with {user} for keyed and feeds")
	f.IntSliceVar(&o.pids, "pid", nil, "processes of that server, for CPU and memory")
	f.StringVar(&o.metrics, "metrics", "", "URL of that server's metrics, for heap and goroutines")
	f.StringVar(&o.json, "json", "", "write the result to this file; - for the standard output, alone")
	f.StringVar(&o.html, "html", "", "write a page with plots to this file; - as for --json")
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
	all.Int64Var(&s.Keys, "keys", s.Keys, "keys of the compacted topic")
	all.IntVar(&s.Behind, "behind", s.Behind, "records published while the streams are away")
	all.IntVar(&s.Stalled, "stalled", s.Stalled, "streams, of all, that stop to read")
	all.Var(durationFlag{&s.Churn}, "churn", "how long a stream stays, on average")
	all.IntVar(&s.Attackers, "attackers", s.Attackers, "attackers at a time, five times as many of those that hold connections")
	all.StringArrayVar(&s.Attack, "attack", s.Attack, "make the attacks alone that have this in their names; may come again")
	all.Var(durationFlag{&s.P99}, "p99", "latency that the rate must keep")
	all.IntVar(&s.Steps, "steps", s.Steps, "rates to try at most, each a quarter faster")
	all.Var(durationFlag{&s.Settle}, "settle", "quiet time before the figures of idle streams are taken")
	all.Var(durationFlag{&s.Warm}, "warm", "time with records before measuring")
	all.Var(durationFlag{&s.For}, "for", "time to measure")
	all.IntVar(&s.Sample, "sample", s.Sample, "take the latency of one of this many streams")
	all.IntVar(&s.Opening, "opening", s.Opening, "streams that wait for their response head at a time")
	all.StringVar(&s.TLS, "tls", s.TLS, "have streams speak this version of TLS, 1.2 or 1.3")
	all.Lookup("tls").NoOptDefVal = harness.TLS13
	all.BoolVar(&s.Resume, "tls-resume", s.Resume, "with --tls, have streams take up the session of an earlier one")
	all.VisitAll(func(flag *pflag.Flag) {
		if s.Scenario.Uses(flag.Name) {
			f.AddFlag(flag)
		}
	})
}

// durationFlag makes a duration of the harness a flag.
type durationFlag struct{ *harness.Duration }

func (d durationFlag) String() string {
	if d.Duration == nil { // pflag asks a zero flag for its default
		return ""
	}
	b, _ := d.MarshalText() // it never fails
	return string(b)
}

func (d durationFlag) Set(s string) error { return d.UnmarshalText([]byte(s)) }

func (d durationFlag) Type() string { return "duration" }
