// Package hostile attacks a gateway, in the ways of clients that mean it harm.
//
// An attack is a few lines that one of many attackers does again and again, as
// fast as the gateway lets it; Run has many do so, and counts. Attackers know no
// secret: what they send could come from anybody who can reach the listeners.
// Site is what the gateway is given, so that there is something to attack.
//
// It speaks sockets only. Whether honest clients notice is for others to see:
// bench/harness measures it, apptest tests it.
package hostile

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"tailcast/internal/wait"
)

// Target is what attackers know of the gateway. It is JSON in an order to those
// in another process.
type Target struct {
	Plain string `json:"plain"` // host:port
	TLS   string `json:"tls"`   // host:port
	// Issuer is whose tokens the guarded route takes.
	Issuer string `json:"issuer"`
}

// Attack is one way to do harm.
type Attack struct {
	Name string
	Unit string // of what is counted: "requests"
	// Holds says that the harm is to hold connections: holders times as many
	// attackers do.
	Holds bool

	// elsewhere says that attackers have a listener of their own instead of the
	// gateway's: what honest clients notice of that is not the gateway's doing.
	elsewhere bool
	// once is what an attacker does again and again: it returns how much of Unit
	// that was. Its error is how the gateway defended itself, for nobody to see,
	// or errNoConnection.
	once func(ctx context.Context, a *attacker) (int, error)
}

// Attacks are all there are, in the order of tables.
func Attacks() (all []Attack) {
	for _, some := range [][]Attack{onConnections, onTLS, onRequests, onStreams, onGuards, onFiles} {
		all = append(all, some...)
	}
	return all
}

const (
	// holders is how many times as many attackers hold connections: one that
	// waits takes no processor.
	holders = 5
	// addresses is how many source addresses attackers have: enough that no
	// limit by address stops them, and that ports don't run out, of which an
	// address has 28,000 (ip_local_port_range).
	addresses = 64
	// noConnectionPause is how long an attacker waits that got no connection:
	// it is out of ports, or the gateway's queue is full.
	noConnectionPause = 2 * time.Millisecond
)

// errNoConnection is the error of an attacker that did not get as far as the
// gateway.
var errNoConnection = errors.New("no connection")

// Made is what came of an attack.
type Made struct {
	Count   int64   `json:"count"`  // of the attack's unit
	Failed  int64   `json:"failed"` // times that an attacker got no connection
	Seconds float64 `json:"seconds"`
}

// Run has n attackers attack, or holders times n, for the time d or until ctx is done.
func (a *Attack) Run(ctx context.Context, at Target, n int, d time.Duration) Made {
	if a.Holds {
		n *= holders
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if a.elsewhere {
		s, err := openSink()
		if err != nil {
			return Made{Failed: int64(n)}
		}
		defer s.close()
		at.Plain = s.addr()
	}
	began := time.Now()
	var count, failed atomic.Int64
	var attackers sync.WaitGroup
	for i := range n {
		attackers.Go(func() {
			by := &attacker{at: at, from: source(i), rand: rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}), buf: make([]byte, 16<<10)}
			for ctx.Err() == nil {
				made, err := a.once(ctx, by)
				count.Add(int64(made))
				var opErr net.Error
				over := ctx.Err() != nil || errors.As(err, &opErr) && opErr.Timeout()
				if errors.Is(err, errNoConnection) && !over {
					failed.Add(1)
					wait.For(ctx, noConnectionPause)
				}
			}
		})
	}
	attackers.Wait()
	return Made{Count: count.Load(), Failed: failed.Load(), Seconds: time.Since(began).Seconds()}
}

// source is the address of attacker i.
func source(i int) net.IP { return net.IPv4(127, 0, 1, byte(1+i%addresses)) }

// attacker is one of many. It belongs to one goroutine.
type attacker struct {
	at   Target
	from net.IP
	rand *rand.ChaCha8 // what it makes up
	buf  []byte        // for what it reads
}
