package kafkatail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/hub"
)

// The settings of a topic that say how it is cleaned up.
const (
	cleanupPolicy   = "cleanup.policy"
	deleteRetention = "delete.retention.ms"
)

// unknownCleanup is taken for a topic whose settings brokers do not show:
// compacted, as its route says, with Kafka's default for delete.retention.ms.
var unknownCleanup = hub.Cleanup{Compacted: true, DeleteRetention: 24 * time.Hour}

// Cleanup implements hub.History. An ACL may forbid DescribeConfigs, and not
// every broker that speaks the protocol knows it: then Kafka's defaults are
// taken, and that is logged.
func (s *History) Cleanup(ctx context.Context, topic string) (hub.Cleanup, error) {
	h := s.open.Load()
	if h == nil {
		return hub.Cleanup{}, errNotRunning
	}
	ctx, cancel := context.WithTimeout(ctx, h.list.timeout)
	defer cancel()
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	r.ConfigNames = []string{cleanupPolicy, deleteRetention}
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, h.list.cl)
	if err != nil {
		return hub.Cleanup{}, fmt.Errorf("ask how %s is cleaned up: %w", topic, err)
	}
	for i := range resp.Resources {
		if r := &resp.Resources[i]; r.ResourceName == topic {
			return h.cleanup(ctx, topic, r)
		}
	}
	return h.cleanup(ctx, topic, nil)
}

// cleanup reads an answer, nil if there is none.
func (h *past) cleanup(ctx context.Context, topic string, r *kmsg.DescribeConfigsResponseResource) (hub.Cleanup, error) {
	err := errors.New("the broker does not say")
	if r != nil {
		if err = kerr.ErrorForCode(r.ErrorCode); err == nil {
			return readCleanup(r.Configs), nil
		}
		if kerr.IsRetriable(err) {
			return hub.Cleanup{}, fmt.Errorf("ask how %s is cleaned up: %w", topic, err)
		}
	}
	h.t.log.LogAttrs(ctx, slog.LevelWarn, "a topic's settings can't be read, and are taken to be cleanup.policy=compact with delete.retention.ms of a day",
		slog.String("topic", topic), slog.String("error", err.Error()))
	return unknownCleanup, nil
}

func readCleanup(configs []kmsg.DescribeConfigsResponseResourceConfig) hub.Cleanup {
	c := unknownCleanup
	for i := range configs {
		if configs[i].Value == nil {
			continue
		}
		switch value := *configs[i].Value; configs[i].Name {
		case cleanupPolicy:
			c.Compacted = strings.Contains(value, "compact")
		case deleteRetention:
			if ms, err := strconv.ParseInt(value, 10, 64); err == nil && ms >= 0 {
				c.DeleteRetention = time.Duration(min(ms, maxMillis)) * time.Millisecond
			}
		}
	}
	return c
}

// maxMillis is as long as a time.Duration can be.
const maxMillis = int64(1<<63-1) / int64(time.Millisecond)
