package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tailcast/bench"
)

// ServeOrders is the other process's side of Orders: it reads orders from in, a
// line of JSON each, has them carried out and writes what came of it to out. It
// returns when in ends.
func ServeOrders[Order, Done any](in io.Reader, out io.Writer, carryOut func(Order) Done) error {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o Order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("orders: %w", err)
		}
		if err := answers.Encode(carryOut(o)); err != nil {
			return fmt.Errorf("orders: %w", err)
		}
	}
}

// Orders is a publisher in another process, or somebody else there who takes
// orders on its standard input; see ServeOrders. One order is under way at a time.
type Orders struct {
	p       *Process
	answers *json.Decoder
}

// NewOrders returns a publisher that is process p. It has to be alone in
// reading and writing p's pipes.
func NewOrders(p *Process) *Orders { return &Orders{p, json.NewDecoder(p.Out)} }

// Hello reads the text that the process writes before it takes orders, as JSON:
// its address.
func (o *Orders) Hello() (text string, err error) {
	if err := o.answers.Decode(&text); err != nil {
		return "", o.p.failed("it told no address: " + err.Error())
	}
	return text, nil
}

// Publish implements Publisher. After an error the publisher is of no use.
func (o *Orders) Publish(ctx context.Context, order bench.Order) (p bench.Published, err error) {
	if err := carryOut(ctx, o, order, &p); err != nil {
		return bench.Published{}, err
	}
	if p.Failed > 0 || p.Error != "" {
		return p, fmt.Errorf("%d of %d records were not published: %s", p.Failed, order.Count, p.Error)
	}
	return p, nil
}

// carryOut has an order carried out and reads what came of it. After an error
// the process is of no use.
func carryOut[Order, Done any](ctx context.Context, o *Orders, order Order, done *Done) error {
	got := make(chan error, 1)
	var answer Done
	go func() {
		err := json.NewEncoder(o.p.In).Encode(order)
		if err == nil {
			err = o.answers.Decode(&answer)
		}
		got <- err
	}()
	select {
	case err := <-got:
		if err != nil {
			return o.p.failed("it took no order: " + err.Error())
		}
		*done = answer
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
