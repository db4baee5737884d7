// Package kafkaload is the Kafka side of a measurement: a broker in memory,
// and a publisher of numbered records by an open loop. Each is meant to be a
// process of its own, so that what it spends is not taken for the server's.
package kafkaload

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

// OpenBroker starts a broker on a loopback port, with the topics, which may be
// compacted.
func OpenBroker(partitions int, compacted bool, topics ...string) (*kfake.Cluster, error) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return nil, fmt.Errorf("start a broker: %w", err)
	}
	configs := map[string]string{}
	if compacted {
		configs[cleanupPolicy] = compact
	}
	for _, topic := range topics {
		if err := broker.CreateTopic(topic, int32(partitions), configs); err != nil {
			broker.Close()
			return nil, fmt.Errorf("make topic %s: %w", topic, err)
		}
	}
	return broker, nil
}

// cleanupPolicy is the topic setting that has brokers keep the latest record of
// each key, when it is compact.
const cleanupPolicy, compact = "cleanup.policy", "compact"

// Topics are the topics of n users, from 1: the name, a hyphen and the user's
// number. With n 0 there is one of the name, for everyone.
func Topics(name string, n int64) []string {
	if n == 0 {
		return []string{name}
	}
	all := make([]string, 0, n)
	for i := range n {
		all = append(all, name+"-"+strconv.FormatInt(i+1, 10))
	}
	return all
}
