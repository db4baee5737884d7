package harness

import (
	"context"
	"errors"
	"fmt"
)

// External is a server that runs already.
type External struct {
	Name    string
	URL     string // of the streams; with https the specification names a version, and the system trusts its certificate
	PIDs    []int  // of its processes on this machine, or none
	Metrics string // URL of its metrics, or ""
	Brokers []string
	Checks  Checks
}

// Target makes the server a target. It is fed through its brokers.
func (e External) Target() Target {
	return Target{
		Name: e.Name, Checks: e.Checks,
		Start: func(_ context.Context, s *Setup) (*Server, error) {
			switch s.Scenario { //nolint:exhaustive // the others take any server
			case Ingest, Snapshot:
				return nil, fmt.Errorf("%s measures a server that starts behind what is published, and this one runs already", s.Scenario)
			case Hostile:
				return nil, errors.New("hostile attacks what it has started alone")
			}
			publisher, err := StartPublisher(s, e.Brokers)
			if err != nil {
				return nil, err
			}
			return &Server{URL: e.URL, TLS: s.clientTLS(nil), PIDs: e.PIDs, Metrics: e.Metrics, Publisher: publisher}, nil
		},
	}
}
