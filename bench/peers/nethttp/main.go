// Command nethttp is the gateway an afternoon of Go gives: franz-go reads a
// topic, net/http serves each client from a goroutine with a channel. It is a
// server to compare with, not one to run.
//
//	nethttp -brokers 127.0.0.1:9092 -topic events -listen 127.0.0.1:8080
//
// It is meant to be the best that this shape gives: a record is encoded once
// for all clients, events that wait are flushed together, and a client that
// can't keep up is disconnected rather than waited for. It has no positions,
// no resumption, no history.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "nethttp:", err)
		os.Exit(1)
	}
}

func run() error {
	brokers := flag.String("brokers", "127.0.0.1:9092", "bootstrap addresses, separated by commas")
	topic := flag.String("topic", "events", "topic to serve")
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve /events on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(*brokers, ",")...),
		kgo.ConsumeTopics(*topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.FetchMaxWait(500*time.Millisecond),
	)
	if err != nil {
		return fmt.Errorf("-brokers %s: %w", *brokers, err)
	}
	defer client.Close()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	h := newHub()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", h.serve)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		tail(ctx, client, h)
		_ = srv.Close()
	}()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// tail broadcasts what the topic gets until ctx is done.
func tail(ctx context.Context, client *kgo.Client, h *hub) {
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			fmt.Fprintf(os.Stderr, "nethttp: %s/%d: %v\n", topic, partition, err)
		})
		fetches.EachRecord(func(r *kgo.Record) { h.broadcast(encode(r)) })
	}
}
