package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestBenchUsage shows the exit codes and messages of command lines that
// measure nothing.
func TestBenchUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		want string // on the standard output with code 0, else on the standard error
	}{
		{"", 0, "saturate  raise the rate"},
		{"--help", 0, "tailcast bench compare A.json B.json"},
		{"slow --help", 0, "--stalled int"},
		{"snapshot --help", 0, "--keys int"},
		{"snapshot --keys 0", 2, "--keys: 0 is outside 1 to"},
		{"snapshot --keys 1000000", 2, "--keys: 1000000 of 1000 streams"},
		{"hostile --help", 0, "--attackers int"},
		{"nothing", 2, "nothing: unknown scenario (want one of connect, "},
		{"fanout --p99 1s", 2, "unknown flag: --p99"},
		{"fanout --streams 0", 2, "--streams: 0 is outside 1 to"},
		{"hostile --attack nothing", 2, `--attack: no attack has "nothing" in its name`},
		{"fanout --runs 0", 2, "--runs: 0 is outside 1 to"},
		{"fanout --for fast", 2, "--for"},
		{"fanout extra", 2, `unexpected argument "extra"`},
		{"fanout --url http://127.0.0.1:1/", 2, "--kafka-brokers"},
		{"fanout --url http://127.0.0.1:1/ --kafka-brokers 127.0.0.1:2 -- --max-lag 1MiB", 2, "tailcast serve"},
		{"idle --help", 0, `--tls string[="1.3"]`},
		{"idle --tls=1.1", 2, `--tls: "1.1" is neither 1.2 nor 1.3`},
		{"idle --tls 1.2", 2, `unexpected argument "1.2"`},
		{"idle --tls-resume", 2, "--tls-resume: needs --tls"},
		{"ingest --tls", 2, "unknown flag: --tls"},
		{"fanout --tls --url http://127.0.0.1:1/ --kafka-brokers 127.0.0.1:2", 2, "--tls: the server of --url"},
		{"fanout --pid 1", 2, "--url"},
		{"fanout --json - --html -", 2, "one of them can be the standard output"},
		{"compare a.json", 2, "want two files"},
		{"compare a.json b.json", 2, "a.json"},
		{"fanout --client-cpu x", 1, `--client-cpu: processors "x"`},
		{"broker --partitions x", 1, "--partitions"},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"bench"}, strings.Fields(tt.args)...), nil, &out, &errs)
		said := errs.String()
		if tt.code == 0 {
			said = out.String()
		}
		if code != tt.code || !strings.Contains(said, tt.want) || tt.code != 0 && strings.Count(said, "\n") != 1 {
			t.Errorf("bench %s: code %d, %q; want %d and %q", tt.args, code, said, tt.code, tt.want)
		}
	}
}
