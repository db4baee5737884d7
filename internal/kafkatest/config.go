package kafkatest

import (
	"crypto/rand"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// configure chooses ports and writes each broker's files.
func (c *Cluster) configure(o Options) {
	c.t.Helper()
	var voters []string
	controllers := make([]string, o.Brokers)
	for i := range o.Brokers {
		c.Addrs = append(c.Addrs, freeAddr(c.t))
		if o.SASL {
			c.SASLAddrs = append(c.SASLAddrs, freeAddr(c.t))
		}
		controllers[i] = freeAddr(c.t)
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, controllers[i]))
	}
	for i := range o.Brokers {
		b := &broker{id: i + 1, dir: filepath.Join(c.dir, fmt.Sprintf("broker%d", i+1))}
		c.brokers = append(c.brokers, b)
		props := base(o.Brokers)
		props["node.id"] = strconv.Itoa(b.id)
		props["broker.rack"] = Rack(i)
		props["log.dirs"] = filepath.Join(b.dir, "data")
		props["controller.quorum.voters"] = strings.Join(voters, ",")
		listeners := "PLAINTEXT://" + c.Addrs[i]
		if o.SASL {
			listeners += ",SASL_PLAINTEXT://" + c.SASLAddrs[i]
			addSASL(props)
		}
		props["advertised.listeners"] = listeners
		props["listeners"] = listeners + ",CONTROLLER://" + controllers[i]
		maps.Copy(props, o.Props)
		c.write(b, "server.properties", lines(props))
		c.write(b, "log4j2.properties", log4j2)
	}
}

// Rack is where broker i (from 0) stands.
func Rack(i int) string { return fmt.Sprintf("rack%d", i+1) }

// base is what every broker is told: small, and quick to delete and compact.
func base(brokers int) map[string]string {
	replicas, inSync := strconv.Itoa(brokers), strconv.Itoa((brokers+1)/2)
	return map[string]string{
		"process.roles":                                    "broker,controller",
		"controller.listener.names":                        "CONTROLLER",
		"inter.broker.listener.name":                       "PLAINTEXT",
		"listener.security.protocol.map":                   "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
		"num.network.threads":                              "2",
		"num.io.threads":                                   "2",
		"background.threads":                               "2",
		"auto.create.topics.enable":                        "false",
		"default.replication.factor":                       replicas,
		"min.insync.replicas":                              inSync,
		"offsets.topic.replication.factor":                 replicas,
		"offsets.topic.num.partitions":                     "2",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    inSync,
		"transaction.state.log.num.partitions":             "2",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            inSync,
		"share.coordinator.state.topic.num.partitions":     "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"controlled.shutdown.enable":                       "true",
		// Clients that name a rack read from the replica there (KIP-392).
		"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
		// A killed broker is noticed within this, and its leaders move.
		"broker.session.timeout.ms":             "3000",
		"broker.heartbeat.interval.ms":          "500",
		"controller.quorum.election.timeout.ms": "1000",
		"controller.quorum.fetch.timeout.ms":    "2000",
		"replica.lag.time.max.ms":               "3000",
		"log.retention.check.interval.ms":       "1000",
		"log.initial.task.delay.ms":             "500",
		"log.segment.delete.delay.ms":           "500",
		"log.cleaner.backoff.ms":                "500",
	}
}

func addSASL(props map[string]string) {
	props["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
	props["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = fmt.Sprintf(
		`org.apache.kafka.common.security.plain.PlainLoginModule required user_%s="%s";`, User, Password)
	for _, m := range []string{"scram-sha-256", "scram-sha-512"} {
		props["listener.name.sasl_plaintext."+m+".sasl.jaas.config"] = `org.apache.kafka.common.security.scram.ScramLoginModule required;`
	}
}

// lines writes properties in an order that does not change.
func lines(props map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&b, "%s=%s\n", k, props[k])
	}
	return b.String()
}

// log4j2 is in the properties form, which needs no further jar.
const log4j2 = `rootLogger.level=warn
rootLogger.appenderRef.c.ref=c
appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
`

func (c *Cluster) write(b *broker, name, text string) {
	c.t.Helper()
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// freeAddr finds a loopback port that nobody uses, below those that systems
// give to outgoing connections: a broker must get it again after a restart.
func freeAddr(t testing.TB) string {
	t.Helper()
	const low, high = 20000, 32000
	for range 100 {
		n, err := rand.Int(rand.Reader, big.NewInt(high-low))
		if err != nil {
			t.Fatal(err)
		}
		addr := fmt.Sprintf("127.0.0.1:%d", low+n.Int64())
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatalf("no free port between %d and %d", low, high)
	return ""
}
