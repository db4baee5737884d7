package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// load is Load in a directory where tailcast.yaml holds file; without file
// there is none, and no --config.
func load(t testing.TB, command, args, env, file string) (*Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	argv := strings.Fields(args)
	if file != "" {
		if err := os.WriteFile("tailcast.yaml", []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		argv = append([]string{"--config", "tailcast.yaml"}, argv...)
	}
	return Load(command, argv, strings.Fields(env))
}

func mustLoad(t testing.TB, command, args, env, file string) *Config {
	t.Helper()
	c, err := load(t, command, args, env, file)
	if err != nil {
		t.Fatalf("%s %s (%s): %v", command, args, env, err)
	}
	return c
}

// The defaults are what DESIGN calls the contract: users and their tests rely
// on them.
func TestDefaults(t *testing.T) {
	events := newRoute()
	events.Path, events.Topics, events.Format.MaxEvent = "/events", []string{"events"}, 1<<20
	want := Config{
		Kafka:         Kafka{Brokers: []string{"127.0.0.1:9092"}, ClientID: "tailcast", Isolation: ReadCommitted},
		Routes:        []Route{events},
		Challenge:     30 * time.Second,
		Listen:        ":8080",
		Admin:         "127.0.0.1:9090",
		LogBytes:      64 << 20,
		LogBytesTotal: 1 << 30,
		SnapshotBytes: 256 << 20,
		MaxEvent:      1 << 20,
		ReplayMax:     100_000,
		ReplayScan:    256 << 20,
		Replays:       16,
		MaxLag:        4 << 20,
		Stall:         20 * time.Second,
		NotSentLowat:  16 << 10,
		HeaderTimeout: 5 * time.Second,
		Heartbeat:     15 * time.Second,
		Retry:         2 * time.Second,
		Drain:         30 * time.Second,
		DrainDelay:    5 * time.Second,
		LogLevel:      slog.LevelInfo,
		LogFormat:     LogText,
		Proxy:         ProxyOff,
		AccessLog:     Off, AccessLogSample: 1,
	}
	if got := mustLoad(t, Serve, "--route /events=events", "", ""); !reflect.DeepEqual(*got, want) {
		t.Errorf("serve:\n got %+v\nwant %+v", *got, want)
	}
	if got := mustLoad(t, Check, "--route /events=events", "", ""); !reflect.DeepEqual(*got, want) {
		t.Errorf("check:\n got %+v\nwant %+v", *got, want)
	}
	want.Kafka.Brokers = nil
	want.Demo = Demo{BrokerListen: "127.0.0.1:19092", Topic: "events", Rate: 10}
	if got := mustLoad(t, Demonstrate, "", "", ""); !reflect.DeepEqual(*got, want) {
		t.Errorf("demo:\n got %+v\nwant %+v", *got, want)
	}
}

// samples has for every setting a value that is not its default, and the
// settings it needs beside it.
var samples = map[string]struct{ text, with string }{
	"kafka-brokers":                  {"a:9092,b:9093", ""},
	"kafka-client-id":                {"node-1", ""},
	"kafka-isolation":                {"read_uncommitted", ""},
	"kafka-rack":                     {"eu-1a", ""},
	"kafka-report-group":             {"gateway-{node}", "--node=a"},
	"kafka-tls":                      {"true", ""},
	"kafka-tls-ca":                   {"/etc/ca.pem", "--kafka-tls"},
	"kafka-tls-cert":                 {"/etc/cert.pem", "--kafka-tls --kafka-tls-key=k"},
	"kafka-tls-key":                  {"/etc/key.pem", "--kafka-tls --kafka-tls-cert=c"},
	"kafka-tls-server-name":          {"kafka.test", "--kafka-tls"},
	"kafka-tls-insecure-skip-verify": {"true", "--kafka-tls"},
	"kafka-sasl-mechanism":           {"SCRAM-SHA-512", "--kafka-sasl-username=u --kafka-sasl-password-file=f"},
	"kafka-sasl-username":            {"ada", "--kafka-sasl-mechanism=PLAIN --kafka-sasl-password-file=f"},
	"kafka-sasl-password-file":       {"/run/secret", "--kafka-sasl-mechanism=PLAIN --kafka-sasl-username=u"},
	"route":                          {"/a=a,/b=b", ""},
	"cors-origins":                   {"https://app.test,https://*.app.test", ""},
	"challenge":                      {"1m", ""},
	"node":                           {"node-1", ""},
	"peers":                          {"a=http://10.0.0.7:8080,b=https://b.test", "--node=c"},
	"listen":                         {"127.0.0.1:18080", ""},
	"listen-tls":                     {":8443", "--tls-cert=a --tls-key=b"},
	"tls-cert":                       {"/a.pem,/b.pem", "--listen-tls=:1 --tls-key=a,b"},
	"tls-key":                        {"/a.key,/b.key", "--listen-tls=:1 --tls-cert=a,b"},
	"tls-client-ca":                  {"/ca.pem", "--listen-tls=:1 --tls-cert=a --tls-key=b"},
	"access-log":                     {"on", ""},
	"access-log-sample":              {"100", ""},
	"static":                         {"/srv/www", ""},
	"accept-rate":                    {"2000", ""},
	"proxy-protocol":                 {"required", "--proxy-trusted=::1"},
	"proxy-trusted":                  {"10.0.0.0/8,192.0.2.7", "--proxy-protocol=required"},
	"admin":                          {"[::1]:0", ""},
	"loops":                          {"3", ""},
	"max-conns":                      {"20000", ""},
	"max-conns-per-ip":               {"100", ""},
	"header-timeout":                 {"2s", ""},
	"heartbeat":                      {"1m", ""},
	"flush-window":                   {"5ms", ""},
	"retry":                          {"1s", ""},
	"max-lag":                        {"256KiB", ""},
	"stall":                          {"1500ms", ""},
	"max-age":                        {"1h", ""},
	"notsent-lowat":                  {"0", ""},
	"sndbuf":                         {"64KiB", ""},
	"log-bytes":                      {"8MiB", ""},
	"log-bytes-total":                {"2GiB", ""},
	"snapshot-bytes":                 {"1GiB", ""},
	"max-event":                      {"1000", ""},
	"replay-max":                     {"5", ""},
	"replay-scan":                    {"2MiB", ""},
	"replays":                        {"3", ""},
	"warmup":                         {"1000", ""},
	"drain":                          {"0s", ""},
	"drain-delay":                    {"0s", ""},
	"log-level":                      {"debug", ""},
	"log-format":                     {"json", ""},
	"broker-listen":                  {"127.0.0.1:0", ""},
	"topic":                          {"ticks", ""},
	"rate":                           {"1000", ""},
	"quiet":                          {"true", ""},
}

// Every setting can be set by a flag, a variable and a key, to the same effect.
func TestEverySettingFromEverySource(t *testing.T) {
	for _, s := range settings(&Config{}) {
		if s.name == configFile {
			continue // TestConfigFileSetting
		}
		t.Run(s.name, func(t *testing.T) {
			sample, ok := samples[s.name]
			if !ok {
				t.Fatal("no sample: add one")
			}
			command, with := Serve, sample.with
			if s.reach == demoOnly {
				command = Demonstrate
			} else if s.name != "route" {
				with += " --route /events=events"
			}
			flag := mustLoad(t, command, with+" --"+s.name+"="+sample.text, "", "")
			variable := mustLoad(t, command, with, envName(s.name)+"="+sample.text, "")
			key := mustLoad(t, command, with, "", s.name+": "+strings.Replace(sample.text, "[::1]:0", "'[::1]:0'", 1)+"\n")
			key.File = ""
			if !reflect.DeepEqual(flag, variable) {
				t.Errorf("flag %+v\nvariable %+v", *flag, *variable)
			}
			if !reflect.DeepEqual(flag, key) {
				t.Errorf("flag %+v\nkey %+v", *flag, *key)
			}
			without, err := load(t, command, with, "", "")
			if err == nil && reflect.DeepEqual(flag, without) { // an error: the others need it
				t.Errorf("%s changes nothing", sample.text)
			}
		})
	}
}

// Flag > environment > file > default, for a single value and for a list.
func TestPrecedence(t *testing.T) {
	for sources := range 8 {
		inFile, inEnv, inFlag := sources&1 != 0, sources&2 != 0, sources&4 != 0
		args, env, file := "--route /events=events", "", ""
		want, wantOrigins := Size(4<<20), []string(nil)
		if inFile {
			file = "max-lag: 1MiB\ncors-origins: [https://file-1.test, https://file-2.test]\n"
			want, wantOrigins = 1<<20, []string{"https://file-1.test", "https://file-2.test"}
		}
		if inEnv {
			env = "TAILCAST_MAX_LAG=2MiB TAILCAST_CORS_ORIGINS=https://env.test"
			want, wantOrigins = 2<<20, []string{"https://env.test"}
		}
		if inFlag {
			args += " --max-lag 3MiB --cors-origins https://flag.test"
			want, wantOrigins = 3<<20, []string{"https://flag.test"}
		}
		c := mustLoad(t, Serve, args, env, file)
		if c.MaxLag != want || !reflect.DeepEqual(c.CORS.Origins, wantOrigins) {
			t.Errorf("file %v, env %v, flag %v: got %v %q, want %v %q", inFile, inEnv, inFlag, c.MaxLag, c.CORS.Origins, want, wantOrigins)
		}
	}
}

// What a higher source overrides must be right too, or it would surprise on the
// day the override goes.
func TestOverriddenValuesAreChecked(t *testing.T) {
	for _, tc := range []struct{ args, env, file, want string }{
		{"--max-lag 1MiB", "TAILCAST_MAX_LAG=x", "", "TAILCAST_MAX_LAG: "},
		{"--max-lag 1MiB", "", "max-lag: x", "tailcast.yaml:1:10: "},
		{"--max-lag x --max-lag 1MiB", "", "", "--max-lag: "},
	} {
		_, err := load(t, Serve, "--route /e=e "+tc.args, tc.env, tc.file)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%+v: got %v", tc, err)
		}
	}
}

func TestConfigFileSetting(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a.yaml": "loops: 1\nroute: /e=e\n", "b.yaml": "loops: 2\nroute: /e=e\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args, env []string
		loops     int
		file      string
	}{
		{[]string{"--config", "a.yaml"}, nil, 1, "a.yaml"},
		{nil, []string{"TAILCAST_CONFIG=b.yaml"}, 2, "b.yaml"},
		{[]string{"--config=a.yaml"}, []string{"TAILCAST_CONFIG=b.yaml"}, 1, "a.yaml"},
		{[]string{"--config=a.yaml", "--config=b.yaml"}, nil, 2, "b.yaml"},
		{[]string{"--config=", "--route=/e=e"}, []string{"TAILCAST_CONFIG=b.yaml"}, 0, ""},
	} {
		c, err := Load(Serve, tc.args, tc.env)
		if err != nil {
			t.Fatal(err)
		}
		if c.Loops != tc.loops || c.File != tc.file {
			t.Errorf("%q %q: got loops %d from %q, want %d from %q", tc.args, tc.env, c.Loops, c.File, tc.loops, tc.file)
		}
	}
}

func TestLists(t *testing.T) {
	for _, tc := range []struct {
		args, env, file string
		want            string // brokers by blank
	}{
		{"--kafka-brokers a:1,b:2", "", "", "a:1 b:2"},
		{"--kafka-brokers a:1 --kafka-brokers b:2,c", "", "", "a:1 b:2 c:9092"},
		{"--kafka-brokers [::1]:9092,10.0.0.1", "", "", "[::1]:9092 10.0.0.1:9092"},
		{"", "TAILCAST_KAFKA_BROKERS=a:1,b:2", "", "a:1 b:2"},
		{"", "", "kafka-brokers: a:1, b:2", "a:1 b:2"},
		{"", "", "kafka-brokers: [a:1, b:2]", "a:1 b:2"},
		{"", "", "kafka-brokers:\n  - a:1\n  - b:2", "a:1 b:2"},
		{"--kafka-brokers a:1", "TAILCAST_KAFKA_BROKERS=b:2", "kafka-brokers: [c:3]", "a:1"},
	} {
		c := mustLoad(t, Serve, "--route /e=e "+tc.args, tc.env, tc.file)
		if got := strings.Join(c.Kafka.Brokers, " "); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

// Routes of the file come first; those of --route are added, whatever gave
// them.
func TestRoutesJoin(t *testing.T) {
	const file = "cors-origins: https://app.test\nroutes:\n  - {path: /a, topic: a, cors: {}}\n  - {path: /b, topic: b}\n"
	for _, tc := range []struct{ command, args, env, file, want string }{
		{Serve, "--route /c=c --route /d=d,/e=e", "", file, "/a=a /b=b+https://app.test /c=c+https://app.test /d=d+https://app.test /e=e+https://app.test"},
		{Serve, "", "TAILCAST_ROUTE=/c=c", file, "/a=a /b=b+https://app.test /c=c+https://app.test"},
		{Serve, "--route /d=d", "TAILCAST_ROUTE=/c=c", file, "/a=a /b=b+https://app.test /d=d+https://app.test"},
		{Serve, "", "", file, "/a=a /b=b+https://app.test"},
		{Serve, "", "", "route: [/a=a, /b=b]", "/a=a /b=b"},
		{Serve, "--route /a=b=c", "", "", "/a=b=c"},
		{Demonstrate, "", "", "", "/events=events"},
		{Demonstrate, "--topic ticks", "", "", "/events=ticks"},
		{Demonstrate, "--route /x=y", "", "", "/x=y"},
	} {
		c := mustLoad(t, tc.command, tc.args, tc.env, tc.file)
		var got []string
		for _, r := range c.Routes {
			s := r.Path + "=" + strings.Join(r.Topics, ",")
			if len(r.CORS.Origins) > 0 {
				s += "+" + strings.Join(r.CORS.Origins, ",")
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%+v:\n got %s", tc, s)
		}
	}
}

// What is in the environment of a container and is none of ours is let pass.
func TestForeignVariables(t *testing.T) {
	env := []string{
		"PATH=/bin", "TAILCASTX=1", "tailcast_max_lag=1", "TAILCAST=1", "NOEQUALS", "",
		"TAILCAST_KAFKA_LIBS=/opt/kafka/libs",
		"TAILCAST_MAX_LAG=", // empty: not set
		"TAILCAST_SERVICE_HOST=10.0.0.1", "TAILCAST_SERVICE_PORT=8080", "TAILCAST_SERVICE_PORT_HTTP=8080",
		"TAILCAST_PORT=tcp://10.0.0.1:8080", "TAILCAST_PORT_8080_TCP=tcp://10.0.0.1:8080", "TAILCAST_PORT_8080_TCP_PROTO=tcp",
		"TAILCAST_PORT_8080_TCP_PORT=8080", "TAILCAST_PORT_8080_TCP_ADDR=10.0.0.1",
		"TAILCAST_ADMIN_SERVICE_HOST=10.0.0.2", "TAILCAST_ADMIN_PORT=tcp://10.0.0.2:9090", "TAILCAST_ADMIN_PORT_9090_TCP_ADDR=10.0.0.2",
	}
	c, err := Load(Serve, []string{"--route=/e=e"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxLag != 4<<20 {
		t.Errorf("an empty variable set max-lag to %v", c.MaxLag)
	}
}

func TestHelpIsAsked(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"--route", "/e=e", "--help"}, {"--help", "--bogus"}} {
		if _, err := Load(Serve, args, nil); !errors.Is(err, ErrHelp) {
			t.Errorf("%q: got %v", args, err)
		}
	}
	if _, err := Load(Serve, []string{"--kafka-rack", "-h", "--route=/e=e"}, nil); err != nil {
		t.Errorf("a value was taken for a flag: %v", err)
	}
}

// Load keeps nothing between calls.
func TestLoadTwice(t *testing.T) {
	for range 2 {
		c, err := Load(Serve, []string{"--route", "/a=a", "--kafka-brokers", "x:1"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(len(c.Routes), c.Kafka.Brokers); got != "1 [x:1]" {
			t.Fatalf("got %s", got)
		}
	}
}
