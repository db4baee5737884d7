package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/config"
	"tailcast/web"
)

// demoPartitions are enough to see that ids hold a position in each.
const demoPartitions = 3

// demo runs a Kafka broker in this process, puts sample records into it and
// serves them, with a page that shows them.
func demo(ctx context.Context, cfg *config.Config, stdout, stderr io.Writer) error {
	broker, err := openBroker(cfg.Demo)
	if err != nil {
		return err
	}
	defer broker.Close()
	cfg.Kafka.Brokers = broker.ListenAddrs()
	cfg.DrainDelay = 0 // no balancer is told
	for i := range cfg.Routes {
		if len(cfg.Routes[i].CORS.Origins) == 0 {
			cfg.Routes[i].CORS.Origins = []string{"*"} // the page is on the admin listener: another origin
		}
	}
	page := web.Demo{Broker: cfg.Kafka.Brokers[0], Topic: cfg.Demo.Topic}
	log, closeLog := openLog(cfg, stderr)
	defer closeLog()
	g, err := open(cfg, log, func(streams string) http.Handler {
		page.Stream = streams + cfg.Routes[0].Path
		return web.Handler(&page)
	})
	if err != nil {
		return err
	}
	stream := page.Stream
	if at := g.loops.Addr(); at != nil {
		stream = "http://" + reachable(at).String() + cfg.Routes[0].Path
	}
	fmt.Fprintf(stdout, `Open the page   http://%[1]s/demo
or listen       curl -N %[2]s
and produce     echo '{"hello":"browser"}' | kcat -P -b %[3]s -t %[4]s
Metrics are at  http://%[1]s/metrics
Press Ctrl-C to stop.
`, g.admin.Addr(), stream, page.Broker, page.Topic)
	var wg sync.WaitGroup
	defer wg.Wait()
	if !cfg.Demo.Quiet {
		producing, stop := context.WithCancel(ctx)
		defer stop()
		wg.Go(func() { produceSamples(producing, cfg, log) })
	}
	return g.run(ctx)
}

// openBroker starts the in-process broker with the demo's topic.
func openBroker(d config.Demo) (*kfake.Cluster, error) {
	broker, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			ln, err := net.Listen(network, d.BrokerListen)
			return brokerListener{ln}, err
		}),
		kfake.SeedTopics(demoPartitions, d.Topic),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(demoPartitions),
	)
	if err != nil {
		return nil, fmt.Errorf("--broker-listen %s: %w", d.BrokerListen, err)
	}
	return broker, nil
}

// brokerListener listens where Kafka clients are told to come to. One that
// listens at every address tells them the one that all who are on this machine,
// or come through a port of its container, can reach.
type brokerListener struct{ net.Listener }

// Addr implements net.Listener.
func (l brokerListener) Addr() net.Addr { return reachable(l.Listener.Addr()) }

// reachable is at, or 127.0.0.1 if at stands for every address of the machine.
func reachable(at net.Addr) net.Addr {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
}

// produceSamples produces at --rate until ctx ends. Each record says where it
// is in its partition and when it was made, so the page can tell what is
// missing and how long it took.
func produceSamples(ctx context.Context, cfg *config.Config, log *slog.Logger) {
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(cfg.Kafka.Brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
	)
	if err != nil {
		log.Error("sample producer", slog.Any("error", err))
		return
	}
	defer cl.Close()
	tick := time.NewTicker(time.Second / time.Duration(cfg.Demo.Rate))
	defer tick.Stop()
	var seq [demoPartitions]int64
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			p := i % demoPartitions
			value := fmt.Appendf(nil, `{"p":%d,"seq":%d,"ts":%d,"text":"sample %d"}`, p, seq[p], now.UnixMilli(), i)
			seq[p]++
			cl.Produce(ctx, &kgo.Record{
				Topic: cfg.Demo.Topic, Partition: int32(p), Key: strconv.AppendInt(nil, int64(i%10), 10), Value: value,
			}, nil)
		}
	}
}
