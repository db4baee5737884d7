package harness

import (
	"context"
	"strconv"
)

// FloorName is the name of the floor among the targets.
const FloorName = "floor"

// FloorTarget is a bare loop of write(2), which reads no request: what the
// kernel takes for the same events. It knows neither users nor what a stream
// has missed, so only what it sends is looked at.
func FloorTarget() Target {
	return Target{
		Name:   FloorName,
		Checks: Checks{IDs: true, Exact: true, Records: true},
		Start: func(_ context.Context, s *Setup) (*Server, error) {
			args := []string{"bench", "floor", "--size", strconv.Itoa(s.Size), "--frame-bytes", strconv.Itoa(s.FrameBytes)}
			if s.Users() > 0 {
				args = append(args, "--each")
			}
			p, err := s.Command(OnServer, s.Tailcast, args...)
			if err != nil {
				return nil, err
			}
			orders := NewOrders(p)
			addr, err := orders.Hello()
			if err != nil {
				return nil, err
			}
			return &Server{URL: "http://" + addr + "/", PIDs: []int{p.PID()}, Publisher: orders}, nil
		},
	}
}
