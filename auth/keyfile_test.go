package auth

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tailcast/internal/testkit"
)

// keyFileTest is a guard by a file of keys, whose node looks at it.
type keyFileTest struct {
	t    *testing.T
	g    *Guard
	path string
	log  testkit.Output
	said int // bytes of log, in the steps before
}

func newKeyFileTest(t *testing.T, s Spec) *keyFileTest {
	t.Helper()
	k := &keyFileTest{t: t, path: s.Keys}
	n := NewNode(Config{Log: slog.New(slog.NewTextHandler(&k.log, nil))})
	n.now = (&clock{at: began}).now
	k.g = guardOf(t, n, s)
	s.Audience = []string{"others"}
	if guardOf(t, n, s); len(n.files) != 1 {
		t.Errorf("one file is read as %d", len(n.files))
	}
	go watch(t.Context(), n.files)
	return k
}

// replace puts another file into the place of the one there was.
func (k *keyFileTest) replace(text string) {
	k.t.Helper()
	if err := os.Rename(write(k.t, text), k.path); err != nil {
		k.t.Fatal(err)
	}
}

// later lets some looks pass, and checks what was logged meanwhile: want, once.
func (k *keyFileTest) later(step, want string) {
	k.t.Helper()
	time.Sleep(3*lookEvery + time.Second) //nolint:forbidigo // of the synctest bubble: no time passes, and every look that is due is taken
	synctest.Wait()
	got := k.log.String()[k.said:]
	k.said += len(got)
	lines := strings.Count(got, "\n")
	if (want != "" || lines != 0) && (lines != 1 || !strings.Contains(got, want)) {
		k.t.Errorf("%s: logged %q, want %q once", step, got, want)
	}
}

// takes checks which tokens are right.
func (k *keyFileTest) takes(step string, right, wrong []string) {
	k.t.Helper()
	for _, token := range right {
		if _, refusal := k.g.verifier.verify(token); refusal != nil {
			k.t.Errorf("%s: a right token: %s", step, refusal.Reason)
		}
		if k.g.verifier.known([]byte(token)) == nil {
			k.t.Errorf("%s: a right token is not remembered", step)
		}
	}
	for _, token := range wrong {
		if _, refusal := k.g.verifier.verify(token); refusal == nil || k.g.verifier.known([]byte(token)) != nil {
			k.t.Errorf("%s: a wrong token is taken", step)
		}
	}
}

// TestFileOfKeys: a file that changes is taken, whole or not at all, every change
// is said once, and what was verified by keys of before is verified anew.
func TestFileOfKeys(t *testing.T) {
	keys := keys()
	synctest.Test(t, func(t *testing.T) {
		k := newKeyFileTest(t, spec(t))
		first := sign(t, jwt.SigningMethodRS256, keys.rsa, nil, good(nil))
		second := sign(t, jwt.SigningMethodRS256, keys.rsa2, nil, good(nil))
		ofFirst, ofSecond := []string{first}, []string{second}

		k.takes("at the start", ofFirst, ofSecond)
		k.later("unchanged", "")
		if k.g.verifier.known([]byte(first)) == nil {
			t.Error("unchanged: what was verified is forgotten")
		}
		k.replace("hello")
		k.later("broken", "a guard's keys are kept as they were")
		k.takes("broken", ofFirst, ofSecond)
		k.replace(pemOf(t, public(keys.rsa2)))
		k.later("another key", "a guard's keys read again")
		k.takes("another key", ofSecond, ofFirst)
		if err := os.Remove(k.path); err != nil {
			t.Fatal(err)
		}
		k.later("gone", "no such file")
		k.takes("gone", ofSecond, ofFirst)
		k.replace(pemOf(t, public(keys.rsa2)))
		k.later("there again", "a guard's keys read again")
		k.replace(pemOf(t, public(keys.weak)))
		k.later("weak", "an RSA key of 1024 bits")
		k.takes("weak", ofSecond, ofFirst)
		k.replace(jwks(jwk(public(keys.rsa), nil), jwk(public(keys.rsa2), nil)))
		k.later("both", "keys=2")
		k.takes("both", []string{first, second}, nil)
	})
}

// TestFileOfASecret: the same of what HS algorithms share.
func TestFileOfASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := [][]byte{[]byte(strings.Repeat("a", 32)), []byte(strings.Repeat("b", 32))}
		var tokens []string
		for _, secret := range secrets {
			tokens = append(tokens, sign(t, jwt.SigningMethodHS256, secret, nil, good(nil)))
		}
		s := spec(t)
		s.Algorithms, s.Keys = []string{"HS256"}, write(t, string(secrets[0])+"\n")
		k := newKeyFileTest(t, s)
		k.takes("at the start", tokens[:1], tokens[1:])
		k.replace(string(secrets[1])[:20])
		k.later("short", "a secret shorter than 32 bytes")
		k.takes("short", tokens[:1], tokens[1:])
		k.replace(string(secrets[1]))
		k.later("another", "a guard's keys read again")
		k.takes("another", tokens[1:], tokens[:1])
		if log := k.log.String(); strings.Contains(log, "bbbb") {
			t.Errorf("a secret is in the log: %s", log)
		}
	})
}
