// Command ssebench holds many streams of Server-Sent Events open and reports
// what they got, whether it was right, how late it came, and what the server
// spent. The report is JSON on the standard output.
//
//	ssebench -url http://127.0.0.1:8080/events -n 10000 -dur 10s -pid 1234
//	ssebench -url http://127.0.0.1:8080/events -n 15000 -verify -until-total 120 -ready /tmp/go
//
// It ends with status 1 when the run could not happen as asked, and with 2
// when -verify found a fault.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"tailcast/bench"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ssebench:", err)
		code = 1
	}
	os.Exit(code)
}

func run() (code int, err error) {
	var l bench.Load
	flag.StringVar(&l.URL, "url", "", "the stream: http://host:port/path")
	flag.IntVar(&l.Conns, "n", 1000, "streams, all kinds together")
	flag.IntVar(&l.Stalled, "stall", 0, "streams of these that never read")
	flag.IntVar(&l.Slow, "slow", 0, "streams of these that read slowly")
	flag.IntVar(&l.SlowRate, "slow-rate", 1000, "bytes a second that a slow stream reads")
	flag.IntVar(&l.Reconnecting, "reconnect", 0, "streams of these that cut their connection and come back with their last id")
	flag.DurationVar(&l.ReconnectEvery, "reconnect-every", 5*time.Second, "average time between the cuts of a stream; 0 never cuts, but comes back")
	flag.BoolVar(&l.Reopen, "reopen", false, "other streams come back, too, when the server ends them")
	flag.DurationVar(&l.RetryMax, "retry-max", time.Second, "come back after this at the latest, whatever the server's retry says")
	flag.IntVar(&l.Opening, "opening", 256, "connections waiting for their response head at a time")
	flag.BoolVar(&l.Verify, "verify", false, "check that every record comes once and in order, and the ids")
	flag.IntVar(&l.Sample, "sample", 100, "measure latency on one of this many streams")
	flag.Uint64Var(&l.Seed, "seed", 0, "of the random choices; 0 takes one from the clock")
	flag.DurationVar(&l.OpenWithin, "open-within", time.Minute, "time to open all streams")
	flag.DurationVar(&l.Settle, "settle", time.Second, "quiet time before the idle figures are taken")
	flag.DurationVar(&l.Warm, "warm", 0, "time between -ready and measuring")
	flag.DurationVar(&l.For, "dur", 10*time.Second, "time to measure, or with -until-total to wait at most")
	flag.Int64Var(&l.Total, "until-total", 0, "end when every stream that reads all has this many events")
	flag.DurationVar(&l.Linger, "linger", 500*time.Millisecond, "time to look for more events after -until-total")
	pids := flag.String("pid", "", "server processes to watch, separated by commas")
	ready := flag.String("ready", "", "file to create when all streams are open")
	flag.Parse()
	if flag.NArg() > 0 {
		return 1, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	for s := range strings.SplitSeq(*pids, ",") {
		if s == "" {
			continue
		}
		pid, err := strconv.Atoi(s)
		if err != nil {
			return 1, fmt.Errorf("-pid: %q is no process id", s)
		}
		l.Servers = append(l.Servers, pid)
	}
	if *ready != "" {
		l.Ready = func() error { return os.WriteFile(*ready, nil, 0o644) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report, err := l.Run(ctx)
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := errors.Join(err, out.Encode(report)); err != nil {
		return 1, err
	}
	if n := report.Counts.Faults(); l.Verify && n > 0 {
		fmt.Fprintf(os.Stderr, "ssebench: %d faults, the first: %s\n", n, report.Faults[0])
		return 2, nil
	}
	return 0, nil
}
