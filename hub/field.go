package hub

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"tailcast/frame"
	"tailcast/internal/jsonfield"
)

const (
	// fieldsMax bounds the fields of a feed, each of which is looked for in
	// every record; their numbers are bytes.
	fieldsMax = 64
	// ValueBytesMax bounds the values that filters compare: a request head
	// holds some of them, and identifiers are far shorter. A record's longer
	// value equals none.
	ValueBytesMax = 1024
	// jsonBytesMax is how far into a value fields are looked for, as for names
	// of events.
	jsonBytesMax = 64 << 10
)

// FieldKind is where in a record a field is.
type FieldKind uint8

// The kinds of fields.
const (
	KeyField    FieldKind = iota // the key; a null one has no value
	HeaderField                  // every header of the name, but null ones
	JSONField                    // the scalar at the path in the value, or the scalars of an array there
)

// Field is a part of records that filters compare.
type Field struct {
	Kind FieldKind
	Name string // of the header; names of JSON fields, joined by dots; empty for the key
}

func (f Field) String() string {
	switch f.Kind {
	case HeaderField:
		return "headers." + f.Name
	case JSONField:
		return "json." + f.Name
	case KeyField:
	}
	return "key"
}

// fieldSet are the fields of a feed; a field's place is its number. The set is
// never changed, only replaced by one that begins with it.
type fieldSet []Field

// with returns the set with more fields, and whether any of them is new.
func (s fieldSet) with(more []Field) (fieldSet, bool, error) {
	all := slices.Clone(s)
	for _, f := range more {
		if slices.Contains(all, f) {
			continue
		}
		if len(all) == fieldsMax {
			return s, false, fmt.Errorf("filter: the routes of one feed compare more than %d fields", fieldsMax)
		}
		if f.Kind == JSONField && slices.Contains(strings.Split(f.Name, "."), "") {
			return s, false, fmt.Errorf("filter: json: %q has an empty step", f.Name)
		}
		all = append(all, f)
	}
	return all, len(all) > len(s), nil
}

// labeler finds the values of a feed's fields in records. One goroutine at a
// time.
type labeler struct {
	fields  fieldSet
	paths   [][]string // of the JSON fields, by number
	scratch []byte     // a JSON string without its escapes
}

func newLabeler(fields fieldSet) *labeler {
	lb := &labeler{fields: fields, paths: make([][]string, len(fields))}
	for i, f := range fields {
		if f.Kind == JSONField {
			lb.paths[i] = strings.Split(f.Name, ".")
			lb.scratch = make([]byte, 0, ValueBytesMax)
		}
	}
	return lb
}

// appendValues appends the values of the fields in rec, as labels hold them.
func (lb *labeler) appendValues(dst []byte, rec *frame.Record) []byte {
	for i := range lb.fields {
		switch f := &lb.fields[i]; f.Kind {
		case KeyField:
			dst = appendValue(dst, i, rec.Key)
		case HeaderField:
			for k := range rec.Headers {
				if h := &rec.Headers[k]; h.Name == f.Name {
					dst = appendValue(dst, i, h.Value)
				}
			}
		case JSONField:
			doc := rec.Value[:min(len(rec.Value), jsonBytesMax)]
			jsonfield.Each(doc, lb.paths[i], lb.scratch, func(v []byte) { dst = appendValue(dst, i, v) })
		}
	}
	return dst
}

// appendValue appends one value: its length, with the field's number, and
// both. Values that no filter can hold are left out: none, empty ones, and
// those over ValueBytesMax.
func appendValue(dst []byte, field int, value []byte) []byte {
	if len(value) == 0 || len(value) > ValueBytesMax {
		return dst
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(1+len(value)))
	return append(append(dst, byte(field)), value...)
}
