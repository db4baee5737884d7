package kafkatail

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
)

// lister asks brokers questions: which topics and partitions there are, and
// which offsets they hold. It has a client of its own, since a broker answers
// the requests of one connection in order and the reader's wait in long polls.
// Safe from any goroutine.
type lister struct {
	cl        *kgo.Client
	isolation int8
	timeout   time.Duration
}

// Partition -> offset requests of the protocol (ListOffsets, timestamp field).
const (
	atStart int64 = -2
	atEnd   int64 = -1 // the last stable offset with read_committed
)

// place is one partition of one topic.
type place struct {
	topic     string
	partition int32
}

// topicMeta is what the brokers say of one topic.
type topicMeta struct {
	err     error // of the topic as a whole; nothing else is set then
	id      frame.TopicID
	leaders []int32 // by partition; noLeader where there is none
}

const noLeader int32 = -1

// listed is where a partition's log starts or ends.
type listed struct {
	offset int64
	epoch  int32
}

// metadata asks one broker about names. It is never answered from the
// library's cache, which kadm's Metadata may be.
func (l *lister) metadata(ctx context.Context, names []string) (map[string]topicMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(names)) // empty means none; nil would mean all
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, l.cl)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	alive := make(map[int32]bool, len(resp.Brokers))
	for i := range resp.Brokers {
		alive[resp.Brokers[i].NodeID] = true
	}
	topics := make(map[string]topicMeta, len(resp.Topics))
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic != nil {
			topics[*t.Topic] = metaOf(t, resp.ClusterID, alive)
		}
	}
	for _, name := range names {
		if _, ok := topics[name]; !ok {
			topics[name] = topicMeta{err: errors.New("the broker left the topic out of its answer")}
		}
	}
	return topics, nil
}

func metaOf(t *kmsg.MetadataResponseTopic, cluster *string, alive map[int32]bool) topicMeta {
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return topicMeta{err: err}
	}
	m := topicMeta{id: t.TopicID, leaders: make([]int32, len(t.Partitions))}
	if m.id == (frame.TopicID{}) {
		m.id = derivedID(cluster, *t.Topic)
	}
	for i := range m.leaders {
		m.leaders[i] = noLeader
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if p.Partition < 0 || int(p.Partition) >= len(m.leaders) {
			return topicMeta{err: fmt.Errorf("the broker lists partition %d among %d", p.Partition, len(m.leaders))}
		}
		if p.ErrorCode == 0 && alive[p.Leader] {
			m.leaders[p.Partition] = p.Leader
		}
	}
	return m
}

// derivedID stands in where brokers have no topic ids (before 2.8).
func derivedID(cluster *string, topic string) (id frame.TopicID) {
	h := sha256.New()
	if cluster != nil {
		h.Write([]byte(*cluster))
	}
	h.Write([]byte{0})
	h.Write([]byte(topic))
	copy(id[:], h.Sum(nil))
	return id
}

// offsets lists where the wanted partitions start (atStart) or end (atEnd).
// What can't be listed now is left out of the answer.
func (l *lister) offsets(ctx context.Context, want []place, at int64) map[place]listed {
	got := make(map[place]listed, len(want))
	if len(want) == 0 {
		return got
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.IsolationLevel = l.isolation
	index := make(map[string]int)
	for _, w := range want {
		i, ok := index[w.topic]
		if !ok {
			i = len(req.Topics)
			index[w.topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = w.topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.Timestamp = w.partition, -1, at
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	for _, shard := range l.cl.RequestSharded(ctx, req) {
		resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
		if shard.Err != nil || !ok {
			continue
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 && p.Offset >= 0 {
					got[place{t.Topic, p.Partition}] = listed{p.Offset, p.LeaderEpoch}
				}
			}
		}
	}
	return got
}

// probed is what one fetch past a position shows.
type probed struct {
	from    int64
	records bool  // there are records to read
	next    int64 // where the position could go over batches without records
	end     int64 // no record lies between next and here, if there are none
	err     error // the broker's answer for the partition, or why there is none
}

// probe reads past from once, without waiting, to tell a reader that is stuck
// from a log that holds nothing more (compaction and aborted transactions
// leave ends that no record carries).
func (l *lister) probe(ctx context.Context, pl place, id frame.TopicID, leader int32, from int64) probed {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = pl.partition, from, partitionBytesMax, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = pl.topic, id, append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 0, 0, partitionBytesMax
	req.SessionEpoch, req.IsolationLevel = -1, l.isolation // -1: no fetch session
	req.Topics = append(req.Topics, t)

	none := probed{from: from, next: from, end: from}
	kresp, err := l.cl.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		none.err = err
		return none
	}
	resp, ok := kresp.(*kmsg.FetchResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		none.err = errors.New("the broker's answer to a fetch of one partition is not about one partition")
		return none
	}
	rp := &resp.Topics[0].Partitions[0]
	iso := kgo.ReadUncommitted()
	if l.isolation == 1 {
		iso = kgo.ReadCommitted()
	}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: from, Topic: pl.topic, Partition: pl.partition, IsolationLevel: iso, KeepControlRecords: true,
	}, rp, kgo.DefaultDecompressor(), nil)
	if fp.Err != nil {
		none.err = fp.Err
		return none
	}
	got := probed{from: from, records: len(fp.Records) > 0, next: max(from, next), end: fp.HighWatermark}
	if l.isolation == 1 {
		got.end = fp.LastStableOffset
	}
	if len(rp.RecordBatches) > 0 { // what follows these batches was not read
		got.end = got.next
	}
	return got
}
