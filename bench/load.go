package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Load is one run: open the streams, let the server settle, say ready, measure.
type Load struct {
	Config
	// OpenWithin bounds the opening (60 s).
	OpenWithin time.Duration
	// Settle is the quiet time before the figures of an idle server are taken;
	// Warm the time after that, with events coming, before measuring.
	Settle, Warm time.Duration
	// For is how long to measure. With Total it is how long to wait at most
	// until every stream that reads all has so many events since its start,
	// and Linger how long to look for more than that.
	For    time.Duration
	Total  int64
	Linger time.Duration
	// Servers are the processes whose figures are reported.
	Servers []int
	// Ready is called once when the streams are open and settled.
	Ready func() error
}

// Report is the outcome of a run.
type Report struct {
	Result
	Servers   []Server `json:"servers,omitempty"`
	KernelTCP struct { // what all sockets of the machine hold, both ends
		Before int64 `json:"before_bytes"`
		Idle   int64 `json:"idle_bytes"`
		End    int64 `json:"end_bytes"`
	} `json:"kernel_tcp"`
}

// Server is what one process spent and held.
type Server struct {
	PID          int     `json:"pid"`
	CPUSeconds   float64 `json:"cpu_s"` // in the measured part
	CPUShare     float64 `json:"cpu_share"`
	CPUPerEvent  float64 `json:"cpu_us_per_event"` // an event that reached a client
	RSSPerStream float64 `json:"rss_per_stream"`   // from before to idle
	Before       Proc    `json:"before"`           // before the first connection
	Idle         Proc    `json:"idle"`             // streams open and settled
	End          Proc    `json:"end"`

	measured time.Duration // CPU when measuring began
}

// Run runs the load. The report holds what is known also when there is an
// error; an error is for a run that did not happen as described, not for
// faults of the server, which are in the report.
func (l *Load) Run(ctx context.Context) (r Report, err error) {
	cl, err := New(l.Config)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	for _, pid := range l.Servers {
		r.Servers = append(r.Servers, Server{PID: pid})
	}
	err = l.run(ctx, cl, &r)
	r.Result = cl.Result()
	for i := range r.Servers {
		s, w := &r.Servers[i], r.Window
		s.CPUShare = share(s.CPUSeconds, w.Seconds)
		s.CPUPerEvent = share(s.CPUSeconds*1e6, float64(w.Events))
		s.RSSPerStream = float64(s.Idle.RSS-s.Before.RSS) / float64(l.Conns)
	}
	return r, err
}

func (l *Load) run(ctx context.Context, cl *Client, r *Report) error {
	r.KernelTCP.Before = KernelTCPBytes()
	if err := r.look(func(s *Server, p Proc) { s.Before = p }); err != nil {
		return err
	}
	within := l.OpenWithin
	if within == 0 {
		within = time.Minute
	}
	opening, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := cl.Open(opening); err != nil {
		return err
	}
	if err := cl.Run(ctx, l.Settle); err != nil {
		return err
	}
	r.KernelTCP.Idle = KernelTCPBytes()
	if err := r.look(func(s *Server, p Proc) { s.Idle = p }); err != nil {
		return err
	}
	if l.Ready != nil {
		if err := l.Ready(); err != nil {
			return fmt.Errorf("ready: %w", err)
		}
	}
	if err := cl.Run(ctx, l.Warm); err != nil {
		return err
	}
	return l.measure(ctx, cl, r)
}

func (l *Load) measure(ctx context.Context, cl *Client, r *Report) (err error) {
	if err := r.look(func(s *Server, p Proc) { s.measured = p.CPU }); err != nil {
		return err
	}
	cl.Measure()
	if l.Total > 0 {
		err = cl.RunTotal(ctx, l.Total, l.For)
	} else {
		err = cl.Run(ctx, l.For)
	}
	cl.Measured()
	r.KernelTCP.End = KernelTCPBytes()
	err = errors.Join(err, r.look(func(s *Server, p Proc) {
		s.End = p
		s.CPUSeconds = (p.CPU - s.measured).Seconds()
	}))
	if l.Total > 0 && err == nil {
		err = cl.Run(ctx, l.Linger)
	}
	return err
}

// look reads the figures of every server.
func (r *Report) look(take func(*Server, Proc)) error {
	for i := range r.Servers {
		p, err := ReadProc(r.Servers[i].PID)
		if err != nil {
			return err
		}
		take(&r.Servers[i], p)
	}
	return nil
}
