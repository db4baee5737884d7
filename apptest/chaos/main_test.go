// Package chaos is the proof that streams resume exactly. Two gateways stand
// in front of three brokers; producers write plain records and transactions;
// clients come, cut their connections at any byte, go offline, stall, and
// resume on either gateway; brokers and gateways fail meanwhile. Streams are of
// one topic or of several, of all records or of some, from the end, from the
// beginning or from a snapshot. At the end the committed log is read by a
// consumer that knows nothing of the gateways, and what every client got is
// compared with it, record by record.
//
//	make test         a small run in front of franz-go's kfake
//	make test-kafka   a small run in front of real brokers, and what they alone can do
//	make chaos        both, large: CHAOS=5m SEED=...
//
// What happens is drawn from one seed, which is printed. -chaos.seed draws the
// same again; when each thing happens is up to the machine.
package chaos

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"tailcast/internal/testkit"
)

var (
	seedFlag     = flag.Uint64("chaos.seed", 0, "draw what this seed drew; 0: a new one")
	durationFlag = flag.Duration("chaos.duration", 0, "how long records are written; 0: a few seconds")
	clientsFlag  = flag.Int("chaos.clients", 0, "clients at once; 0: by the test")
	rateFlag     = flag.Int("chaos.rate", 0, "records a second; 0: by the test")
)

// patience bounds every wait; only a failing run spends it.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	// Runs mostly wait for what comes; all of them fit beside each other.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	testkit.Main(m)
}

// seed is what a run draws from.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := *seedFlag
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-chaos.seed %d", s)
	return s
}

// or is a flag's value, or what the test has for it.
func or[T comparable](flag, def T) T {
	var zero T
	if flag == zero {
		return def
	}
	return flag
}
