// Command peers measures tailcast beside other servers of Server-Sent Events,
// each alone on one processor, and the floor: in rounds, so that what the
// machine does meanwhile meets all of them. It starts and ends everything
// itself.
//
//	peers -tailcast bin/tailcast -nethttp bin/nethttp -centrifugo bin/centrifugo -pairs 7
//
// make bench-peers builds what it needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tailcast/bench/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "post" {
		err = post(ctx, os.Args[2:], os.Stdin, os.Stdout)
	} else {
		err = run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// options is the command line.
type options struct {
	tools
	peers, scenarios     string
	pairs, seconds       int
	streamsMax           int
	serverCPU, clientCPU string
	out, docs            string
	verbose              bool
}

// pairsLeast is how many rounds a published median needs.
const pairsLeast = 7

func run(ctx context.Context) error {
	var o options
	var all, names []string
	for _, p := range peers() {
		all = append(all, p.name)
	}
	for _, m := range measurements(1) {
		names = append(names, m.name)
	}
	flag.StringVar(&o.tailcast, "tailcast", "bin/tailcast", "path of tailcast")
	flag.StringVar(&o.nginx, "nginx", "nginx", "name or path of nginx")
	flag.StringVar(&o.nchanModule, "nchan-module", nchanModule, "path of nginx's nchan module")
	flag.StringVar(&o.centrifugo, "centrifugo", "bin/centrifugo", "path of Centrifugo")
	flag.StringVar(&o.nethttp, "nethttp", "bin/nethttp", "path of bench/peers/nethttp")
	flag.StringVar(&o.peers, "peers", strings.Join(all, ","), "peers to measure")
	flag.StringVar(&o.scenarios, "scenarios", strings.Join(names, ","), "what to measure")
	flag.IntVar(&o.pairs, "pairs", pairsLeast, "how often to measure each server")
	flag.IntVar(&o.seconds, "seconds", 8, "how long to measure")
	flag.IntVar(&o.streamsMax, "streams", 0, "so many streams at most; 0: as many as a scenario has")
	flag.StringVar(&o.serverCPU, "server-cpu", "0", "processors of the server under test")
	flag.StringVar(&o.clientCPU, "client-cpu", "1", "processors of clients, broker and publisher")
	flag.StringVar(&o.out, "out", ".cache/bench-peers", "folder for the results, in JSON")
	flag.StringVar(&o.docs, "docs", "", "file whose tables to write, unless a flag has made the run smaller")
	flag.BoolVar(&o.verbose, "verbose", false, "show what the servers log")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.pairs < 1 || o.seconds < 1 {
		return errors.New("-pairs and -seconds: want at least 1")
	}
	b, err := newBattery(&o)
	if err != nil {
		return err
	}
	return b.run(ctx)
}

// battery is all that is measured, and what came of it.
type battery struct {
	o     *options
	todo  []measurement
	peers []peer
	plan  harness.Plan // without a specification
	whole bool         // nothing has been left out
	done  []outcomeOf
}

// outcomeOf is a measurement with its result.
type outcomeOf struct {
	measurement
	res *harness.Result
}

func newBattery(o *options) (*battery, error) {
	b := &battery{o: o}
	wanted := strings.Split(o.scenarios, ",")
	for _, m := range measurements(o.seconds) {
		if i := slices.Index(wanted, m.name); i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
			if o.streamsMax > 0 {
				m.spec.Streams = min(m.spec.Streams, o.streamsMax)
			}
			b.todo = append(b.todo, m)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("-scenarios: none is called %q", wanted[0])
	}
	var err error
	if b.peers, err = choose(o.peers); err != nil {
		return nil, err
	}
	b.whole = o.pairs >= pairsLeast && o.streamsMax == 0 && len(b.peers) == len(peers()) && len(b.todo) == len(measurements(1))
	if o.self, err = os.Executable(); err != nil {
		return nil, err
	}
	version, err := exec.Command(o.tailcast, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("-tailcast: %w", err)
	}
	name, _, _ := strings.Cut(string(version), "\n")
	targets := []harness.Target{harness.Gateway{Version: name}.Target()}
	for _, p := range b.peers {
		t, err := p.target(&o.tools)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	b.plan = harness.Plan{
		Targets: append(targets, harness.FloorTarget()), Runs: o.pairs, Retries: 2,
		Tailcast: o.tailcast, ServerCPU: o.serverCPU, LoadCPU: o.clientCPU,
	}
	if o.verbose {
		b.plan.Log = os.Stderr
	}
	return b, nil
}

// takes is about how long the whole takes.
func (b *battery) takes() (d time.Duration) {
	for _, m := range b.todo {
		runs := len(b.plan.Targets) * b.o.pairs
		if m.best {
			runs += len(b.peers) * tries
		}
		d += time.Duration(runs) * m.runTime()
	}
	return d
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

func (b *battery) run(ctx context.Context) error {
	say("%d scenarios, %d servers, %d times each: about %v", len(b.todo), len(b.plan.Targets), b.o.pairs, b.takes().Round(time.Minute))
	if err := harness.Pin(b.o.clientCPU); err != nil {
		return fmt.Errorf("-client-cpu: %w", err)
	}
	if err := os.MkdirAll(b.o.out, 0o755); err != nil {
		return err
	}
	for _, m := range b.todo {
		res, err := b.measure(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := b.keep(m.name, res); err != nil {
			return err
		}
		b.done = append(b.done, outcomeOf{m, res})
	}
	text := b.tables()
	fmt.Print(text)
	switch {
	case b.o.docs == "":
		return nil
	case !b.whole:
		say("%s is left as it is: this was not the whole battery, %d times or more", b.o.docs, pairsLeast)
		return nil
	}
	return writeBetween(b.o.docs, text)
}

// measure carries out one measurement.
func (b *battery) measure(ctx context.Context, m measurement) (*harness.Result, error) {
	plan := b.plan
	plan.Spec = m.spec
	plan.Targets = slices.Clone(plan.Targets)
	if m.best {
		for i := 1; i <= len(b.peers); i++ {
			one := plan
			one.Targets, one.Runs, one.Retries = []harness.Target{plan.Targets[i]}, 1, 0 // best tries again itself
			rate, err := best(ctx, one, say)
			if err != nil {
				return nil, err
			}
			plan.Targets[i].Rate = rate
		}
	}
	plan.Progress = func(p harness.Progress) {
		switch {
		case p.Err != nil:
			say("%s, %d of %d, %s: %v", m.name, p.Run, p.Of, p.Target, p.Err)
		case p.Finished:
			say("%s, %d of %d, %s: %s", m.name, p.Run, p.Of, p.Target, brief(p.Figures, m.columns))
		}
	}
	return plan.Run(ctx)
}

// keep writes a result into the folder of results.
func (b *battery) keep(name string, res *harness.Result) error {
	text, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.o.out, name+".json"), append(text, '\n'), 0o644)
}
