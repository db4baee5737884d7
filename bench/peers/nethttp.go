package main

import (
	"context"
	"fmt"

	"tailcast/bench/harness"
)

func nethttpTarget(t *tools) (harness.Target, error) {
	version, err := builtFrom(t.nethttp, "github.com/twmb/franz-go")
	if err != nil {
		return harness.Target{}, fmt.Errorf("-nethttp: %w", err)
	}
	return harness.Target{
		Name: "nethttp", Version: version, Checks: harness.Checks{Records: true},
		Start: func(ctx context.Context, s *harness.Setup) (*harness.Server, error) {
			broker, err := harness.StartBroker(s)
			if err != nil {
				return nil, err
			}
			publisher, err := harness.StartPublisher(s, []string{broker})
			if err != nil {
				return nil, err
			}
			addr, err := freeAddr()
			if err != nil {
				return nil, err
			}
			p, err := s.Command(harness.OnServer, t.nethttp, "-brokers", broker, "-topic", harness.Topic, "-listen", addr)
			if err != nil {
				return nil, err
			}
			if err := listening(ctx, p, addr); err != nil {
				return nil, err
			}
			return &harness.Server{URL: "http://" + addr + "/events", PIDs: []int{p.PID()}, Publisher: publisher}, nil
		},
	}, nil
}
