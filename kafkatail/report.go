package kafkatail

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
	"tailcast/internal/wait"
)

// reporter commits where the tail is into a consumer group without members, for
// tools that show how far groups are behind. It writes only: nothing is read
// back, and that a commit fails is a line in the log now and then.
//
// Its client is its own. A broker answers the requests of one connection in
// order, and a commit waits there for the replicas of the offsets topic.
type reporter struct {
	t      *Tail
	cl     *kgo.Client
	whole  time.Time // of the last report of every position
	failed int       // reports in a row
	logged time.Time // when the last failure was logged
}

// newReporter connects nothing yet; nil without a group.
func (t *Tail) newReporter() (*reporter, error) {
	if t.cfg.ReportGroup == "" {
		return nil, nil //nolint:nilnil // no group is what Run calls no reporter
	}
	cl, err := t.newAsker()
	if err != nil {
		return nil, err
	}
	return &reporter{t: t, cl: cl}, nil
}

// run reports until ctx ends.
func (r *reporter) run(ctx context.Context) {
	for {
		if wait.For(ctx, r.wait()); ctx.Err() != nil {
			return
		}
		r.report(ctx, r.t.cfg.Timing.Request)
	}
}

// wait is the time until the next report: half of it is chance, so that nodes do
// not commit in step. One that fails is tried less often.
func (r *reporter) wait() time.Duration {
	d := r.t.cfg.Timing.Report
	d = max(d, min(d<<min(r.failed, 10), reportFailedMax))
	return d + rand.N(d+1)
}

// close reports a last time. Call it when positions move no more.
func (r *reporter) close() {
	r.report(context.Background(), reportLastMax)
	r.cl.Close()
}

// report commits the positions that moved since they were committed, for so long
// at the most.
func (r *reporter) report(ctx context.Context, most time.Duration) {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var err error
	for some := range slices.Chunk(r.moved(time.Now()), reportPartitionsMax) {
		if err = r.commit(within, some); err != nil {
			break
		}
	}
	switch {
	case err == nil:
		r.failed = 0
	case ctx.Err() == nil:
		r.failed++
		r.failure(err)
	}
}

// failure logs why a report failed, unless the one before did not: coordinators
// move, and are not there before the first group of a cluster is.
func (r *reporter) failure(err error) {
	now := time.Now()
	if r.failed < 2 || !r.logged.IsZero() && now.Sub(r.logged) < reportLogGap {
		return
	}
	r.logged = now
	r.t.log.LogAttrs(context.Background(), slog.LevelWarn, "positions can't be committed to --kafka-report-group; streams don't need it",
		slog.String("group", r.t.cfg.ReportGroup), slog.String("error", err.Error()))
}

// reported is a position for the group.
type reported struct {
	place
	id   frame.TopicID
	next int64 // as groups have it: the offset to read next
}

// moved lists, topic by topic, the positions that the group does not have. A
// topic is left out while it is not certain which one of its name they belong to:
// brokers before 4.2 take those of a deleted topic for its successor's.
func (r *reporter) moved(now time.Time) (list []reported) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := now.Sub(r.whole) >= reportWhole
	if whole {
		r.whole = now
	}
	for _, tp := range t.topics {
		if tp.state != Tailing || !tp.missingSince.IsZero() {
			continue
		}
		for i := range tp.parts {
			if p := &tp.parts[i]; p.next != frame.Unknown && (whole || p.next != p.reported) {
				list = append(list, reported{place{tp.name, int32(i)}, tp.id, p.next})
			}
		}
	}
	return list
}

// commit has the group take some positions. What it does not take is committed
// again; the error is the first reason, unless that is a topic that is gone.
func (r *reporter) commit(ctx context.Context, list []reported) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = r.t.cfg.ReportGroup
	names := make(map[frame.TopicID]string) // from version 10 on answers have the ids only
	for _, p := range list {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != p.topic {
			topic := kmsg.NewOffsetCommitRequestTopic()
			topic.Topic, topic.TopicID = p.topic, p.id
			req.Topics = append(req.Topics, topic)
			names[p.id] = p.topic
		}
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset = p.partition, p.next
		topic := &req.Topics[len(req.Topics)-1]
		topic.Partitions = append(topic.Partitions, part)
	}
	resp, err := req.RequestWith(ctx, r.cl)
	if err != nil {
		return err
	}
	took := make(map[place]bool, len(list))
	for i := range resp.Topics {
		topic := &resp.Topics[i]
		name := cmp.Or(topic.Topic, names[topic.TopicID])
		for _, part := range topic.Partitions {
			refused := kerr.ErrorForCode(part.ErrorCode)
			took[place{name, part.Partition}] = refused == nil
			if err == nil && !isMissing(refused) {
				err = refused
			}
		}
	}
	r.note(list, took)
	return err
}

// note remembers what the group has.
func (r *reporter) note(list []reported, took map[place]bool) {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	for _, p := range list {
		tp := r.t.topics[p.topic]
		if tp == nil || tp.id != p.id || !took[p.place] {
			continue
		}
		if part := tp.part(p.partition); part != nil {
			part.reported = p.next
		}
	}
}
