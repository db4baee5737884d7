// Command floor serves events with nothing but write(2), to show what the
// kernel's share of a measurement is. It serves until it is interrupted and
// then prints what it did as JSON.
//
//	floor -listen 127.0.0.1:20080 -rate 8 -size 200
//
// tailcast bench runs the same beside what it measures.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"

	"tailcast/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run() error {
	var f bench.Floor
	flag.StringVar(&f.Listen, "listen", "127.0.0.1:20080", "IPv4 address to serve on")
	rate := flag.Float64("rate", 8, "events a second")
	flag.IntVar(&f.Size, "size", 200, "bytes of a payload")
	flag.IntVar(&f.FrameBytes, "frame-bytes", 0, "bytes of an event on the wire; wins over -size")
	flag.BoolVar(&f.Each, "each", false, "give every event to one connection alone, in turn")
	flag.Parse()
	if *rate <= 0 {
		return fmt.Errorf("-rate %v: want more than 0", *rate)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := f.Open(); err != nil {
		return err
	}
	orders := make(chan bench.Order, 1)
	orders <- bench.Order{Rate: *rate, Count: math.MaxInt64}
	return json.NewEncoder(os.Stdout).Encode(f.Run(ctx, orders, make(chan bench.Published)))
}
