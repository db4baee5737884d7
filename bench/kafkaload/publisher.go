package kafkaload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"tailcast/bench"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// giveUpAfter bounds the time a record waits for its acknowledgement, and
	// an order for those of its last records.
	giveUpAfter = 30 * time.Second
	// bufferedMax bounds the records that wait for an acknowledgement, so that
	// a rate the broker can't take shows as lateness and not as memory.
	bufferedMax = 100_000
)

// Config says where a publisher writes, and what.
type Config struct {
	Brokers    []string
	Topic      string
	Topics     int64  // one for each of so many users: see Topics; 0: Topic alone
	Partitions int    // of each topic, to write to, from 0
	Users      int64  // records for so many users in turn, by key; 0: for everyone
	Keys       int64  // the records of bench.Changes with so many keys, into a compacted topic that is empty; 0: those of Users
	Size       int    // bytes of a value
	Codec      string // none, gzip, snappy, lz4 or zstd
	// Create creates the topic unless it exists.
	Create bool
}

// Publisher writes numbered records. It belongs to one goroutine.
type Publisher struct {
	cfg    Config
	topics []string
	client *kgo.Client
	seq    bench.Sequence
	keys   bench.Changes // with Config.Keys
	made   bool          // the topics were looked after

	mu    sync.Mutex // guards what follows; the producer calls back from its own goroutine
	total bench.Published
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// NewPublisher makes a publisher that sends each record at once, to the
// partition its number names, and has it acknowledged by all replicas. It asks
// the brokers nothing yet.
func NewPublisher(cfg Config) (*Publisher, error) {
	codec, ok := codecs[cfg.Codec]
	if !ok {
		return nil, fmt.Errorf("codec %q: want none, gzip, snappy, lz4 or zstd", cfg.Codec)
	}
	if cfg.Partitions < 1 {
		return nil, fmt.Errorf("%d partitions: want at least 1", cfg.Partitions)
	}
	if cfg.Topics != 0 && cfg.Topics != cfg.Users {
		return nil, fmt.Errorf("%d topics for %d users: want one for each", cfg.Topics, cfg.Users)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(codec),
		kgo.MaxBufferedRecords(bufferedMax),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordDeliveryTimeout(giveUpAfter),
	)
	if err != nil {
		return nil, err
	}
	return &Publisher{
		cfg: cfg, topics: Topics(cfg.Topic, cfg.Topics), client: client,
		seq:   bench.Sequence{Partitions: cfg.Partitions, Users: cfg.Users},
		keys:  bench.Changes{Partitions: cfg.Partitions, Keys: cfg.Keys},
		total: bench.Published{Partitions: make([]int64, cfg.Partitions)},
	}, nil
}

// Close gives up what is under way.
func (p *Publisher) Close() { p.client.Close() }

// Publish carries out an order and returns when all of it is acknowledged or
// given up.
func (p *Publisher) Publish(ctx context.Context, o bench.Order) bench.Published {
	if err := p.create(ctx); err != nil {
		return bench.Published{Error: err.Error()}
	}
	p.mu.Lock()
	p.total = bench.Published{Partitions: p.total.Partitions}
	p.mu.Unlock()
	began := time.Now()
	behind := o.Pace(ctx, p.send)
	// What is under way is worth the wait also when interrupted.
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpAfter)
	defer cancel()
	err := p.client.Flush(flushing)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.total.Error == "" {
		p.total.Error = err.Error()
	}
	t := p.total
	t.Partitions = append([]int64(nil), t.Partitions...)
	t.Seconds = time.Since(began).Seconds()
	t.BehindMS = float64(behind) / float64(time.Millisecond)
	return t
}

func (p *Publisher) send(due time.Time) {
	payload, deleted := p.next(due)
	rec := &kgo.Record{Topic: p.topics[0], Key: strconv.AppendInt([]byte("p"), int64(payload.Partition), 10), Partition: payload.Partition}
	if payload.User > 0 {
		rec.Key = strconv.AppendInt(rec.Key[:0], payload.User, 10)
		rec.Topic = p.topics[(payload.User-1)%int64(len(p.topics))]
	}
	if !deleted {
		rec.Value = payload.Append(make([]byte, 0, p.cfg.Size), p.cfg.Size)
	}
	p.client.Produce(context.Background(), rec, p.acknowledged)
}

func (p *Publisher) next(due time.Time) (payload bench.Payload, deleted bool) {
	if p.cfg.Keys > 0 {
		return p.keys.Next(due)
	}
	return p.seq.Next(due), false
}

func (p *Publisher) acknowledged(r *kgo.Record, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.total.Failed++
		if p.total.Error == "" {
			p.total.Error = err.Error()
		}
		return
	}
	p.total.Sent++
	p.total.Partitions[r.Partition]++
}

// create looks after the topics, once, and so also whether a broker answers.
func (p *Publisher) create(ctx context.Context) error {
	if p.made {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, giveUpAfter)
	defer cancel()
	if p.cfg.Create {
		configs := map[string]*string{}
		if p.cfg.Keys > 0 {
			configs[cleanupPolicy] = new(compact)
		}
		made, err := kadm.NewClient(p.client).CreateTopics(ctx, int32(p.cfg.Partitions), 1, configs, p.topics...)
		if err != nil {
			return fmt.Errorf("create topics: %w", err)
		}
		for _, t := range made {
			if t.Err != nil && !errors.Is(t.Err, kerr.TopicAlreadyExists) {
				return fmt.Errorf("create topic %s: %w", t.Topic, t.Err)
			}
		}
	}
	if err := p.client.Ping(ctx); err != nil {
		return fmt.Errorf("no broker answers: %w", err)
	}
	p.made = true
	return nil
}
