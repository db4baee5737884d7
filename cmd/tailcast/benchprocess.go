package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"tailcast/bench"
	"tailcast/bench/harness"
	"tailcast/bench/hostile"
	"tailcast/bench/kafkaload"
)

// benchProcesses are the commands that tailcast bench starts beside the server.
// Each ends when its standard input does, or by a signal.
var benchProcesses = map[string]func(ctx context.Context, args []string, in io.Reader, out io.Writer) error{
	"broker":  benchBroker,
	"publish": benchPublish,
	"floor":   benchFloor,
	"attack":  benchAttack,
}

// benchBroker runs a Kafka broker in memory and says where.
func benchBroker(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	f := pflag.NewFlagSet("broker", pflag.ContinueOnError)
	topic := f.String("topic", harness.Topic, "topic to make")
	topics := f.Int64("topics", 0, "make so many, whose names go on with a hyphen and a number; 0: the topic itself")
	partitions := f.Int("partitions", 1, "partitions of each")
	compacted := f.Bool("compacted", false, "brokers keep the latest record of each key")
	if err := f.Parse(args); err != nil {
		return err
	}
	broker, err := kafkaload.OpenBroker(*partitions, *compacted, kafkaload.Topics(*topic, *topics)...)
	if err != nil {
		return err
	}
	defer broker.Close()
	if err := json.NewEncoder(out).Encode(broker.ListenAddrs()[0]); err != nil {
		return err
	}
	ended(ctx, in)
	return nil
}

// benchPublish publishes as it is told on its standard input.
func benchPublish(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var cfg kafkaload.Config
	f := pflag.NewFlagSet("publish", pflag.ContinueOnError)
	f.StringSliceVar(&cfg.Brokers, "kafka-brokers", nil, "brokers")
	f.StringVar(&cfg.Topic, "topic", harness.Topic, "topic to write to, made unless it exists")
	f.Int64Var(&cfg.Topics, "topics", 0, "write to so many topics, one a user, whose names go on with a hyphen and the user; 0: to the topic itself")
	f.IntVar(&cfg.Partitions, "partitions", 1, "partitions of each to write to")
	f.Int64Var(&cfg.Users, "users", 0, "records are for so many users in turn; 0: for everyone")
	f.Int64Var(&cfg.Keys, "keys", 0, "records are the changes of a table of so many keys; 0: those for users")
	f.IntVar(&cfg.Size, "size", 200, "bytes of a value")
	f.StringVar(&cfg.Codec, "codec", "none", "compression")
	cfg.Create = true
	if err := f.Parse(args); err != nil {
		return err
	}
	p, err := kafkaload.NewPublisher(cfg)
	if err != nil {
		return err
	}
	defer p.Close()
	return harness.ServeOrders(in, out, func(o bench.Order) bench.Published { return p.Publish(ctx, o) })
}

// benchAttack attacks as it is told on its standard input. It takes the processor
// from nobody who measures what comes of it.
func benchAttack(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if err := pflag.NewFlagSet("attack", pflag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	if err := harness.GiveWay(); err != nil {
		return err
	}
	return harness.ServeOrders(in, out, func(o harness.AttackOrder) hostile.Made { return o.CarryOut(ctx) })
}

// benchFloor serves events with nothing but write(2), says where, and makes
// them as it is told on its standard input.
func benchFloor(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	floor := bench.Floor{}
	f := pflag.NewFlagSet("floor", pflag.ContinueOnError)
	f.StringVar(&floor.Listen, "listen", "127.0.0.1:0", "address to serve on")
	f.IntVar(&floor.Size, "size", 200, "bytes of a payload")
	f.IntVar(&floor.FrameBytes, "frame-bytes", 0, "bytes of an event on the wire; wins over --size")
	f.BoolVar(&floor.Each, "each", false, "give every event to one connection alone, in turn")
	if err := f.Parse(args); err != nil {
		return err
	}
	addr, err := floor.Open()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(addr); err != nil {
		return fmt.Errorf("tell the address: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	orders, done := make(chan bench.Order), make(chan bench.Published)
	over := make(chan struct{})
	go func() {
		defer close(over)
		floor.Run(ctx, orders, done)
	}()
	defer func() { stop(); <-over }()
	return harness.ServeOrders(in, out, func(o bench.Order) (p bench.Published) {
		select {
		case orders <- o:
		case <-over:
			return p
		}
		select {
		case p = <-done:
		case <-over:
		}
		return p
	})
}

// ended waits until ctx is done or in has ended.
func ended(ctx context.Context, in io.Reader) {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // how it ends says nothing
		close(over)
	}()
	select {
	case <-ctx.Done():
	case <-over:
	}
}
