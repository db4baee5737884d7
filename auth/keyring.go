package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The pace of asking an issuer for its keys.
const (
	// refreshEvery is how old keys get: a key that the issuer has withdrawn
	// is accepted for so long.
	refreshEvery = 5 * time.Minute
	// askEvery is the least time between two askings, whoever sends tokens of
	// unknown keys: those wait for the next one.
	askEvery = 5 * time.Second
	// askMax bounds one asking: an issuer that takes longer is away.
	askMax = 5 * time.Second
	// redirectsMax bounds the redirects of one asking.
	redirectsMax = 2
)

// keyring holds the current keys of an issuer. Safe from any goroutine.
type keyring struct {
	url    string // of a JWK Set; empty: the keys are from a file (keyFile)
	client *http.Client
	log    *slog.Logger
	pace   pace

	set   atomic.Pointer[keySet] // nil until there are keys
	again func([]*Check)         // has the tokens that waited checked once more
	asked chan struct{}          // a token waits

	mu     sync.Mutex
	text   []byte   // what set was read from
	failed error    // of the last asking
	parked []*Check // bounded by the pool, which counts them
}

// pace is the times of a keyring; tests shorten them.
type pace struct{ refresh, ask, wait time.Duration }

var defaultPace = pace{refresh: refreshEvery, ask: askEvery, wait: askMax}

// remoteKeys is the keyring of a JWK Set's URL, empty until run has asked.
func remoteKeys(address string, log *slog.Logger) *keyring {
	k := &keyring{url: address, log: log, pace: defaultPace, asked: make(chan struct{}, 1)}
	k.client = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > redirectsMax {
				return errors.New("redirected too often")
			}
			return CheckURL(r.URL.String())
		},
	}
	return k
}

func (k *keyring) current() *keySet { return k.set.Load() }

// err says why there are no keys.
func (k *keyring) err() error {
	if k.current() != nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed != nil {
		return k.failed
	}
	return fmt.Errorf("%s: not read yet", k.url)
}

// isRemote reports whether there is an issuer to be asked for new keys.
func (k *keyring) isRemote() bool { return k.url != "" }

// park takes a token whose key is not known until the issuer has been asked
// again.
func (k *keyring) park(c *Check) {
	k.mu.Lock()
	k.parked = append(k.parked, c)
	k.mu.Unlock()
	select {
	case k.asked <- struct{}{}:
	default: // it will be
	}
}

// waiting is how many tokens are parked.
func (k *keyring) waiting() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.parked)
}

// isFailing reports whether the last asking failed.
func (k *keyring) isFailing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed != nil
}

// run keeps the keys fresh until ctx ends.
func (k *keyring) run(ctx context.Context) {
	for ctx.Err() == nil {
		waiting := k.waiting()
		err := k.ask(ctx)
		k.settle(err, waiting)
		if !sleep(ctx, k.pace.ask, nil) {
			return
		}
		if k.current() != nil {
			rest := k.pace.refresh - k.pace.ask
			sleep(ctx, rest-rest/10+time.Duration(rand.Int64N(int64(rest/5)+1)), k.asked)
		}
	}
}

// sleep waits for d or for wake; false when ctx has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-wake:
	}
	return true
}

// ask reads the keys from the issuer once.
func (k *keyring) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.pace.wait)
	defer cancel()
	text, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	same := k.text != nil && bytes.Equal(text, k.text)
	k.mu.Unlock()
	if same {
		return nil
	}
	set, skipped, err := parseJWKs(text, false)
	if err != nil {
		return err
	}
	for _, why := range skipped {
		k.log.Warn("a key of the issuer is not used", slog.String("jwks", k.url), slog.Any("error", why))
	}
	k.mu.Lock()
	k.text = text
	k.mu.Unlock()
	k.set.Store(set)
	k.log.Info("read the issuer's keys", slog.String("jwks", k.url), slog.Int("keys", set.n))
	return nil
}

func (k *keyring) fetch(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	res, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, keysBytesMax+1))
	if err == nil && len(text) > keysBytesMax {
		err = errors.New("the answer is longer than 1 MiB")
	}
	return text, err
}

// settle ends an asking: what went wrong is logged when it begins and ends, and
// the tokens that waited are checked once more. Those behind the first waiting
// came meanwhile: the issuer may have answered before their key was there, so
// they may wait for the next asking, too.
func (k *keyring) settle(err error, waiting int) {
	if opErr := (*net.OpError)(nil); errors.As(err, &opErr) {
		err = opErr // without the method and the URL before it
	}
	k.mu.Lock()
	was := k.failed
	if k.failed = nil; err != nil {
		k.failed = fmt.Errorf("%s: %w", k.url, err)
	}
	parked := k.parked
	k.parked = nil
	k.mu.Unlock()
	switch {
	case err != nil && was == nil:
		k.log.Error("the keys of the issuer can't be read", slog.String("jwks", k.url), slog.Any("error", err))
	case err == nil && was != nil:
		k.log.Info("the keys of the issuer can be read again", slog.String("jwks", k.url))
	}
	for _, c := range parked[waiting:] {
		c.parked = false
	}
	k.again(parked)
}
