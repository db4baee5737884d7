package jsonfield

import (
	"bytes"
	"encoding/json"
	"slices"
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
	raw, ok := rawAt(doc, path)
	if !ok {
		return "", false
	}
	return scalarText(raw)
}

// rawAt returns the value at path.
func rawAt(doc string, path []string) (json.RawMessage, bool) {
	raw := json.RawMessage(doc)
	for _, step := range path {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if open, err := dec.Token(); err != nil || open != json.Delim('{') {
			return nil, false
		}
		raw = nil
		for raw == nil && dec.More() {
			name, _ := dec.Token()
			var value json.RawMessage
			if err := dec.Decode(&value); err != nil {
				return nil, false
			}
			if name == step {
				raw = value
			}
		}
	}
	return raw, len(raw) > 0
}

// scalarText is the text of a scalar that is not null.
func scalarText(raw json.RawMessage) (string, bool) {
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

// FuzzEach compares with encoding/json, and then checks that a document that is
// cut anywhere has as many of the elements as come before.
func FuzzEach(f *testing.F) {
	f.Fuzz(func(t *testing.T, doc, dotted string, cut int) {
		path := strings.Split(dotted, ".")
		each := func(doc string) (all []string) {
			Each([]byte(doc), path, nil, func(v []byte) { all = append(all, string(v)) })
			return all
		}
		got := each(doc)
		if !json.Valid([]byte(doc)) || !utf8.ValidString(doc) || nesting(doc) >= depthMax {
			return // only that it returns is asked
		}
		want := referenceEach(doc, path)
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %q: got %q, want %q", path, doc, got, want)
		}
		if cut < 0 || cut > len(doc) {
			return
		}
		if part := each(doc[:cut]); len(part) > len(got) || !slices.Equal(part, got[:len(part)]) {
			t.Fatalf("%q in %q: got %q, but %q when cut at %d", path, doc, got, part, cut)
		}
	})
}

// referenceEach is Each on top of encoding/json. doc is valid.
func referenceEach(doc string, path []string) (all []string) {
	raw, ok := rawAt(doc, path)
	if !ok {
		return nil
	}
	elements := []json.RawMessage{raw}
	if raw[0] == '[' {
		if json.Unmarshal(raw, &elements) != nil {
			return nil
		}
	}
	for _, e := range elements {
		if text, ok := scalarText(e); ok {
			all = append(all, text)
		}
	}
	return all
}
