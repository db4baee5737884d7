package httpcases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options says how to play the cases. The zero value is good.
type Options struct {
	// Parallel is how many connections are used at a time (64).
	Parallel int
	// Quiet is how long to look for one more answer than was needed (150 ms).
	Quiet time.Duration
	// AnswerWithin is how soon a server must begin to answer (5 s).
	AnswerWithin time.Duration
	// EndWithin is how soon it must go on, and end a connection that it has to
	// end (5 s).
	EndWithin time.Duration
	// HeaderTimeout is the server's time for a request head (5 s).
	HeaderTimeout time.Duration
	// Target says which request target an answer is for, where answers tell;
	// without it a target that must not be served is noticed by the number of
	// answers alone.
	Target func(Answer) string
	// Only names the cases to play; nil plays all.
	Only []string
}

// Failure is a case that a server did not play right.
type Failure struct {
	Case string
	Note string
	Mode string // how the input was sent
	Got  string
	Want []string // what each of the right behaviours misses
	More int      // further ways of sending that failed in the same way
}

func (f Failure) String() string {
	s := fmt.Sprintf("%s (%s), %s: got %s; %s", f.Case, f.Note, f.Mode, f.Got, strings.Join(f.Want, "; or "))
	if f.More > 0 {
		s += fmt.Sprintf("; and so in %d other ways of sending", f.More)
	}
	return s
}

// cut is a way to send an input.
type cut struct {
	name string
	at   int // 0: one write; > 0: two writes, the second from there; < 0: byte by byte
}

// cuts are the ways to send n bytes, one write first.
func cuts(n int) []cut {
	all := []cut{{"in one write", 0}, {"byte by byte", -1}}
	step := 1
	if n > smallMax {
		step = bigStep
	}
	for at := step; at < n; at += step {
		all = append(all, cut{fmt.Sprintf("split at %d", at), at})
	}
	return all
}

// Run plays every case to the server at addr: in one write, byte by byte, and
// in two writes split at every place. It returns what went wrong, in the order
// of the cases; how the input is cut must make no difference. Against a right
// server it takes well under a minute.
func Run(ctx context.Context, addr string, opts Options) (failures []Failure) {
	opts.setDefaults()
	cases := opts.cases()
	plays := make([][]*outcome, len(cases))
	slots := make(chan struct{}, opts.Parallel)
	var playing sync.WaitGroup
	for _, i := range slowestFirst(cases) {
		ways := cuts(len(cases[i].Input))
		plays[i] = make([]*outcome, len(ways))
		for w := range ways {
			slots <- struct{}{}
			playing.Go(func() {
				plays[i][w] = opts.play(ctx, addr, &cases[i], ways[w])
				<-slots
			})
		}
	}
	playing.Wait()
	for i := range cases {
		c := &cases[i]
		failures = append(failures, c.compare(cuts(len(c.Input)), plays[i], opts.Target)...)
	}
	return failures
}

func (opts *Options) setDefaults() {
	if opts.Parallel == 0 {
		opts.Parallel = 64
	}
	if opts.Quiet == 0 {
		opts.Quiet = 150 * time.Millisecond
	}
	if opts.AnswerWithin == 0 {
		opts.AnswerWithin = 5 * time.Second
	}
	if opts.EndWithin == 0 {
		opts.EndWithin = 5 * time.Second
	}
	if opts.HeaderTimeout == 0 {
		opts.HeaderTimeout = 5 * time.Second
	}
}

func (opts *Options) cases() []Case {
	if opts.Only == nil {
		return Cases()
	}
	var some []Case
	for _, c := range Cases() {
		if slices.Contains(opts.Only, c.ID) {
			some = append(some, c)
		}
	}
	return some
}

// slowestFirst is an order of the cases in which those that wait for a timer
// run beside the others and not after them.
func slowestFirst(cases []Case) (order []int) {
	for i := range cases {
		if cases[i].Wait == waitHeaderTimeout {
			order = slices.Insert(order, 0, i)
		} else {
			order = append(order, i)
		}
	}
	return order
}
