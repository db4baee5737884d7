// Package apptest holds the black-box tests: the built binary in front of a
// Kafka broker, seen from its sockets, its standard error and its exit code.
//
//	make test           the broker is franz-go's kfake, in the test's process
//	make test-kafka     a real one (tag kafka, functions named *Kafka*)
//	make test-clients   kcat, kafkajs, curl, OpenSSL, Chromium and HAProxy (tag clients, *Clients*)
//
// What the broker does not matter for is a function of broker, and both
// kinds of test call it.
package apptest

import (
	"context"
	"flag"
	"testing"
	"time"

	"tailcast/internal/testkit"
)

// patience bounds every wait of a test; only a failing test spends it.
const patience = 40 * time.Second

func TestMain(m *testing.M) {
	// Most of these tests wait for the intervals of the product, which are made
	// for production: 3 s between two looks at the brokers.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testkit.Main(m)
}

// within is a context for one step of a test.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
