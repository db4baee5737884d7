// Package harness measures servers of Server-Sent Events: it starts the server
// under test, and what it needs beside it, pinned to processors of their own,
// puts the load of a scenario on it, and says what that cost and whether every
// record arrived.
//
// A Plan runs a scenario against one or several targets in turn and gives a
// Result. A Target is how one server is started and fed; tailcast and the floor
// are here, peers elsewhere. The harness reads and writes no Kafka itself: who
// publishes is a process of its own that takes orders.
package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// Plan is which targets are measured, and how often.
type Plan struct {
	Spec    Spec
	Targets []Target // the first is the one that others are compared with
	// Runs is how often each target is measured, in rounds that begin with the
	// next target each: a b c, b c a, c a b. What a run leaves behind in the
	// machine does not always meet the same one.
	Runs int
	// Retries is how often a run is repeated that did not happen as described,
	// so that one of many does not cost all the others.
	Retries int
	// Topic, Tailcast, ServerCPU, LoadCPU and Log are those of Setup.
	Topic              string // "": bench
	Tailcast           string
	ServerCPU, LoadCPU string
	Log                io.Writer
	// Progress, unless nil, is told what is being done.
	Progress func(Progress)
}

// Progress is how far a plan is.
type Progress struct {
	Target   string
	Run, Of  int           // of all runs of all targets
	Doing    string        // "opening 10,000 streams"
	For      time.Duration // how long that takes, or 0 where that is not known
	Events   func() int64  // how many have come so far; safe from any goroutine
	Figures  map[string]float64
	Finished bool  // the run has ended, and Figures is what it gave
	Err      error // with Finished: it did not happen as described
}

// Run carries out the plan. The result holds what was measured also when there
// is an error. An error is for a run that did not happen as described; faults
// of a server are in the result.
func (p *Plan) Run(ctx context.Context) (*Result, error) {
	if err := p.Spec.Check(); err != nil {
		return nil, err
	}
	if p.Runs < 1 || len(p.Targets) == 0 {
		return nil, errors.New("nothing to run")
	}
	res := newResult(p)
	frameBytes := 0
	for n := range p.Runs * len(p.Targets) {
		t := &p.Targets[(n/len(p.Targets)+n)%len(p.Targets)]
		r, err := p.runOne(ctx, t, n, frameBytes)
		for again := 0; err != nil && again < p.Retries && ctx.Err() == nil; again++ {
			failed := fmt.Sprintf("an attempt before failed: %v", err)
			r, err = p.runOne(ctx, t, n, frameBytes)
			r.FaultText = append(r.FaultText, failed)
		}
		if err == nil && t == &p.Targets[0] {
			frameBytes = int(r.Window.BytesPerEvent + 0.5)
		}
		res.Runs = append(res.Runs, r)
		if err != nil {
			return res, fmt.Errorf("%s, run %d: %w", t.Name, n/len(p.Targets)+1, err)
		}
	}
	res.SumUp()
	return res, nil
}

// runOne measures one target once.
func (p *Plan) runOne(ctx context.Context, t *Target, n, frameBytes int) (out Run, err error) {
	out = Run{Target: t.Name, Version: t.Version, Number: n/len(p.Targets) + 1, Began: time.Now()}
	dir, err := os.MkdirTemp("", "tailcast-bench-")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	spec := p.Spec
	if t.Rate > 0 {
		spec.Rate = t.Rate
	}
	out.Rate = spec.Rate
	s := &Setup{
		Spec: spec, Topic: cmp.Or(p.Topic, Topic), Tailcast: p.Tailcast, ServerCPU: p.ServerCPU, LoadCPU: p.LoadCPU,
		Dir: dir, FrameBytes: frameBytes, Log: p.Log,
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	// The client counts the CPU time of its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &run{ctx: ctx, setup: s, target: t, out: &out, say: func(pr Progress) {
		pr.Target, pr.Run, pr.Of = t.Name, n+1, p.Runs*len(p.Targets)
		if p.Progress != nil {
			p.Progress(pr)
		}
	}}
	err = r.measure(lookUp(p.Spec.Scenario))
	r.say(Progress{Doing: "done", Figures: out.Figures, Finished: true, Err: err})
	return out, err
}
