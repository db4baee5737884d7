package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Spec is what a guard asks of tokens.
type Spec struct {
	Issuer     string   // iss, exactly
	Audience   []string // aud holds one of them
	Roles      []string // the claim at RolesClaim holds all of them
	RolesClaim []string // path of names

	Keys       string   // file of keys, or
	JWKS       string   // URL of a JWK Set
	Algorithms []string // none: those of public keys
	Leeway     time.Duration

	Sources []Source // first to last
	Cookie  string   // name, for the source of that kind
}

// Check says what is wrong with a spec, in one line; not whether its keys are
// there. Where none are named they are at the issuer's usual place.
func (s *Spec) Check() error {
	secret, err := secretOf(s.Algorithms)
	switch {
	case err != nil:
		return err
	case s.Issuer == "":
		return errors.New("needs the issuer of tokens")
	case len(s.Audience) == 0:
		return errors.New("needs the audience of tokens: without one, a token for any other service would do")
	case s.Keys != "" && s.JWKS != "":
		return errors.New("has keys and jwks; use one")
	case secret && s.Keys == "":
		return errors.New("HS algorithms need a file of keys: a secret is not published")
	case slices.Contains(s.Sources, Cookie) != (s.Cookie != ""):
		return errors.New("the source cookie and the name of the cookie need each other")
	case s.Keys != "":
		return nil
	case s.JWKS == "":
		s.JWKS = strings.TrimSuffix(s.Issuer, "/") + "/.well-known/jwks.json"
		if CheckURL(s.JWKS) != nil {
			return errors.New("needs keys or jwks: the issuer is no https URL to find its keys by")
		}
	}
	return CheckURL(s.JWKS)
}

// The algorithms that a guard accepts unless it names some: those of public keys.
// The secret ones have to be named, and exclude the others (RFC 8725 2.1, 3.1).
var (
	publicAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	secretAlgorithms = []string{"HS256", "HS384", "HS512"}
)

// secretOf reports whether algorithms are those of a shared secret.
func secretOf(algorithms []string) (bool, error) {
	secret := 0
	for _, a := range algorithms {
		switch {
		case slices.Contains(secretAlgorithms, a):
			secret++
		case !slices.Contains(publicAlgorithms, a):
			return false, fmt.Errorf("%q is not an algorithm (use %s)", a, strings.Join(slices.Concat(publicAlgorithms, secretAlgorithms), ", "))
		}
	}
	if secret > 0 && secret < len(algorithms) {
		return false, errors.New("HS algorithms exclude the others: a public key could be taken for their secret")
	}
	return secret > 0, nil
}

// CheckURL refuses addresses whose answers anyone on the way could forge:
// what is not https must be on this machine.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("not a URL like https://issuer.test/jwks.json")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	loopback := err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return errors.New("not https; plain http is for loopback addresses")
	}
	return nil
}

// CheckName refuses what can't be the name of a node: it stands in a header.
func CheckName(name string) error {
	if name == "" || len(name) > nameBytesMax || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return errors.New("a node's name is 1 to 64 letters, digits, dots, dashes and underscores")
	}
	return nil
}

// nameBytesMax bounds the name of a node: that of a host fits.
const nameBytesMax = 64

// CheckPeer refuses what can't be the URL of a peer.
func CheckPeer(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("a peer's URL is like http://10.0.0.7:8080")
	}
	return nil
}
