package kafkatail

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
)

// target is a partition and where to ask for it.
type target struct {
	place
	id     frame.TopicID
	leader int32
	epoch  int32 // of the leader; -1: any
}

var (
	errNoLeader  = errors.New("the partition has no leader")
	errThrottled = errors.New("the broker holds its answers back (quota)")
)

// fetch reads a partition once, without a fetch session (KIP-227): whole
// batches from the one that holds from on, about bytesMax of them, but the
// first whatever its size (KIP-74). The error is the broker's answer for the
// partition, or why there is none.
//
// Only the wait for remote storage (KIP-405) makes the broker wait: to have
// zero bytes is to have enough.
func (l *lister) fetch(ctx context.Context, to target, from int64, bytesMax int32) (*kmsg.FetchResponseTopicPartition, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = to.partition, from, bytesMax, to.epoch
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = to.topic, to.id, append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(remoteWait.Milliseconds()), 0, bytesMax
	req.SessionEpoch, req.IsolationLevel = -1, l.isolation // -1: no session
	req.Topics = append(req.Topics, t)

	kresp, err := l.cl.Broker(int(to.leader)).Request(ctx, req)
	if err != nil {
		return nil, err
	}
	resp, ok := kresp.(*kmsg.FetchResponse)
	if !ok {
		return nil, fmt.Errorf("the broker answers a fetch with %T", kresp)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) == 0 && resp.ThrottleMillis > 0 { // KIP-219; the library waits before it asks again
		return nil, errThrottled
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].Partition != to.partition {
		return nil, errors.New("the broker's answer to a fetch of one partition is not about it")
	}
	rp := &resp.Topics[0].Partitions[0]
	return rp, kerr.ErrorForCode(rp.ErrorCode)
}

// readableEnd is the offset behind the last that may be read, as a fetch tells it.
func (l *lister) readableEnd(rp *kmsg.FetchResponseTopicPartition) int64 {
	if l.isolation == readCommitted {
		return rp.LastStableOffset
	}
	return rp.HighWatermark
}
