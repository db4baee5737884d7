package apptest

import (
	"net"
	"strings"
	"testing"

	"tailcast/internal/testkit"
)

// occupied returns an address that this process listens on.
func occupied(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp4", testkit.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestErrors: a mistake ends the process with one line on standard error that
// names the flag, or the place in the file, and nothing on standard output.
func TestErrors(t *testing.T) {
	t.Parallel()
	b := started(t, 3, "events", "orders")
	nobody, taken := testkit.FreeAddr(t), occupied(t)
	file := writeFile(t, "tailcast.yaml", "max-lag: 1MiB\nroutes:\n  - path: /events\n    topik: events\n")
	snapshot := writeFile(t, "tailcast.yaml", "routes:\n  - {path: /s, topic: events, start: snapshot}\n  - {path: /e, topic: event}\n")
	keys := writeFile(t, "tailcast.yaml", "guard: {issuer: i, audience: a, keys: nowhere.pem}\n")
	own := writeFile(t, "tailcast.yaml", "guard: {issuer: i, audience: a, keys: nowhere.pem}\nroutes:\n  - {path: /o, topic: orders, guard: {keys: "+file+"}}\n")
	top := writeFile(t, "tailcast.yaml", "\nkafka-brokrs: [a:1]\n")
	tailcast := testkit.Build(t, "tailcast/cmd/tailcast")
	const free = "--listen 127.0.0.1:0 --admin 127.0.0.1:0 --route /events=events --kafka-brokers "
	for _, c := range []struct {
		name, args string
		code       int
		want       []string // in the line
	}{
		{"unknown flag", "serve --max-leg 1MiB", 2, []string{`"--max-leg"`, `"--max-lag"`}},
		{"unknown command", "server", 2, []string{`"server"`, "serve", "bench", "version"}},
		{"argument of version", "version --json", 2, []string{`"--json"`}},
		{"a flag for a command", "-v serve", 2, []string{`"-v"`, "is not a command"}},
		{"one port for two", free + b.addr + " --admin " + nobody + " --listen " + nobody, 1, []string{"--admin", nobody, "in use"}},
		{"demo: an address that is not here", "demo --listen 127.0.0.1:0 --admin 127.0.0.1:0 --broker-listen 192.0.2.1:0", 1, []string{"--broker-listen", "192.0.2.1:0"}},
		{"check: no such host", "check --route /events=events --kafka-brokers nowhere.invalid:9092", 1, []string{"--kafka-brokers", "nowhere.invalid"}},
		{"password file is a directory", free + b.addr + " --kafka-sasl-mechanism PLAIN --kafka-sasl-username u --kafka-sasl-password-file /", 1, []string{"--kafka-sasl-password-file", "directory"}},
		{"no CA in a file", free + b.addr + " --kafka-tls --kafka-tls-ca " + top, 1, []string{"--kafka-tls-ca", "no PEM"}},
		{"no certificate to listen with", free + b.addr + " --listen-tls 127.0.0.1:0 --tls-cert nowhere --tls-key nowhere", 1, []string{"--tls-cert", "nowhere"}},
		{"check: no certificate to listen with", "check --route /events=events --kafka-brokers " + b.addr + " --listen-tls 127.0.0.1:0 --tls-cert nowhere --tls-key nowhere", 1, []string{"--tls-cert", "nowhere"}},
		{"check: no directory to serve", "check --route /events=events --kafka-brokers " + b.addr + " --static nowhere", 1, []string{"--static", "nowhere"}},
		{"no directory to serve", free + b.addr + " --static nowhere", 1, []string{"--static", "nowhere"}},
		{"a file to serve", free + b.addr + " --static " + top, 1, []string{"--static", "directory"}},
		{"no file of keys", free + b.addr + " --config " + keys, 2, []string{keys + `:1:33: key "keys": `, "nowhere.pem"}},
		{"no keys in a route's file", free + b.addr + " --config " + own, 2, []string{own + `:3:39: key "keys": `, file, "neither PEM"}},
		{"check: no file of keys", "check --route /events=events --kafka-brokers " + b.addr + " --config " + keys, 2, []string{keys + `:1:33: key "keys": `, "nowhere.pem"}},
		{"bad size", "serve --max-lag 4XB", 2, []string{"--max-lag", `"4XB"`}},
		{"bad listen address", "serve --route /e=e --listen 8080", 2, []string{"--listen", `"8080"`}},
		{"bad admin address", "serve --route /e=e --admin :http", 2, []string{"--admin", `":http"`}},
		{"address of another machine", free + b.addr + " --listen 192.0.2.1:0", 1, []string{"--listen", "192.0.2.1:0"}},
		{"bad broker address", "serve --route /e=e --kafka-brokers a:x", 2, []string{"--kafka-brokers", `"a:x"`}},
		{"listen port in use", free + b.addr + " --listen " + taken, 1, []string{"--listen", taken, "in use"}},
		{"admin port in use", free + b.addr + " --admin " + taken, 1, []string{"--admin", taken, "in use"}},
		{"no routes", "serve", 2, []string{"--route"}},
		{"bad route", "serve --route events", 2, []string{"--route", `"events"`}},
		{"route without a topic", "check --route /events=", 2, []string{"--route"}},
		{"route twice", "serve --route /e=a --route /e=b", 2, []string{"--route", `"/e"`}},
		{"unknown key", "serve --config " + top, 2, []string{top + ":2:1: ", `"kafka-brokrs"`, `"kafka-brokers"`}},
		{"unknown route key", "check --config " + file, 2, []string{file + ":4:5: ", `"topik"`, `"topic"`}},
		{"no such file", "serve --config nowhere.yaml", 2, []string{"--config", "nowhere.yaml"}},
		{"password file", free + b.addr + " --kafka-sasl-mechanism PLAIN --kafka-sasl-username u --kafka-sasl-password-file nowhere", 1, []string{"--kafka-sasl-password-file", "nowhere"}},
		{"check: broker unreachable", "check --route /events=events --kafka-brokers " + nobody, 1, []string{"--kafka-brokers", nobody, "refused"}},
		{"check: unknown topic", "check --route /events=event --kafka-brokers " + b.addr, 1, []string{"--route /events", `"event"`, "missing"}},
		{"check: two unknown topics", "check --route /a=event,/events=events,/o=order --kafka-brokers " + b.addr, 1, []string{"--route /a", `"event"`, "--route /o", `"order"`, "missing"}},
		{"check: a topic and a snapshot", "check --kafka-brokers " + b.addr + " --config " + snapshot, 1, []string{"--route /e", `"event"`, "--route /s", "compacted"}},
		{"demo: broker port in use", "demo --listen 127.0.0.1:0 --admin 127.0.0.1:0 --broker-listen " + taken, 1, []string{"--broker-listen", taken, "in use"}},
		{"demo: listen port in use", "demo --broker-listen 127.0.0.1:0 --admin 127.0.0.1:0 --listen " + taken, 1, []string{"--listen", taken, "in use"}},
		{"demo: flag of serve", "demo --kafka-brokers a:1", 2, []string{"--kafka-brokers"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := strings.Fields(c.args)
			if strings.HasPrefix(c.args, "--") {
				args = append([]string{"serve"}, args...)
			}
			p := testkit.Start(t, tailcast, args...)
			code := p.Wait(t, patience)
			got := p.Stderr.String()
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if line, rest, whole := strings.Cut(got, "\n"); !whole || rest != "" || !strings.HasPrefix(line, "tailcast: ") {
				t.Errorf("standard error is not one line that begins with tailcast: %q", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not name %s", got, want)
				}
			}
			if out := p.Stdout.String(); out != "" && !strings.HasPrefix(c.name, "check: ") {
				t.Errorf("standard output: %q", out)
			}
		})
	}
}

// TestEnvironment: a variable is a flag, a wrong one is named.
func TestEnvironment(t *testing.T) {
	t.Setenv("TAILCAST_MAX_LEG", "1MiB")
	p := testkit.Start(t, testkit.Build(t, "tailcast/cmd/tailcast"), "serve", "--route", "/e=e")
	if code := p.Wait(t, patience); code != 2 || p.Stderr.String() != "tailcast: TAILCAST_MAX_LEG: unknown setting (did you mean \"TAILCAST_MAX_LAG\"?)\n" {
		t.Errorf("exit code %d, standard error %q", code, p.Stderr.String())
	}
}

// TestCheck prints a line for each route.
func TestCheck(t *testing.T) {
	t.Parallel()
	b := started(t, 3, "events", "orders")
	b.create("wide", 60)
	b.produce("events", 0, 1)
	p := testkit.Start(t, testkit.Build(t, "tailcast/cmd/tailcast"), "check", "--kafka-brokers", b.addr, "--config", writeFile(t, "tailcast.yaml", `
routes:
  - {path: /events, topic: events}
  - {path: /orders, topic: orders, format: envelope}
  - {path: /both, host: gw.test, topics: [events, orders]}
  - {path: /wide, topic: wide}
  - {path: "/t/{t}", topics: [events, "t-{t}"], allow: [t-1, "t-x*"]}
`))
	code := p.Wait(t, patience)
	const want = `/events  topic events  3 partitions  raw  id 12 bytes
/orders  topic orders  3 partitions  envelope  id 9 bytes
gw.test/both  topic events,orders  6 partitions  raw  id 19 bytes
/wide  topic wide  60 partitions  raw  id 9 bytes (173 when there are records in every partition, over 128: browsers may ask permission before each cross-origin reconnect)
/t/{t}  topic events,t-{t}, allowed t-1,t-x*  raw
`
	if code != 0 || p.Stdout.String() != want || p.Stderr.String() != "" {
		t.Errorf("exit code %d, standard error %q, standard output\n%swant\n%s", code, p.Stderr.String(), p.Stdout.String(), want)
	}
}

// TestHelp: what is asked for goes to standard output.
func TestHelp(t *testing.T) {
	t.Parallel()
	tailcast := testkit.Build(t, "tailcast/cmd/tailcast")
	for args, want := range map[string]string{
		"help":         "tailcast serve --kafka-brokers",
		"serve --help": "--max-lag",
		"demo --help":  "--broker-listen",
		"check --help": "--kafka-brokers",
		"version":      "tailcast ",
	} {
		p := testkit.Start(t, tailcast, strings.Fields(args)...)
		if code := p.Wait(t, patience); code != 0 || !strings.Contains(p.Stdout.String(), want) || p.Stderr.String() != "" {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q", args, code, p.Stdout.String(), p.Stderr.String())
		}
	}
	if p := testkit.Start(t, tailcast); p.Wait(t, patience) != 2 || !strings.Contains(p.Stderr.String(), "tailcast serve") {
		t.Errorf("without a command: %q", p.Stderr.String())
	}
}
