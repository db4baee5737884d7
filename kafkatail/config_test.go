package kafkatail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write puts text into a new file and returns its path.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every mistake is answered with the flag that says it and what is wrong.
func TestValidate(t *testing.T) {
	password := write(t, "password", "secret\n")
	empty := write(t, "empty", "\r\n")
	long := write(t, "long", strings.Repeat("x", passwordBytesMax+1))
	none := filepath.Join(t.TempDir(), "none")
	ca := newCA(t)
	cert, key := ca.issue(t, "client")

	for _, tc := range []struct {
		name string
		cfg  Config
		want string // prefix of the error; empty: none
	}{
		{"nothing set", Config{}, ""},
		{"several brokers", Config{Brokers: []string{"a:9092", "b", "[::1]:9093"}}, ""},
		{"empty address", Config{Brokers: []string{"a:9092", ""}}, `--kafka-brokers: an address is empty`},
		{"no host", Config{Brokers: []string{":9092"}}, `--kafka-brokers: ":9092" has no host`},
		{"port 0", Config{Brokers: []string{"a:0"}}, `--kafka-brokers: "a:0" has no port between 1 and 65535`},
		{"port too high", Config{Brokers: []string{"a:65536"}}, `--kafka-brokers: "a:65536" has no port between 1 and 65535`},
		{"port in words", Config{Brokers: []string{"a:kafka"}}, `--kafka-brokers: "a:kafka" has no port between 1 and 65535`},
		{"a URL", Config{Brokers: []string{"kafka://a:9092"}}, `--kafka-brokers: "kafka://a:9092" is a URL, not host:port`},
		{"two in one", Config{Brokers: []string{"a:1,b:2"}}, `--kafka-brokers: "a:1,b:2" holds a blank or a comma`},
		{"bare IPv6", Config{Brokers: []string{"::1"}}, `--kafka-brokers: "::1" is not host:port`},
		{"isolation", Config{Isolation: ReadUncommitted}, ""},
		{"unknown isolation", Config{Isolation: "committed"}, `--kafka-isolation: "committed" is neither`},

		{"SASL", Config{SASL: SASL{"PLAIN", "u", password}}, ""},
		{"unknown mechanism", Config{SASL: SASL{"scram", "u", password}}, `--kafka-sasl-mechanism: "scram" is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512`},
		{"no user", Config{SASL: SASL{"PLAIN", "", password}}, `--kafka-sasl-username: missing`},
		{"no password", Config{SASL: SASL{"PLAIN", "u", ""}}, `--kafka-sasl-password-file: missing`},
		{"no such file", Config{SASL: SASL{"PLAIN", "u", none}}, `--kafka-sasl-password-file: open ` + none},
		{"empty password", Config{SASL: SASL{"PLAIN", "u", empty}}, `--kafka-sasl-password-file: ` + empty + `: is empty`},
		{"no password but a book", Config{SASL: SASL{"PLAIN", "u", long}}, `--kafka-sasl-password-file: ` + long + `: holds more than`},
		{"user without mechanism", Config{SASL: SASL{"", "u", ""}}, `--kafka-sasl-username: needs --kafka-sasl-mechanism`},
		{"password without mechanism", Config{SASL: SASL{"", "", password}}, `--kafka-sasl-password-file: needs --kafka-sasl-mechanism`},

		{"TLS", Config{TLS: TLS{On: true}}, ""},
		{"TLS with all", Config{TLS: TLS{On: true, CA: ca.file, Cert: cert, Key: key, ServerName: "x"}}, ""},
		{"CA without TLS", Config{TLS: TLS{CA: ca.file}}, `--kafka-tls-ca: needs --kafka-tls`},
		{"cert without TLS", Config{TLS: TLS{Cert: cert}}, `--kafka-tls-cert: needs --kafka-tls`},
		{"key without TLS", Config{TLS: TLS{Key: key}}, `--kafka-tls-key: needs --kafka-tls`},
		{"name without TLS", Config{TLS: TLS{ServerName: "x"}}, `--kafka-tls-server-name: needs --kafka-tls`},
		{"insecure without TLS", Config{TLS: TLS{InsecureSkipVerify: true}}, `--kafka-tls-insecure-skip-verify: needs --kafka-tls`},
		{"no such CA", Config{TLS: TLS{On: true, CA: none}}, `--kafka-tls-ca: open ` + none},
		{"CA without certificates", Config{TLS: TLS{On: true, CA: password}}, `--kafka-tls-ca: ` + password + `: holds no PEM certificate`},
		{"cert without key", Config{TLS: TLS{On: true, Cert: cert}}, `--kafka-tls-cert: needs --kafka-tls-key`},
		{"key without cert", Config{TLS: TLS{On: true, Key: key}}, `--kafka-tls-key: needs --kafka-tls-cert`},
		{"key that is none", Config{TLS: TLS{On: true, Cert: cert, Key: ca.file}}, `--kafka-tls-cert: `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.cfg.Validate()
			switch {
			case err == nil && tc.want != "":
				t.Errorf("no error, want %s", tc.want)
			case err != nil && (tc.want == "" || !strings.HasPrefix(err.Error(), tc.want)):
				t.Errorf("%v, want %s", err, tc.want)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	got := Config{Timing: Timing{Confirm: time.Minute}}.defaults()
	if got.Brokers[0] != "127.0.0.1:9092" || got.Isolation != ReadCommitted || got.ClientID != "tailcast" {
		t.Errorf("%+v", got)
	}
	if got.Timing.Confirm != time.Minute || got.Timing.Look != 3*time.Second || got.Timing.FetchWait != 500*time.Millisecond {
		t.Errorf("%+v", got.Timing)
	}
}
