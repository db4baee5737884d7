package harness

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"tailcast/bench/hostile"
)

// Setup is what a target is started with.
type Setup struct {
	Spec
	// Topic is where records are published, if that is to Kafka.
	Topic string
	// Tailcast is the path of the tailcast binary, which is also broker,
	// publisher and floor.
	Tailcast string
	// ServerCPU and LoadCPU are the processors of the server and of all the
	// rest, as "0" or "2-5,8"; "" for any.
	ServerCPU, LoadCPU string
	// Dir is for files of this run alone. It is removed behind it.
	Dir string
	// FrameBytes is what an event of the first target took on the wire, or 0
	// where that is not known yet.
	FrameBytes int
	// Log takes the standard error of the processes, besides its end, which
	// errors quote.
	Log io.Writer

	procs []*Process
	site  *hostile.Site // of Hostile
}

// CPU is which processors a process may use.
type CPU int

// The processors of a run.
const (
	OnServer CPU = iota // those of the server under test
	OnLoad              // those of clients, brokers and publishers
)

// Command starts a process that ends with the run.
func (s *Setup) Command(cpu CPU, name string, args ...string) (*Process, error) {
	cpus := s.ServerCPU
	if cpu == OnLoad {
		cpus = s.LoadCPU
	}
	p, err := startProcess(cpus, s.Log, name, args...)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.procs = append(s.procs, p)
	return p, nil
}

// File writes a file into the run's directory and returns its path.
func (s *Setup) File(name, text string) (path string, err error) {
	path = filepath.Join(s.Dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// stop ends every process, the latest first, and what else there is.
func (s *Setup) stop() error {
	var errs []error
	for _, p := range slices.Backward(s.procs) {
		errs = append(errs, p.Stop())
	}
	s.procs = nil
	if s.site != nil {
		errs = append(errs, s.site.Close())
		s.site = nil
	}
	return errors.Join(errs...)
}
