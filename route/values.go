package route

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Refusal is why a request is not served: an answer that browsers take for
// final. It is an error.
type Refusal struct { //nolint:errname // it is an answer first
	Status int    // 400 for what the request lacks, 403 or 404
	Reason string // one line for the sender; holds nothing the sender did not know but the route's own names
	Claim  bool   // it is the token that lacks something, and another may have it (RFC 6750 3.1: insufficient_scope)
}

func (r *Refusal) Error() string { return r.Reason }

// Values are what the templates of a route may refer to in one request. It
// borrows the request: what is expanded from it is a copy.
type Values struct {
	Path   Params
	Query  []byte // raw, without the question mark
	Claims Claims // of the verified token; nil without one
}

// Claims are those of a verified token.
type Claims interface {
	// Lookup returns the texts of the claim at path: of a string, a number (as
	// the token spells it) or a boolean one, of an array of those as many as it
	// has. It is false for a claim that is missing, null, an object, or an
	// array that holds anything else.
	Lookup(path []string) ([]string, bool)
}

// param returns the value of a parameter, percent-decoded once: of the path if
// it is named there, else of the query.
func (v *Values) param(name string) (string, error) {
	if value, ok := v.Path.Get(name); ok {
		return string(value), nil
	}
	var found []byte
	n := 0
	for query := v.Query; len(query) > 0; {
		var pair []byte
		pair, query, _ = bytes.Cut(query, ampersand)
		key, value, _ := bytes.Cut(pair, equals)
		if key, ok := unescape(key, nil); ok && string(key) == name {
			found = value
			n++
		}
	}
	switch value, ok := unescape(found, nil); {
	case n > 1:
		return "", &Refusal{Status: 400, Reason: fmt.Sprintf("the query has parameter %q more than once", name)}
	case !ok:
		return "", &Refusal{Status: 400, Reason: fmt.Sprintf("parameter %q of the query has a broken escape", name)}
	case len(value) == 0:
		return "", &Refusal{Status: 400, Reason: fmt.Sprintf("the query has no parameter %q", name)}
	default:
		return string(value), nil
	}
}

// claim returns the values of a claim; at least one.
func (v *Values) claim(path []string) ([]string, error) {
	var texts []string
	if v.Claims != nil {
		texts, _ = v.Claims.Lookup(path)
	}
	if len(texts) == 0 || slices.Contains(texts, "") {
		return nil, &Refusal{Status: 403, Reason: fmt.Sprintf("the token has no claim %q", strings.Join(path, ".")), Claim: true}
	}
	return texts, nil
}

// ClaimText returns the text of a claim's value as encoding/json decodes it
// (json.Number included), if it is a scalar that is not null.
func ClaimText(value any) (string, bool) {
	switch x := value.(type) {
	case string:
		return x, true
	case bool:
		return strconv.FormatBool(x), true
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), true
	case fmt.Stringer: // json.Number: as the token spells it
		return x.String(), true
	}
	return "", false
}

// ClaimTexts is ClaimText for an array of scalars too.
func ClaimTexts(value any) ([]string, bool) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	texts := make([]string, 0, len(list))
	for _, x := range list {
		text, ok := ClaimText(x)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// ClaimMap is a token's claims as encoding/json decodes an object.
type ClaimMap map[string]any

// Lookup is that of Claims.
func (m ClaimMap) Lookup(path []string) ([]string, bool) {
	var value any = map[string]any(m)
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		value = object[name]
	}
	return ClaimTexts(value)
}

var _ Claims = ClaimMap(nil)
