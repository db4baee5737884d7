package main

import (
	"fmt"
	"log/slog"

	"tailcast/auth"
	"tailcast/config"
)

func guardConfig(cfg *config.Config, log *slog.Logger) auth.Config {
	peers := map[string]string{}
	for _, p := range cfg.Peers {
		peers[p.Name] = p.URL
	}
	return auth.Config{Name: cfg.Node, Peers: peers, Challenge: cfg.Challenge, Log: log}
}

// mistake is an error of the configuration that shows only when a command uses
// it.
type mistake struct{ error }

// Unwrap is for errors.Is.
func (m mistake) Unwrap() error { return m.error }

// guardOf returns the guard of a route, nil without one. The error is that its
// file of keys can't be read, and names the key.
func guardOf(n *auth.Node, r *config.Route) (*auth.Guard, error) {
	if r.Guard == nil {
		return nil, nil //nolint:nilnil // no guard is what the loop calls an open route
	}
	guard, err := n.Guard(*r.Guard, r.Claims())
	if err != nil {
		return nil, mistake{fmt.Errorf("%s: %w", r.KeysFrom, err)}
	}
	return guard, nil
}
