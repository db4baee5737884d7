package route

import (
	"errors"
	"strings"
)

// ParseHost returns a host as Route has it: in lower case and without a dot at
// the end. The error is one line without the text.
func ParseHost(text string) (string, error) {
	host := strings.ToLower(text)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || strings.Count(inner, ":") < 2 || strings.Trim(inner, "0123456789abcdef:.") != "" {
			return "", errors.New("it is not an IPv6 address in brackets, without its port")
		}
		return host, nil
	}
	host = strings.TrimSuffix(host, ".") // which names the same host
	switch {
	case host == "":
		return "", errors.New("it is empty")
	case len(host) > hostBytesMax-2:
		return "", errors.New("it is longer than a host's name can be")
	case strings.Contains(host, ":"):
		return "", errors.New("it is compared without its port, and an IPv6 address stands in brackets")
	case strings.Contains(host, "*"):
		return "", errors.New("hosts are exact, without wildcards")
	case strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" || strings.Contains(host, "..") || strings.HasSuffix(host, ".") || host[0] == '.':
		return "", errors.New("it is not the name of one; other alphabets are written as punycode")
	}
	return host, nil
}
