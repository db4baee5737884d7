package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tailcast/bench"
)

// ServeOrders is the publishing process's side of Orders: it reads orders from
// in, a line of JSON each, has them carried out and writes what came of it to
// out. It returns when in ends.
func ServeOrders(in io.Reader, out io.Writer, publish func(bench.Order) bench.Published) error {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o bench.Order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("orders: %w", err)
		}
		if err := answers.Encode(publish(o)); err != nil {
			return fmt.Errorf("orders: %w", err)
		}
	}
}

// Orders is a publisher in another process, which takes orders on its standard
// input; see ServeOrders. One order is under way at a time.
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
func (o *Orders) Publish(ctx context.Context, order bench.Order) (bench.Published, error) {
	type answer struct {
		p   bench.Published
		err error
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		if a.err = json.NewEncoder(o.p.In).Encode(order); a.err == nil {
			a.err = o.answers.Decode(&a.p)
		}
		got <- a
	}()
	select {
	case a := <-got:
		switch {
		case a.err != nil:
			return a.p, o.p.failed("it took no order: " + a.err.Error())
		case a.p.Failed > 0 || a.p.Error != "":
			return a.p, fmt.Errorf("%d of %d records were not published: %s", a.p.Failed, order.Count, a.p.Error)
		}
		return a.p, nil
	case <-ctx.Done():
		return bench.Published{}, ctx.Err()
	}
}
