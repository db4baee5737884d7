package http1

import "bytes"

// requestLine reads METHOD SP TARGET SP VERSION (RFC 9112 section 3), nothing
// more and nothing less between them. at is where line starts in the head.
func (p *Parser) requestLine(line []byte, at int) error {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return errRequestLine // also HTTP/0.9, which has no version
	}
	if !all(method, isToken) {
		return errMethod
	}
	p.method = methodOf(method) // of what is refused below, too
	p.methodName = span{at, at + len(method)}
	if err := p.version(version); err != nil {
		return err
	}
	if string(method) == "CONNECT" {
		return errConnect
	}
	return p.target(target, at+len(method)+1)
}

func methodOf(name []byte) Method {
	switch string(name) {
	case "GET":
		return MethodGet
	case "HEAD":
		return MethodHead
	case "OPTIONS":
		return MethodOptions
	case "POST":
		return MethodPost
	}
	return MethodOther
}

// version reads HTTP/1.x: one digit, a dot, one digit, upper case. A minor
// version that is not there yet is read as 1.1, which it has to be compatible
// with (RFC 9110 section 2.5).
func (p *Parser) version(v []byte) error {
	if len(v) != len("HTTP/1.1") || string(v[:5]) != "HTTP/" || v[6] != '.' ||
		v[5] < '0' || v[5] > '9' || v[7] < '0' || v[7] > '9' {
		return errVersion
	}
	if v[5] != '1' {
		return errVersionHigh // also the preface of HTTP/2
	}
	p.minor = min(v[7]-'0', 1)
	return nil
}

// target reads the request target. Escapes are not looked at here: a broken
// one is the path's or the pair's own affair.
func (p *Parser) target(t []byte, at int) error {
	switch {
	case len(t) == 0:
		return errRequestLine
	case !all(t, isTarget):
		return errTarget
	case t[0] == '/':
		p.pathAndQuery(t, at)
		return nil
	case len(t) == 1 && t[0] == '*':
		if p.method != MethodOptions {
			return errAsterisk
		}
		p.form = FormAsterisk
		return nil
	}
	return p.absolute(t, at)
}

// absolute reads an absolute-form target. Its authority wins over the Host
// field (RFC 9112 section 3.2.2). Both schemes are taken, since TLS may have
// ended before us.
func (p *Parser) absolute(t []byte, at int) error {
	i := bytes.IndexByte(t, ':')
	if i < 0 || !equalFold(t[:i], "http") && !equalFold(t[:i], "https") || !bytes.HasPrefix(t[i:], []byte("://")) {
		return errTargetForm
	}
	slash := i + 1
	start := i + len("://")
	end := start
	for end < len(t) && t[end] != '/' && t[end] != '?' {
		end++
	}
	if !validHost(t[start:end]) {
		return errAuthority
	}
	p.form = FormAbsolute
	p.authority = span{at + start, at + end}
	switch {
	case end == len(t) && p.method == MethodOptions:
		p.form = FormAsterisk // RFC 9112 section 3.2.4
	case end == len(t) || t[end] == '?':
		// An empty path is "/" (RFC 9110 section 4.2.3); this one is at hand.
		p.path = span{at + slash, at + slash + 1}
		p.query = span{at + min(end+1, len(t)), at + len(t)}
	default:
		p.pathAndQuery(t[end:], at+end)
	}
	return nil
}

// pathAndQuery cuts t, which starts with a slash, at its question mark.
func (p *Parser) pathAndQuery(t []byte, at int) {
	i := bytes.IndexByte(t, '?')
	if i < 0 {
		p.path = span{at, at + len(t)}
		return
	}
	p.path = span{at, at + i}
	p.query = span{at + i + 1, at + len(t)}
}
