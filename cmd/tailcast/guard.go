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

// guardOf returns the guard of a route, nil without one.
func guardOf(n *auth.Node, r *config.Route) (*auth.Guard, error) {
	if r.Guard == nil {
		return nil, nil //nolint:nilnil // no guard is what the loop calls an open route
	}
	guard, err := n.Guard(*r.Guard, r.Claims())
	if err != nil {
		return nil, fmt.Errorf("route %s: guard: %w", r.Path, err)
	}
	return guard, nil
}
