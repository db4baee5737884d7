// Package kafkatest runs real Apache Kafka brokers (KRaft, no ZooKeeper) for
// tests: Java processes on loopback that live as long as the test.
//
// It needs Java 17 or newer and the jars that pom.xml names; README.md says
// how they get there. A test that lacks either fails and says so.
package kafkatest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Options say what to start. The zero value is one broker.
type Options struct {
	Brokers int               // 1 (default) or 3; each is broker and controller
	Props   map[string]string // more lines of every broker's server.properties; they win over ours
	SASL    bool              // a second listener that authenticates User with Password, see Cluster.SASLAddrs
}

// Who may use the listener that Options.SASL opens, by PLAIN or SCRAM.
const (
	User     = "tail"
	Password = "tail-secret"
)

// Waits. Brokers start in two or three seconds on an idle core each; a busy
// machine gets much longer before a test gives up on it.
const (
	formatMax = time.Minute
	readyMax  = 2 * time.Minute
	stopMax   = 30 * time.Second
)

// Cluster is some brokers. Its methods fail the test when they can't do what
// they are asked. Not for several goroutines at once.
type Cluster struct {
	Addrs     []string // host:port of each broker, without authentication
	SASLAddrs []string // the same with it; empty without Options.SASL

	t       testing.TB
	dir     string
	java    string
	libs    string
	brokers []*broker
}

// broker is one Java process, or the place of one that is stopped.
type broker struct {
	id   int
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// Start formats storage, starts the brokers and waits until they serve each
// other's metadata. They are killed when the test ends.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Brokers == 0 {
		o.Brokers = 1
	}
	c := &Cluster{t: t, dir: t.TempDir(), java: java(t), libs: libs(t)}
	t.Cleanup(c.killAll)
	began := time.Now()
	c.configure(o)
	c.format(o)
	for i := range c.brokers {
		c.launch(i)
	}
	c.WaitReady()
	t.Logf("%d Kafka broker(s) ready after %v", o.Brokers, time.Since(began).Round(100*time.Millisecond))
	return c
}

// java finds the runtime.
func java(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("java")
	if err != nil {
		t.Fatalf("these tests need Java 17 or newer in the PATH: %v", err)
	}
	return path
}

// libs finds the jars: TAILCAST_KAFKA_LIBS, or .cache/kafka/libs in the module.
func libs(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TAILCAST_KAFKA_LIBS")
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), ".cache", "kafka", "libs")
	}
	if found, err := filepath.Glob(filepath.Join(dir, "kafka_*.jar")); err != nil || len(found) == 0 {
		t.Fatalf("no Kafka jars in %s: run `make kafka-jars`, or set TAILCAST_KAFKA_LIBS", dir)
	}
	return dir
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// format prepares the log directories, all for one cluster id.
func (c *Cluster) format(o Options) {
	c.t.Helper()
	var id [16]byte
	rand.Read(id[:])
	args := []string{"kafka.tools.StorageTool", "format", "--cluster-id", base64.RawURLEncoding.EncodeToString(id[:]), "--config", "server.properties"}
	if o.SASL {
		for _, m := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, User, Password))
		}
	}
	errs := make([]error, len(c.brokers))
	var wg sync.WaitGroup
	for i, b := range c.brokers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), formatMax)
			defer cancel()
			cmd := exec.CommandContext(ctx, c.java, c.args(64, args...)...)
			cmd.Dir = b.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("format the storage of broker %d: %w\n%s", b.id, err, out)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
}

// args are those of a JVM that starts fast and stays small.
func (c *Cluster) args(heapMiB int, args ...string) []string {
	return append([]string{
		fmt.Sprintf("-Xmx%dm", heapMiB), "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Dlog4j2.configurationFile=log4j2.properties", "-Dkafka.logs.dir=logs",
		"-cp", filepath.Join(c.libs, "*"),
	}, args...)
}

// launch starts the process of broker i (from 0).
func (c *Cluster) launch(i int) {
	c.t.Helper()
	b := c.brokers[i]
	out, err := os.OpenFile(b.out(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	b.cmd = exec.Command(c.java, c.args(384, "kafka.Kafka", "server.properties")...)
	b.cmd.Dir, b.cmd.Stdout, b.cmd.Stderr = b.dir, out, out
	b.cmd.SysProcAttr = attr()
	if err := b.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	b.done = make(chan struct{})
	go func() {
		defer close(b.done)
		_ = b.cmd.Wait() // how a broker that was killed ends is no news
	}()
}

func (b *broker) out() string { return filepath.Join(b.dir, "broker.log") }

func (b *broker) running() bool {
	if b.cmd == nil {
		return false
	}
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

// WaitReady waits until every running broker answers and knows all of them.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	var want []int32
	for _, b := range c.brokers {
		if b.cmd != nil {
			want = append(want, int32(b.id))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyMax)
	defer cancel()
	for i, b := range c.brokers {
		if b.cmd == nil {
			continue
		}
		if err := c.ready(ctx, i, want); err != nil {
			c.t.Fatalf("broker %d is not ready: %v\n%s", b.id, err, tail(b.out()))
		}
	}
}

// ready polls one broker until it lists all that run.
func (c *Cluster) ready(ctx context.Context, i int, want []int32) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs[i]), kgo.RequestRetries(0), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer cl.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none
	for {
		resp, err := req.RequestWith(ctx, cl)
		if err == nil {
			var got []int32
			for _, b := range resp.Brokers {
				got = append(got, b.NodeID)
			}
			slices.Sort(got)
			if slices.Equal(got, want) {
				return nil
			}
			err = fmt.Errorf("it knows the brokers %v, want %v", got, want)
		}
		select {
		case <-ctx.Done():
			return err
		case <-c.brokers[i].done:
			return fmt.Errorf("it has ended: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Kill ends broker i (from 0) without a word to the others (SIGKILL).
func (c *Cluster) Kill(i int) { c.end(i, syscall.SIGKILL) }

// Stop lets broker i (from 0) hand over and end (SIGTERM).
func (c *Cluster) Stop(i int) { c.end(i, syscall.SIGTERM) }

func (c *Cluster) end(i int, sig syscall.Signal) {
	c.t.Helper()
	b := c.brokers[i]
	if b.cmd == nil {
		c.t.Fatalf("broker %d does not run", b.id)
	}
	_ = b.cmd.Process.Signal(sig) // it may have ended by itself
	select {
	case <-b.done:
	case <-time.After(stopMax):
		_ = b.cmd.Process.Kill()
		<-b.done
		c.t.Errorf("broker %d did not end within %v of %v", b.id, stopMax, sig)
	}
	b.cmd = nil
}

// Restart starts broker i (from 0) again, with what it had on its disk, and
// waits until it is ready. One that runs is killed first.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	if c.brokers[i].cmd != nil {
		c.Kill(i)
	}
	c.launch(i)
	c.WaitReady()
}

// Index returns the place of a node id, as metadata gives it, in Addrs.
func (c *Cluster) Index(node int32) int { return int(node) - 1 }

// killAll ends what this cluster started, by its process ids.
func (c *Cluster) killAll() {
	for _, b := range c.brokers {
		if b.running() {
			_ = b.cmd.Process.Kill()
			<-b.done
		}
	}
	if c.t.Failed() {
		for _, b := range c.brokers {
			c.t.Logf("broker %d:\n%s", b.id, tail(b.out()))
		}
	}
}

// tail returns the end of a log file.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 8 << 10
	if len(b) > most {
		b = b[len(b)-most:]
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return string(b)
}
