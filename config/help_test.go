package config

import (
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	for _, command := range []string{Serve, Check, Demonstrate} {
		text := Help(command)
		if !strings.Contains(text, "\nUsage: tailcast "+command+" [flags]\n") || !strings.HasSuffix(text, "\n") {
			t.Errorf("%s: no usage line:\n%s", command, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if len(line) > 100 || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: a line of %d bytes: %q", command, len(line), line)
			}
		}
		for _, s := range settings(&Config{}) {
			if got, want := strings.Contains(text, "\n  --"+s.name+" ") || strings.Contains(text, "\n  --"+s.name+"\n"), s.reach.has(command); got != want {
				t.Errorf("%s: --%s is listed: %v, want %v", command, s.name, got, want)
			}
		}
	}
}

func TestHelpLines(t *testing.T) {
	text := Help(Serve)
	for _, line := range []string{
		"  --max-lag SIZE                      a live stream is dropped when it is further than this behind\n" +
			"                                      where its feed was 5 s ago (default 4MiB)\n",
		"  --loops N                           event loops (default GOMAXPROCS)\n",
		"  --kafka-tls                         dial brokers by TLS\n",
		"  --kafka-isolation read_committed|read_uncommitted\n" +
			"                                      whether records of open and aborted transactions are left out\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no line\n%s in\n%s", line, text)
		}
	}
}

// The table is in the form that help and the documentation count on.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings(&Config{}) {
		if seen[s.name] || s.name != strings.ToLower(s.name) || strings.ContainsAny(s.name, "_= ") {
			t.Errorf("--%s: twice, or no flag's name", s.name)
		}
		seen[s.name] = true
		if s.group == "" || s.help == "" || strings.HasSuffix(s.help, ".") || strings.Contains(s.help, "\n") {
			t.Errorf("--%s: help %q in group %q", s.name, s.help, s.group)
		}
		if s.value.add == nil || s.value.clear == nil {
			t.Errorf("--%s: has no value", s.name)
		}
	}
}
