// Command httpcases plays hard HTTP/1.1 requests to a running server, cut in
// every way, and prints what it did not play right. The server's root path
// must not be an endless stream.
//
//	httpcases -addr 127.0.0.1:8080
//
// It ends with status 1 if there is a failure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"tailcast/internal/httpcases"
)

func main() {
	var opts httpcases.Options
	addr := flag.String("addr", "127.0.0.1:8080", "host:port of the server")
	only := flag.String("only", "", "cases to play, separated by commas: B01,B57; empty plays all")
	flag.IntVar(&opts.Parallel, "parallel", 64, "connections at a time")
	flag.DurationVar(&opts.Quiet, "quiet", 0, "how long to look for one more answer (150ms)")
	flag.DurationVar(&opts.EndWithin, "end-within", 0, "how soon the server must answer, and close where it must (5s)")
	flag.DurationVar(&opts.HeaderTimeout, "header-timeout", 0, "the server's time for a request head (5s)")
	flag.Parse()
	if *only != "" {
		opts.Only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failures := httpcases.Run(ctx, *addr, opts)
	for _, f := range failures {
		fmt.Println(f)
	}
	if len(failures) > 0 {
		os.Exit(1)
	}
}
