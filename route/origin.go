package route

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CheckOrigin says whether origin can be listed: an origin as browsers send it
// ("https://app.test", RFC 6454 6.1), one with a wildcard for any depth of
// subdomain ("https://*.app.test"), "null" (sandboxed frames and files), or "*".
func CheckOrigin(origin string) error {
	if origin == "*" || origin == "null" {
		return nil
	}
	if err := checkTuple(origin); err != nil {
		return fmt.Errorf("%s is not an origin: %w (use https://app.test, https://*.app.test, null or *)", quote(origin), err)
	}
	return nil
}

// checkTuple checks scheme://host[:port], where the host may begin with "*.".
func checkTuple(origin string) error {
	scheme, rest, ok := strings.Cut(origin, "://")
	switch {
	case !ok:
		return errors.New("it has no scheme")
	case strings.ToLower(origin) != origin:
		return errors.New("browsers send lower case")
	case !isScheme(scheme):
		return errors.New("its scheme is not one")
	case strings.ContainsAny(rest, "/?#"):
		return errors.New("it ends before the path")
	case strings.Contains(rest, "@"):
		return errors.New("it holds no user")
	}
	host, port, err := cutPort(rest)
	if err != nil {
		return err
	}
	if scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return errors.New("browsers leave the default port out")
	}
	return checkHost(host)
}

// cutPort splits host and port; the port is empty when there is none.
func cutPort(hostport string) (host, port string, err error) {
	colon := strings.LastIndexByte(hostport, ':')
	if colon < 0 || strings.HasSuffix(hostport, "]") {
		return hostport, "", nil
	}
	host, port = hostport[:colon], hostport[colon+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return "", "", errors.New("its port is not 1 to 65535")
	}
	return host, port, nil
}

func checkHost(host string) error {
	if v6, ok := strings.CutPrefix(host, "["); ok {
		v6, ok = strings.CutSuffix(v6, "]")
		if !ok || v6 == "" || strings.Trim(v6, "0123456789abcdef:.") != "" {
			return errors.New("its address is not one")
		}
		return nil
	}
	name := strings.TrimPrefix(host, "*.")
	switch {
	case name == "":
		return errors.New("it has no host")
	case strings.Contains(name, "*"):
		return errors.New("* may only stand before the first dot, for subdomains")
	case !isASCII(name):
		return errors.New("browsers send other alphabets as punycode (xn--...)")
	case !isName(name):
		return errors.New("its host is not one")
	}
	return nil
}

func isScheme(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// isName reports whether s is dot-separated labels of a host name, none empty.
// It decides what a wildcard may stand for, so it lets through nothing that
// could end a host: no slash, at, colon, blank or control byte.
func isName[T string | []byte](s T) bool {
	last := byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		case c == '.' && last != '.':
		default:
			return false
		}
		last = c
	}
	return last != '.'
}

// quote is %q on one line of bounded length.
func quote(s string) string {
	const most = 80 // longer than any origin worth reading back
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
