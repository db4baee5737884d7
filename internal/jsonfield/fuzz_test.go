package jsonfield

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLookup compares with encoding/json's tokens, and then checks that a
// document that is cut anywhere has the same field or none.
func FuzzLookup(f *testing.F) {
	f.Fuzz(func(t *testing.T, doc, dotted string, cut int) {
		path := strings.Split(dotted, ".")
		got, ok := Lookup([]byte(doc), path, nil)
		if !json.Valid([]byte(doc)) || !utf8.ValidString(doc) || nesting(doc) >= depthMax {
			return // only that it returns is asked
		}
		want, wantOK := reference(doc, path)
		if string(got) != want || ok != wantOK {
			t.Fatalf("%q in %q: got %q, %v, want %q, %v", path, doc, got, ok, want, wantOK)
		}
		if cut < 0 || cut > len(doc) {
			return
		}
		if part, partOK := Lookup([]byte(doc[:cut]), path, nil); partOK && (!ok || !bytes.Equal(part, got)) {
			t.Fatalf("%q in %q: got %q, %v, but %q when cut at %d", path, doc, got, ok, part, cut)
		}
	})
}

// nesting is at least how deep doc is nested.
func nesting(doc string) int {
	return strings.Count(doc, "{") + strings.Count(doc, "[")
}

// reference is Lookup on top of encoding/json. doc is valid.
func reference(doc string, path []string) (string, bool) {
	raw := json.RawMessage(doc)
	for _, step := range path {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if open, err := dec.Token(); err != nil || open != json.Delim('{') {
			return "", false
		}
		raw = nil
		for raw == nil && dec.More() {
			name, _ := dec.Token()
			var value json.RawMessage
			if err := dec.Decode(&value); err != nil {
				return "", false
			}
			if name == step {
				raw = value
			}
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return "", false
	}
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return string(raw), true
	}
	return "", false
}
