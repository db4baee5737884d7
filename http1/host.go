package http1

import "bytes"

// SplitHost cuts a valid Host value into the name as it came, an IPv6 address
// in its brackets, and the port, empty for the scheme's own. Both alias host.
func SplitHost(host []byte) (name, port []byte) {
	i := bytes.LastIndexByte(host, ':')
	if i < 0 || host[len(host)-1] == ']' {
		return host, nil
	}
	return host[:i], host[i+1:]
}

// validHost reports whether h is a name or an address, and maybe a port (RFC
// 3986 section 3.2). Narrower than the RFC, whose names may hold commas and
// escapes: browsers send letters, digits and -._~ only, and a list of hosts
// must not pass for one.
func validHost(h []byte) bool {
	name, port := SplitHost(h)
	if len(port) > 5 {
		return false
	}
	n := 0
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
		n = n*10 + int(c-'0')
	}
	if n > 65535 || len(name) == 0 {
		return false
	}
	if name[0] == '[' {
		return validIPv6(name)
	}
	return all(name, isHost)
}

// validIPv6 reports whether h can be an IPv6 address in brackets. The groups
// are not counted: the value is only ever compared with names. A zone means
// something on the client's machine alone and is refused.
func validIPv6(h []byte) bool {
	if len(h) < len("[::]") || h[len(h)-1] != ']' {
		return false
	}
	colons := 0
	for _, c := range h[1 : len(h)-1] {
		switch {
		case c == ':':
			colons++
		case c != '.' && class[c]&isHex == 0:
			return false
		}
	}
	return colons >= 2
}
