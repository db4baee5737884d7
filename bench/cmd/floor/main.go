// Command floor serves events with nothing but write(2), to show what the
// kernel's share of a measurement is. It serves until it is interrupted, or
// for -dur, and then prints what it did as JSON.
//
//	floor -listen 127.0.0.1:20080 -rate 8 -size 200
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
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
	flag.Float64Var(&f.Rate, "rate", 8, "events a second")
	flag.IntVar(&f.Size, "size", 200, "bytes of a payload")
	flag.IntVar(&f.FrameBytes, "frame-bytes", 0, "bytes of an event on the wire; wins over -size")
	flag.IntVar(&f.PerWrite, "per-write", 1, "events in one write")
	dur := flag.Duration("dur", 0, "end after this; 0 serves until interrupted")
	flag.Parse()
	if f.Rate <= 0 {
		return fmt.Errorf("-rate %v: want more than 0", f.Rate)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *dur > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *dur)
		defer cancel()
	}
	totals, err := f.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(totals)
}
