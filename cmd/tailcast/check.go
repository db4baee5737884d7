package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tailcast/auth"
	"tailcast/certs"
	"tailcast/config"
	"tailcast/frame"
	"tailcast/hub"
	"tailcast/kafkatail"
)

const (
	// checkMax bounds how long check waits for the brokers.
	checkMax = 10 * time.Second
	// idBytesShort is the length up to which an event id needs no preflight
	// by a browser that asks for one (WHATWG Fetch, CORS-safelisted headers).
	idBytesShort = 128
)

// check asks the brokers for what serve would read and prints it. The error
// names the flag that is wrong.
func check(ctx context.Context, cfg *config.Config, stdout io.Writer) error {
	kafka := kafkaConfig(cfg)
	kafka.Warmup = 0 // it asks, and reads nothing
	tail, err := kafkatail.New(kafka, newLog(cfg, io.Discard))
	if err != nil {
		return err
	}
	if err := checkFiles(cfg); err != nil {
		return err
	}
	h := hub.New(hub.Options{LogBytes: int64(cfg.LogBytes), LogBytesTotal: int64(cfg.LogBytesTotal), Heartbeat: cfg.Heartbeat}, nil)
	var feeds []*hub.Feed // nil where requests have a say in it
	guards := auth.NewNode(guardConfig(cfg, newLog(cfg, io.Discard)))
	for _, r := range cfg.Routes {
		if _, err := guardOf(guards, &r); err != nil { // reads files of keys, asks no issuer
			return err
		}
		if !r.Literal() {
			feeds = append(feeds, nil)
			continue
		}
		f, err := h.Open(hub.Spec{Topics: r.Topics, Format: r.Format, Fields: filterOf(&r).Fields()}, tail)
		if err != nil {
			return fmt.Errorf("route %s: %w", r.Path, err)
		}
		feeds = append(feeds, f)
	}
	ctx, cancel := context.WithTimeout(ctx, checkMax)
	var wg sync.WaitGroup
	wg.Go(func() { _ = tail.Run(ctx) }) // what goes wrong is in its status
	st := await(ctx, tail)
	bare := uncompacted(ctx, cfg, tail)
	cancel()
	wg.Wait()
	if !st.Connected {
		return fmt.Errorf("--kafka-brokers %s: %s", strings.Join(cfg.Kafka.Brokers, ","), st.Error)
	}
	err = report(stdout, cfg, feeds, st)
	if err != nil && bare != nil {
		return fmt.Errorf("%w; %w", err, bare) // one line
	}
	return errors.Join(err, bare)
}

// checkFiles opens the files that serve would at its start, but for those of
// guards and of Kafka's security.
func checkFiles(cfg *config.Config) error {
	if cfg.ListenTLS != "" {
		if _, err := certs.Open(certsConfig(cfg, newLog(cfg, io.Discard))); err != nil {
			return err
		}
	}
	if cfg.Static != "" {
		root, err := os.OpenRoot(cfg.Static)
		if err != nil {
			return fmt.Errorf("--static: %w", err)
		}
		_ = root.Close()
	}
	return nil
}

// uncompacted is an error if a route begins with the latest records of keys of
// a topic that does not keep them.
func uncompacted(ctx context.Context, cfg *config.Config, tail *kafkatail.Tail) error {
	for _, r := range cfg.Routes {
		if r.Start.From != config.StartSnapshot {
			continue
		}
		for _, topic := range r.Topics {
			if c, err := tail.History().Cleanup(ctx, topic); err == nil && !c.Compacted {
				return fmt.Errorf("--route %s: start: snapshot needs a compacted topic, and %q has a cleanup.policy without compact", r.Path, topic)
			}
		}
	}
	return nil
}

// await returns the tail's status once every topic is settled, or ctx ends.
func await(ctx context.Context, tail *kafkatail.Tail) kafkatail.Status {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		st := tail.Status()
		settled := st.Connected
		for _, t := range st.Topics {
			settled = settled && t.State != kafkatail.Opening
		}
		if settled || ctx.Err() != nil || st.Error != "" {
			return st
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// fullBytes is how long a route's event ids are when each partition of its
// topics holds a record: id, which is that of now, leaves out the empty ones.
func fullBytes(id string, names []string, topics map[string]kafkatail.TopicStatus) int {
	pos, err := frame.ParseID([]byte(id))
	if err != nil || len(pos) != len(names) {
		return len(id)
	}
	for g, name := range names {
		for _, p := range topics[name].Partitions {
			if !slices.ContainsFunc(pos[g].Parts, func(q frame.Partition) bool { return q.ID == p.ID }) {
				pos[g].Parts = append(pos[g].Parts, frame.Partition{ID: p.ID, Next: 1})
			}
		}
		slices.SortFunc(pos[g].Parts, func(a, b frame.Partition) int { return cmp.Compare(a.ID, b.ID) })
	}
	return len(frame.AppendID(nil, pos))
}

// report prints a line a route and returns what is wrong with the topics, in
// one line.
func report(stdout io.Writer, cfg *config.Config, feeds []*hub.Feed, st kafkatail.Status) error {
	topics := map[string]kafkatail.TopicStatus{}
	for _, t := range st.Topics {
		topics[t.Name] = t
	}
	var bad []string
	for i, r := range cfg.Routes {
		if feeds[i] == nil {
			fmt.Fprintf(stdout, "%s%s  topic %s, allowed %s  %s\n",
				r.Host, r.Path, strings.Join(r.Topics, ","), strings.Join(r.Allow, ","), formatName(r.Format.Envelope))
			continue
		}
		for _, name := range r.Topics {
			if t := topics[name]; t.State != kafkatail.Tailing {
				bad = append(bad, fmt.Sprintf("--route %s: topic %q is %s", r.Path, name, strings.TrimSuffix(string(t.State)+": "+t.Error, ": ")))
			}
		}
		id := feeds[i].Snapshot().ID
		note := ""
		const asks = "over %d: browsers may ask permission before each cross-origin reconnect)"
		switch full := fullBytes(id, r.Topics, topics); {
		case full > frame.IDMax:
			bad = append(bad, fmt.Sprintf("--route %s: its event ids have %d bytes, over %d, for it has too many partitions: its streams would be turned away", r.Path, full, frame.IDMax))
		case len(id) > idBytesShort:
			note = fmt.Sprintf(" ("+asks, idBytesShort)
		case full > idBytesShort:
			note = fmt.Sprintf(" (%d when there are records in every partition, "+asks, full, idBytesShort)
		}
		n := 0
		for _, name := range r.Topics {
			n += len(topics[name].Partitions)
		}
		if r.Start.From != config.StartLatest {
			note += "  start " + r.Start.String()
		}
		fmt.Fprintf(stdout, "%s  topic %s  %d partitions  %s  id %d bytes%s\n",
			r.Host+r.Path, strings.Join(r.Topics, ","), n, formatName(r.Format.Envelope), len(id), note)
		for k, item := range r.Filter {
			word := "or"
			if k == 0 {
				word = "if"
			}
			fmt.Fprintf(stdout, "  %s %s\n", word, item)
		}
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "; "))
	}
	return nil
}
