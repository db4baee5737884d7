//go:build clients

package apptest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tailcast/internal/testkit"
)

// TestClientsRenewal runs docs/renewal.sh, where curl reads a stream with tokens
// of 30 seconds: it is challenged after about 20, goes on with a new one beyond
// the end of the first, and ends with the second.
func TestClientsRenewal(t *testing.T) {
	need(t, "curl", "apt-get install curl")
	need(t, "openssl", "apt-get install openssl")
	need(t, "python3", "apt-get install python3")
	cmd := exec.CommandContext(t.Context(), "../docs/renewal.sh")
	cmd.Env = append(os.Environ(), "TAILCAST="+testkit.Build(t, "tailcast/cmd/tailcast"))
	for _, name := range []string{"PORT", "ISSUER_PORT", "ADMIN_PORT", "BROKER_PORT"} {
		_, port, _ := strings.Cut(testkit.FreeAddr(t), ":")
		cmd.Env = append(cmd.Env, name+"="+port)
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("\n%s", text)
	out := string(text)
	if n := strings.Count(out, "event: challenge"); n != 2 {
		t.Errorf("%d challenges, want 2", n)
	}
	for _, want := range []struct {
		pattern  string
		from, to int // seconds
	}{
		{`HTTP/1\.1 200 OK`, 0, 5},
		{`data: \{"p":`, 0, 5},
		{`event: challenge`, 18, 24},
		{`data: \{"method":"POST","headers":\{"content-type":"application/x-challenge-response","x-challenge":"[^"]+"\}\}`, 18, 24},
		{`\(a new token is posted: 204\)`, 18, 25},
		{`data: \{"p":`, 31, 45}, // the first token has ended
		{`event: challenge`, 38, 48},
		{`\(no answer this time\)`, 38, 48},
		{`the stream has ended`, 48, 58},
	} {
		line := regexp.MustCompile(`(?m)^ *(\d+) s  ` + want.pattern + `.*\n`)
		for second := -1; second < want.from || second > want.to; {
			at := line.FindStringSubmatchIndex(out)
			if at == nil {
				t.Fatalf("no %s between %d and %d s, behind what comes before", want.pattern, want.from, want.to)
			}
			second, _ = strconv.Atoi(out[at[2]:at[3]])
			out = out[at[1]:]
		}
	}
	if strings.TrimSpace(out) != "" {
		t.Error(fmt.Sprint("behind the end: ", out))
	}
}
