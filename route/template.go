package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// nameBytesMax bounds the name of a parameter, as a URL's reader can take in.
	nameBytesMax = 64
	// valuesMax bounds what one template expands to: as many topics as an event
	// id can hold, and more memberships than a token should carry.
	valuesMax = 64
)

// Template is a text with references to a request: {name} is a parameter, of
// the route's path if that names it, else of the query; ${claims.a.b} is a
// claim of the verified token, a name with dots in it being quoted:
// ${claims."https://app.test/tenant"}. {{ and }} stand for braces. Fixed after
// ParseTemplate; the zero Template is the empty text.
type Template struct {
	text  string
	parts []part // alternating or not; no two literals in a row
}

// part is one piece of a template: a literal, unless param or claim is set.
type part struct {
	literal string
	param   string
	claim   []string
}

// ParseTemplate reads a template. The error is one line without the text.
func ParseTemplate(text string) (Template, error) {
	t := Template{text: text}
	var literal strings.Builder
	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			literal.WriteByte(rest[0])
			rest = rest[2:]
			continue
		case rest[0] == '}':
			return Template{}, errors.New("it has a } without {; }} stands for a brace")
		case rest[0] != '{' && (!strings.HasPrefix(rest, "${") || strings.HasPrefix(rest, "${{")):
			literal.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		p, after, err := parseReference(rest)
		if err != nil {
			return Template{}, err
		}
		t.parts = append(withLiteral(t.parts, &literal), p)
		rest = after
	}
	t.parts = withLiteral(t.parts, &literal)
	return t, nil
}

// withLiteral appends the literal that was read, if there is any, and begins the
// next.
func withLiteral(parts []part, b *strings.Builder) []part {
	if b.Len() == 0 {
		return parts
	}
	text := b.String()
	b.Reset()
	return append(parts, part{literal: text})
}

// parseReference reads the reference that text begins with.
func parseReference(text string) (p part, rest string, err error) {
	if body, ok := strings.CutPrefix(text, "${"); ok {
		p.claim, rest, err = parseClaim(body)
		return p, rest, err
	}
	name, rest, ok := strings.Cut(text[1:], "}")
	if !ok {
		return p, "", errors.New("it has a { without }; {{ stands for a brace")
	}
	if err := checkName(name); err != nil {
		return p, "", err
	}
	return part{param: name}, rest, nil
}

// checkName refuses what can't name a parameter.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it has {} without a name")
	case len(name) > nameBytesMax:
		return fmt.Errorf("the name of a parameter is longer than %d bytes", nameBytesMax)
	}
	for i, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '-'):
		default:
			return fmt.Errorf("{%s} does not name a parameter: use letters, digits, _ and -, first a letter or _", printable(name))
		}
	}
	return nil
}

// parseClaim reads what follows ${, through the closing brace.
func parseClaim(text string) (path []string, rest string, err error) {
	bad := errors.New(`a ${ is not followed by claims.NAME}, as in ${claims.sub} or ${claims."https://app.test/id"}`)
	rest, ok := strings.CutPrefix(text, "claims")
	for ok && strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		var name string
		if quoted, is := strings.CutPrefix(rest, `"`); is {
			name, rest, ok = strings.Cut(quoted, `"`)
		} else {
			end := strings.IndexAny(rest, `.}"{`)
			if end < 0 {
				return nil, "", bad
			}
			name, rest = rest[:end], rest[end:]
		}
		if name == "" {
			return nil, "", bad
		}
		path = append(path, name)
	}
	rest, closed := strings.CutPrefix(rest, "}")
	if !ok || !closed || len(path) == 0 {
		return nil, "", bad
	}
	return path, rest, nil
}

// String is the text that was parsed.
func (t Template) String() string { return t.text }

// Literal returns the one value of a template without references; false if it
// has any.
func (t Template) Literal() (string, bool) {
	switch {
	case len(t.parts) == 0:
		return "", true
	case len(t.parts) == 1 && t.parts[0].isLiteral():
		return t.parts[0].literal, true
	}
	return "", false
}

func (p *part) isLiteral() bool { return p.param == "" && p.claim == nil }

// Names returns the parameters that t refers to, each once.
func (t Template) Names() []string {
	var names []string
	for i := range t.parts {
		if name := t.parts[i].param; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Claims returns the claims that t refers to, as paths of names. They are t's own.
func (t Template) Claims() [][]string {
	var paths [][]string
	for i := range t.parts {
		if p := t.parts[i].claim; p != nil && !slices.ContainsFunc(paths, func(q []string) bool { return slices.Equal(p, q) }) {
			paths = append(paths, p)
		}
	}
	return paths
}

// Expand appends to dst what t stands for in a request: one text, or as many as
// the arrays hold that its claims are. What is missing, empty or ambiguous is a
// *Refusal, never an empty text in its place.
func (t Template) Expand(v *Values, dst []string) ([]string, error) {
	begin := len(dst)
	dst = append(dst, "")
	for i := range t.parts {
		p := &t.parts[i]
		texts, err := p.texts(v)
		if err != nil {
			return dst[:begin], err
		}
		heads := dst[begin:]
		if len(texts) == 1 {
			for k := range heads {
				heads[k] += texts[0]
			}
			continue
		}
		if len(heads)*len(texts) > valuesMax {
			return dst[:begin], &Refusal{Status: 403, Reason: fmt.Sprintf("%s stands for more than %d values", t.text, valuesMax)}
		}
		heads = slices.Clone(heads)
		dst = dst[:begin]
		for _, head := range heads {
			for _, text := range texts {
				dst = append(dst, head+text)
			}
		}
	}
	return dst, nil
}

// texts returns what p stands for; at least one text.
func (p *part) texts(v *Values) ([]string, error) {
	switch {
	case p.param != "":
		text, err := v.param(p.param)
		return []string{text}, err
	case p.claim != nil:
		return v.claim(p.claim)
	}
	return []string{p.literal}, nil
}

// printable returns text, quoted if it could break a line.
func printable(text string) string {
	for _, c := range text {
		if c < ' ' || c == 0x7F || c == '\uFFFD' || c >= 0x80 && c < 0xA0 {
			return fmt.Sprintf("%q", text)
		}
	}
	return text
}
