package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"tailcast/bench/harness"
)

// centrifugoChannel is what every stream subscribes to.
const centrifugoChannel = "bench"

// centrifugoConf serves one channel to anyone, without history. Pings are off
// for the time of a run, because they are events with data; the others'
// heartbeats come seldom enough, too.
func centrifugoConf(addr string) ([]byte, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	type section = map[string]any
	return json.Marshal(section{
		"http_server": section{"address": host, "port": n},
		"client":      section{"insecure": true, "allowed_origins": []string{"*"}, "ping_interval": "1h"},
		"http_api":    section{"insecure": true},
		"uni_sse":     section{"enabled": true},
		"channel": section{"without_namespace": section{
			"allow_subscribe_for_client": true, "allow_subscribe_for_anonymous": true,
		}},
		"log":         section{"level": "error"},
		"usage_stats": section{"disabled": true}, // it would tell its makers
	})
}

func centrifugoTarget(t *tools) (harness.Target, error) {
	version, err := builtFrom(t.centrifugo, "")
	if err != nil {
		return harness.Target{}, fmt.Errorf("-centrifugo: %w", err)
	}
	return harness.Target{
		Name: "centrifugo", Version: version, Checks: harness.Checks{}, // a stream's first event tells that it is connected
		Start: func(ctx context.Context, s *harness.Setup) (*harness.Server, error) {
			addr, err := freeAddr()
			if err != nil {
				return nil, err
			}
			conf, err := centrifugoConf(addr)
			if err != nil {
				return nil, err
			}
			file := filepath.Join(s.Dir, "centrifugo.json")
			if err := os.WriteFile(file, conf, 0o600); err != nil {
				return nil, err
			}
			p, err := s.Command(harness.OnServer, t.centrifugo, "-c", file)
			if err != nil {
				return nil, err
			}
			if err := listening(ctx, p, addr); err != nil {
				return nil, err
			}
			publisher, err := startPoster(s, t, "http://"+addr+"/api/publish", `{"channel":"`+centrifugoChannel+`","data":`, "}")
			if err != nil {
				return nil, err
			}
			connect := url.QueryEscape(`{"subs":{"` + centrifugoChannel + `":{}}}`)
			return &harness.Server{
				URL: "http://" + addr + "/connection/uni_sse?cf_connect=" + connect, PIDs: []int{p.PID()}, Publisher: publisher,
			}, nil
		},
	}, nil
}
