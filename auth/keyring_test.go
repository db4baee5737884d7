package auth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tailcast/internal/testkit"
)

// issuer is a server of keys that does what a test tells it to.
type issuer struct {
	URL string

	mu     sync.Mutex
	answer http.HandlerFunc
	asked  int
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{}
	s := httptest.NewServer(i)
	t.Cleanup(s.Close)
	i.URL = s.URL + "/jwks.json"
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if i.answer == nil {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	i.answer(w, r)
}

func (i *issuer) says(text string) {
	i.does(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
}

func (i *issuer) does(h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = h
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// remote returns a running node with a guard by the issuer's keys.
func remote(t testing.TB, i *issuer, p pace) (*Node, *Guard) {
	var g *Guard
	n, _ := node(t, Config{}, func(n *Node) {
		s := spec(t)
		s.Keys, s.JWKS = "", i.URL
		g = guardOf(t, n, s)
		n.rings[0].pace = p
	})
	return n, g
}

// checked is the verdict on a token, when it is there.
func checked(t testing.TB, g *Guard, token string) (*Token, *Refusal) {
	t.Helper()
	done := make(chan *Check, 1)
	c, known, refusal := g.Check([]byte(token), netip.MustParseAddr("10.0.0.1"), 0, func(c *Check) { done <- c })
	if c == nil {
		return known, refusal
	}
	select {
	case c = <-done:
		return c.Token, c.Refusal
	case <-time.After(20 * time.Second):
		t.Fatal("no verdict")
		return nil, nil
	}
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, what, cond)
}

func by(t testing.TB, kid string) string {
	return sign(t, jwt.SigningMethodEdDSA, keys().ed, claims{"kid": kid}, good(nil))
}

func setOf(kids ...string) string {
	var all []map[string]any
	for _, kid := range kids {
		all = append(all, jwk(public(keys().ed), claims{"kid": kid}))
	}
	return jwks(all...)
}

var fast = pace{refresh: time.Hour, ask: 10 * time.Millisecond, wait: 5 * time.Second}

// The issuer may be away at the start: what comes meanwhile waits a little, and
// is then asked to come back. The node says that it is not ready.
func TestKeysAtStart(t *testing.T) {
	i := newIssuer(t)
	n, g := remote(t, i, fast)
	if _, refusal := checked(t, g, by(t, "a")); refusal != errNoKeys {
		t.Errorf("without keys: %v", refusal)
	}
	if err := n.Ready(); err == nil || err.Error() != "guard: "+i.URL+": answered 503" {
		t.Errorf("ready: %v", err)
	}
	i.says(setOf("a"))
	eventually(t, "keys", func() bool { return n.Ready() == nil })
	if _, refusal := checked(t, g, by(t, "a")); refusal != nil {
		t.Errorf("with keys: %v", refusal)
	}
}

// A token by a key that is not known waits for the issuer to be asked again.
func TestKeyRotation(t *testing.T) {
	i := newIssuer(t)
	i.says(setOf("a"))
	n, g := remote(t, i, fast)
	eventually(t, "keys", func() bool { return n.Ready() == nil })
	first := by(t, "a")
	if _, refusal := checked(t, g, first); refusal != nil {
		t.Fatal(refusal)
	}
	if got, refusal := checked(t, g, first); refusal != nil || n.Stats().Tokens["known"] != 1 || got == nil {
		t.Errorf("again: %v, %v", refusal, n.Stats())
	}
	i.says(setOf("b"))
	if _, refusal := checked(t, g, by(t, "b")); refusal != nil {
		t.Errorf("the new key: %v", refusal)
	}
	// The old key is gone, and what was verified by it is not known any more.
	if _, refusal := checked(t, g, first); refusal != errUnknownKey {
		t.Errorf("the old key: %v", refusal)
	}
	// The same keys are the same: what was verified stays known.
	asked := i.count()
	if _, refusal := checked(t, g, by(t, "c")); refusal != errUnknownKey {
		t.Errorf("no key at all: %v", refusal)
	}
	known := n.Stats().Tokens["known"]
	if _, refusal := checked(t, g, by(t, "b")); refusal != nil || n.Stats().Tokens["known"] != known+1 || i.count() == asked {
		t.Errorf("after asking for nothing: %v", refusal)
	}
}

// A key that was withdrawn is known until the next refresh, whoever asks.
func TestKeysAreRefreshed(t *testing.T) {
	i := newIssuer(t)
	i.says(setOf("a"))
	n, g := remote(t, i, pace{refresh: 50 * time.Millisecond, ask: 10 * time.Millisecond, wait: 5 * time.Second})
	eventually(t, "keys", func() bool { return n.Ready() == nil })
	token := by(t, "a")
	if _, refusal := checked(t, g, token); refusal != nil {
		t.Fatal(refusal)
	}
	i.says(setOf("b"))
	eventually(t, "the withdrawn key to be unknown", func() bool {
		_, refusal := checked(t, g, token)
		return refusal == errUnknownKey
	})
}

// Tokens of keys that nobody has make the issuer asked at its pace, not at theirs.
func TestUnknownKeysAreRateLimited(t *testing.T) {
	i := newIssuer(t)
	i.says(setOf("a"))
	n, g := remote(t, i, pace{refresh: time.Hour, ask: 200 * time.Millisecond, wait: time.Second})
	eventually(t, "keys", func() bool { return n.Ready() == nil })
	begin := time.Now()
	var wg sync.WaitGroup
	for k := range 500 {
		wg.Go(func() {
			if _, refusal := checked(t, g, by(t, strconv.Itoa(k))); refusal != errUnknownKey {
				t.Error(refusal)
			}
		})
	}
	wg.Wait()
	if most := 2 + int(time.Since(begin)/(200*time.Millisecond)); i.count() > most {
		t.Errorf("asked %d times in %v", i.count(), time.Since(begin))
	}
}

// A token that comes while the issuer is asked is not judged by that answer
// alone, which may have been given before its key was there. It was, and a
// browser does not come back from a 401; tests had no issuer that took its time.
func TestKeyThatComesWhileAsked(t *testing.T) {
	i := newIssuer(t)
	i.says(setOf("a"))
	n, g := remote(t, i, fast)
	eventually(t, "keys", func() bool { return n.Ready() == nil })
	asked, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	i.does(func(w http.ResponseWriter, _ *http.Request) {
		set := setOf("a", "b")
		once.Do(func() {
			close(asked)
			<-answer
			set = setOf("a")
		})
		fmt.Fprint(w, set)
	})
	verdicts := map[string]chan *Refusal{"b": make(chan *Refusal, 1), "x": make(chan *Refusal, 1)}
	check := func(kid string) {
		token := by(t, kid)
		go func() {
			_, refusal := checked(t, g, token)
			verdicts[kid] <- refusal
		}()
	}
	check("x") // which has the issuer asked
	<-asked
	check("b")
	eventually(t, "both wait", func() bool { return n.rings[0].waiting() == 2 })
	close(answer)
	if refusal := <-verdicts["b"]; refusal != nil {
		t.Errorf("by the key that came: %v", refusal)
	}
	if refusal := <-verdicts["x"]; refusal != errUnknownKey {
		t.Errorf("by none: %v", refusal)
	}
}

// What an issuer may do wrong: the keys of before stay, and a token by an
// unknown key is not refused for good.
func TestBadIssuers(t *testing.T) {
	var elsewhere string
	for name, bad := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusInternalServerError) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no keys":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, jwks()) },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, setOf("b")+strings.Repeat(" ", keysBytesMax))
		},
		"a redirect away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://issuer.test/", http.StatusFound)
		},
		"a circle": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) },
		"slow":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cut off":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			elsewhere = i.URL
			i.says(setOf("a"))
			n, g := remote(t, i, pace{refresh: time.Hour, ask: time.Nanosecond, wait: 300 * time.Millisecond})
			eventually(t, "keys", func() bool { return n.Ready() == nil })
			i.does(bad)
			if _, refusal := checked(t, g, by(t, "b")); refusal != errNoKeys {
				t.Errorf("an unknown key: %v", refusal)
			}
			if _, refusal := checked(t, g, by(t, "a")); refusal != nil {
				t.Errorf("the known key: %v", refusal)
			}
			if err := n.Ready(); err != nil {
				t.Errorf("ready: %v", err)
			}
		})
	}
}

// Guards of equal specs share what is costly.
func TestGuardsShare(t *testing.T) {
	i := newIssuer(t)
	n := NewNode(Config{})
	a, b := spec(t), spec(t)
	a.Keys, a.JWKS, b.Keys, b.JWKS = "", i.URL, "", i.URL
	b.Roles, b.Sources = []string{"read"}, []Source{Query}
	if guardOf(t, n, a).verifier != guardOf(t, n, b).verifier {
		t.Error("roles and sources make another verifier")
	}
	b.Audience = []string{"others"}
	if v := guardOf(t, n, b).verifier; v == guardOf(t, n, a).verifier || v.keys != guardOf(t, n, a).verifier.keys || len(n.rings) != 1 {
		t.Error("another audience needs a verifier of its own, with the same keys")
	}
}
