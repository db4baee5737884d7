package harness

import (
	"context"
	"sync"
	"time"

	"tailcast/bench"
)

// State is what the server's processes hold at one moment.
type State struct {
	RSS       int64 `json:"rss_bytes"`
	Threads   int   `json:"threads"`
	FDs       int   `json:"fds"`
	KernelTCP int64 `json:"kernel_tcp_bytes"` // all sockets of the machine, both ends
	// Heap and Goroutines are told by the server's metrics, or 0.
	Heap       float64 `json:"heap_bytes,omitempty"`
	Goroutines float64 `json:"goroutines,omitempty"`
	Mallocs    float64 `json:"mallocs,omitempty"` // since it began
	// Records and Fetches are what tailcast has read of Kafka since it began,
	// and in how many answers of brokers.
	Records float64 `json:"records,omitempty"`
	Fetches float64 `json:"fetches,omitempty"`
}

// Load is what the measured part took.
type Load struct {
	ServerCPU float64 `json:"server_cpu_s"`
	// ServerShare is of one processor: 1.0 is one processor busy.
	ServerShare float64 `json:"server_cpu_share"`
	// LoadBusy is how busy the processors of the load were, of all of them;
	// near 1 they were the limit. 0 where they are not known.
	LoadBusy float64 `json:"load_cpu_busy"`
}

// Slice is what the server's processes used in one piece of the measured part.
type Slice struct {
	At    float64 `json:"at_s"` // its end, since measuring began
	Share float64 `json:"cpu_share"`
	RSS   int64   `json:"rss_bytes"`
}

const (
	watchEvery = 500 * time.Millisecond
	// watchedMax bounds the slices kept: beyond it every second one goes.
	watchedMax = 7200
)

// watch looks at the server's processes while a run goes on.
type watch struct {
	pids    []int
	metrics string
	gc      string
	loadCPU string

	stop func()
	wg   sync.WaitGroup

	began   time.Time
	beganAt time.Duration // CPU when measuring began
	busyAt  cpuTimes
	slices  []Slice // of the goroutine that watches, until it has ended
}

// newWatch makes a watch; an error says that a process can't be looked at.
func newWatch(s *Server, loadCPU string) (*watch, error) {
	w := &watch{pids: s.PIDs, metrics: s.Metrics, gc: s.GC, loadCPU: loadCPU}
	for _, pid := range w.pids {
		if _, err := bench.ReadProc(pid); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// cpu is what the processes have used since they began. One that has ended
// counts nothing.
func (w *watch) cpu() (sum time.Duration) {
	for _, pid := range w.pids {
		if u, err := bench.ReadUse(pid); err == nil {
			sum += u.CPU
		}
	}
	return sum
}

// quiet takes the state of processes that do nothing: the heap holds what is
// in use alone, where the server can be asked to collect.
func (w *watch) quiet(ctx context.Context) (State, error) {
	s, err := w.look(ctx)
	if err != nil || w.gc == "" {
		return s, err
	}
	if err := answers(ctx, w.gc); err != nil {
		return s, err
	}
	m, err := scrape(ctx, w.metrics)
	s.Heap = m["go_memstats_heap_alloc_bytes"]
	return s, err
}

// look takes the state of the processes.
func (w *watch) look(ctx context.Context) (State, error) {
	s := State{KernelTCP: bench.KernelTCPBytes()}
	for _, pid := range w.pids {
		p, err := bench.ReadProc(pid)
		if err != nil {
			return s, err
		}
		s.RSS += p.RSS
		s.Threads += p.Threads
		s.FDs += p.FDs
	}
	if w.metrics == "" {
		return s, nil
	}
	m, err := scrape(ctx, w.metrics)
	s.Heap, s.Goroutines, s.Mallocs = m["go_memstats_heap_alloc_bytes"], m["go_goroutines"], m["go_memstats_mallocs_total"]
	s.Records, s.Fetches = m["tailcast_records_total"], m["tailcast_kafka_fetches_total"]
	return s, err
}

// begin begins the measured part.
func (w *watch) begin() {
	done := make(chan struct{})
	w.stop = func() { close(done) }
	w.slices = nil
	w.began, w.beganAt, w.busyAt = time.Now(), w.cpu(), readCPUTimes(w.loadCPU)
	w.wg.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		before, beforeAt := w.beganAt, w.began
		for every, n := 1, 0; ; n++ {
			select {
			case <-done:
				return
			case now := <-tick.C:
				if n%every != 0 {
					continue
				}
				cpu, rss := w.cpu(), w.rss()
				w.slices = append(w.slices, Slice{
					At: now.Sub(w.began).Seconds(), Share: (cpu - before).Seconds() / now.Sub(beforeAt).Seconds(), RSS: rss,
				})
				before, beforeAt = cpu, now
				if len(w.slices) == watchedMax {
					for i := range watchedMax / 2 {
						w.slices[i] = w.slices[2*i+1]
					}
					w.slices = w.slices[:watchedMax/2]
					every *= 2
				}
			}
		}
	})
}

func (w *watch) rss() (sum int64) {
	for _, pid := range w.pids {
		if u, err := bench.ReadUse(pid); err == nil {
			sum += u.RSS
		}
	}
	return sum
}

// end ends the measured part.
func (w *watch) end() (Load, []Slice) {
	cpu, took := (w.cpu() - w.beganAt).Seconds(), time.Since(w.began).Seconds()
	busy := readCPUTimes(w.loadCPU).busySince(w.busyAt)
	w.stop()
	w.wg.Wait()
	return Load{ServerCPU: cpu, ServerShare: cpu / took, LoadBusy: busy}, w.slices
}
