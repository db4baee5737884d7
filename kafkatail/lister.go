package kafkatail

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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

	atLocalStart int64 = -4 // what is before is in remote storage (KIP-405)
)

// Isolation levels of the protocol.
const (
	readUncommitted int8 = 0
	readCommitted   int8 = 1
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
	epochs  []int32 // of the leaders; -1 where brokers have none
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
	return ask(ctx, l.cl, names)
}

// askOthers asks other brokers about those of names that one broker says do not
// exist, and puts what they know into topics. One broker's word is not enough for
// a topic that nobody has seen yet: while it is cut off from the others it knows
// of none that was made meanwhile, and what is missing at first sight is read from
// its first record on once it is there.
func (l *lister) askOthers(ctx context.Context, names []string, topics map[string]topicMeta) {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isMissing(topics[name].err) })
	brokers := l.cl.DiscoveredBrokers()
	if len(missing) == 0 || len(brokers) < 2 {
		return
	}
	rand.Shuffle(len(brokers), func(i, j int) { brokers[i], brokers[j] = brokers[j], brokers[i] })
	ctx, cancel := context.WithTimeout(ctx, othersWait)
	defer cancel()
	for _, b := range brokers[:min(len(brokers), othersMax)] {
		said, err := ask(ctx, b, missing)
		if err != nil {
			continue // who does not answer does not contradict
		}
		missing = slices.DeleteFunc(missing, func(name string) bool {
			if isMissing(said[name].err) {
				return false
			}
			topics[name] = said[name]
			return true
		})
		if len(missing) == 0 {
			return
		}
	}
}

// errNoBrokers is the answer of a broker that has just started and knows nothing
// of its cluster yet, itself included (before KRaft): its word on topics is void.
var errNoBrokers = errors.New("the broker knows no brokers yet")

// ask asks a broker about names.
func ask(ctx context.Context, broker kmsg.Requestor, names []string) (map[string]topicMeta, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(names)) // empty means none; nil would mean all
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, broker)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Brokers) == 0 {
		return nil, errNoBrokers
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
	m := topicMeta{id: t.TopicID, leaders: make([]int32, len(t.Partitions)), epochs: make([]int32, len(t.Partitions))}
	if m.id == (frame.TopicID{}) {
		m.id = derivedID(cluster, *t.Topic)
	}
	for i := range m.leaders {
		m.leaders[i], m.epochs[i] = noLeader, -1
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if p.Partition < 0 || int(p.Partition) >= len(m.leaders) {
			return topicMeta{err: fmt.Errorf("the broker lists partition %d among %d", p.Partition, len(m.leaders))}
		}
		if p.ErrorCode == 0 && alive[p.Leader] {
			m.leaders[p.Partition], m.epochs[p.Partition] = p.Leader, p.LeaderEpoch
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

// extents lists where the wanted partitions start and end.
func (l *lister) extents(ctx context.Context, want []place) (starts, ends map[place]listed) {
	var both sync.WaitGroup
	both.Go(func() { starts = l.offsets(ctx, want, atStart) })
	ends = l.offsets(ctx, want, atEnd)
	both.Wait()
	return starts, ends
}

// since lists the first records whose time is not before millis since 1970, and
// where the partitions end; where there is no such record both are the end. The
// end is asked for first: a record that comes meanwhile is behind it.
func (l *lister) since(ctx context.Context, want []place, millis int64) (starts, ends map[place]listed) {
	ends = l.offsets(ctx, want, atEnd)
	starts = l.offsets(ctx, want, millis)
	for pl, end := range ends {
		if start, ok := starts[pl]; ok && (start.offset == noOffset || start.offset > end.offset) {
			starts[pl] = end
		}
	}
	return starts, ends
}

// noOffset is the answer for a time that no record is at or after.
const noOffset int64 = -1

// offsets lists where the wanted partitions start (atStart) or end (atEnd), or
// the first records at or after a time in milliseconds since 1970, which may be
// noOffset. What can't be listed now is left out of the answer.
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
				if p.ErrorCode == 0 && (p.Offset >= 0 || at >= 0) {
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
	rp, err := l.fetch(ctx, target{pl, id, leader, -1}, from, partitionBytesMax)
	if err != nil {
		return probed{from: from, next: from, end: from, err: err}
	}
	iso := kgo.ReadUncommitted()
	if l.isolation == readCommitted {
		iso = kgo.ReadCommitted()
	}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: from, Topic: pl.topic, Partition: pl.partition, IsolationLevel: iso, KeepControlRecords: true,
	}, rp, kgo.DefaultDecompressor(), nil)
	if fp.Err != nil {
		return probed{from: from, next: from, end: from, err: fp.Err}
	}
	got := probed{from: from, records: len(fp.Records) > 0, next: max(from, next), end: l.readableEnd(rp)}
	if len(rp.RecordBatches) > 0 { // what follows these batches was not read
		got.end = got.next
	}
	return got
}
