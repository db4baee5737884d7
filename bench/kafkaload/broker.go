// Package kafkaload is the Kafka side of a measurement: a broker in memory,
// and a publisher of numbered records by an open loop. Each is meant to be a
// process of its own, so that what it spends is not taken for the server's.
package kafkaload

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
)

// OpenBroker starts a broker on a loopback port, with one topic.
func OpenBroker(topic string, partitions int) (*kfake.Cluster, error) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), topic))
	if err != nil {
		return nil, fmt.Errorf("start a broker: %w", err)
	}
	return broker, nil
}
