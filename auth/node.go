package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"tailcast/internal/share"
)

// Config is what the guards of a node share.
type Config struct {
	Name      string            // of the node, as its peers know it; empty: a random one
	Peers     map[string]string // URL of each peer by its name
	Challenge time.Duration     // most time before its end that a stream is challenged; 0: never
	Log       *slog.Logger
}

// Node is the guards of one process: their keys, workers and challenges. Safe
// from any goroutine.
type Node struct {
	cfg   Config
	pool  *pool
	now   func() time.Time
	rings []*keyring // of URLs
	files []*keyFile
	made  []made
	peers map[string]*peer

	challenges challenges
	counts     counts

	client   *http.Client       // for peers
	ctx      context.Context    // of what is on its way to them
	stop     context.CancelFunc // ends ctx
	forwards chan struct{}      // one for each
}

// made is a verifier and what it was made from: the parts of a spec that it
// depends on.
type made struct {
	spec     Spec
	verifier *verifier
}

// NewNode returns a node without guards.
func NewNode(cfg Config) *Node {
	if cfg.Name == "" {
		cfg.Name = rand.Text()[:12] // 60 bits: no two nodes take one
	}
	n := &Node{
		cfg: cfg, pool: newPool(), now: time.Now, peers: map[string]*peer{},
		challenges: challenges{open: map[nonceHash]*Lease{}},
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		forwards: make(chan struct{}, forwardsMax),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	for name, address := range cfg.Peers {
		n.peers[name] = &peer{address}
	}
	return n
}

// Name is the node's own name.
func (n *Node) Name() string { return n.cfg.Name }

// begin reserves the right to send an answer to a peer; finish gives it back.
func (n *Node) begin() bool {
	select {
	case n.forwards <- struct{}{}:
	default:
		return false
	}
	if n.ctx.Err() != nil {
		n.finish()
		return false
	}
	return true
}

func (n *Node) finish() { <-n.forwards }

// Guard returns the guard of a route that uses the claims at some paths. Those of
// equal specs share keys and cache. The error is one line. Not safe beside Run.
func (n *Node) Guard(spec Spec, uses [][]string) (*Guard, error) {
	v, err := n.verifierOf(spec)
	if err != nil {
		return nil, err
	}
	return &Guard{
		node: n, verifier: v, sources: sources{order: spec.Sources, cookie: spec.Cookie},
		path: spec.RolesClaim, roles: spec.Roles, uses: uses,
	}, nil
}

func (n *Node) verifierOf(spec Spec) (*verifier, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	spec.Roles, spec.RolesClaim, spec.Sources, spec.Cookie = nil, nil, nil, ""
	for _, m := range n.made {
		if reflect.DeepEqual(m.spec, spec) {
			return m.verifier, nil
		}
	}
	ring, err := n.ringOf(&spec)
	if err != nil {
		return nil, err
	}
	v := newVerifier(&spec, ring, func() time.Time { return n.now() })
	n.made = append(n.made, made{spec, v})
	return v, nil
}

func (n *Node) ringOf(spec *Spec) (*keyring, error) {
	if spec.Keys != "" {
		secret, _ := secretOf(spec.Algorithms)
		return n.fileOf(spec.Keys, secret)
	}
	for _, r := range n.rings {
		if r.url == spec.JWKS {
			return r, nil
		}
	}
	r := remoteKeys(spec.JWKS, n.cfg.Log)
	r.again = n.pool.again
	n.rings = append(n.rings, r)
	return r, nil
}

func (n *Node) fileOf(path string, secret bool) (*keyring, error) {
	for _, f := range n.files {
		if f.path == path && f.secret == secret {
			return f.ring, nil
		}
	}
	f, err := openKeys(path, secret, n.cfg.Log)
	if err != nil {
		return nil, err
	}
	n.files = append(n.files, f)
	return f.ring, nil
}

// Run checks tokens and keeps keys fresh until ctx ends.
func (n *Node) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range share.Aside() {
		wg.Go(n.pool.work)
	}
	for _, r := range n.rings {
		wg.Go(func() { r.run(ctx) })
	}
	if len(n.files) > 0 {
		wg.Go(func() { watch(ctx, n.files) })
	}
	<-ctx.Done()
	n.pool.close()
	n.stop()
	wg.Wait()
	for range cap(n.forwards) { // wait for those on their way
		n.forwards <- struct{}{}
	}
	n.client.CloseIdleConnections()
}

// Ready says which issuer's keys are missing.
func (n *Node) Ready() error {
	var all []error
	for _, r := range n.rings {
		if err := r.err(); err != nil {
			all = append(all, fmt.Errorf("guard: %w", err))
		}
	}
	return errors.Join(all...)
}
