package hub

import (
	"bytes"
	"fmt"
	"slices"
)

// filterValuesMax bounds the values that one stream's filter compares, and
// with them its place in the loop's table: a token's memberships in a few items.
const filterValuesMax = 256

// Term is a condition: one of the record's values of a field is one of these.
type Term struct {
	Field  Field
	Values []string
}

// Filter selects records of a feed: those of which one item's terms are all
// true. Fixed after NewFilter; safe from any goroutine.
type Filter struct {
	items  []filterItem
	fields int // the feed had when the filter was made
}

// filterItem are terms that must all be true; a term is its values, each with
// the field's number before it, in order.
type filterItem [][][]byte

// NewFilter compiles the items of a stream's filter. Their fields must be among
// those that the feed was opened with. The error is one line for the client.
func (f *Feed) NewFilter(items [][]Term) (*Filter, error) {
	f.mu.Lock()
	fields := f.fields
	f.mu.Unlock()
	out := &Filter{fields: len(fields)}
	n := 0
	for _, terms := range items {
		var item filterItem
		for _, t := range terms {
			i := slices.Index(fields, t.Field)
			if i < 0 {
				panic("BUG: hub: a filter compares a field that its feed does not have")
			}
			var values [][]byte
			for _, v := range t.Values {
				if v == "" || len(v) > ValueBytesMax {
					return nil, fmt.Errorf("the value of the filter's %v is not 1 to %d bytes long", t.Field, ValueBytesMax)
				}
				values = append(values, append([]byte{byte(i)}, v...))
			}
			if n += len(values); n > filterValuesMax {
				return nil, fmt.Errorf("the filter has more than %d values", filterValuesMax)
			}
			slices.SortFunc(values, bytes.Compare)
			item = append(item, slices.CompactFunc(values, bytes.Equal))
		}
		out.items = append(out.items, item)
	}
	return out, nil
}

// Match reports whether a stream with this filter gets the frame of l.
func (x *Filter) Match(l *Label) bool {
	if l.Kind != LabelRecord {
		return l.Kind == LabelAll
	}
	return x.matches(l.values)
}

func (x *Filter) matches(values []byte) bool {
	for _, item := range x.items {
		if item.matches(values) {
			return true
		}
	}
	return false
}

func (item filterItem) matches(values []byte) bool {
	for _, term := range item {
		if !anyOf(term, values) {
			return false
		}
	}
	return true
}

// anyOf reports whether one of a record's values is one of a term's.
func anyOf(term [][]byte, values []byte) bool {
	for len(values) > 0 {
		var v []byte
		v, values = nextValue(values)
		if len(term) == 1 {
			if bytes.Equal(v, term[0]) {
				return true
			}
		} else if _, ok := slices.BinarySearchFunc(term, v, bytes.Compare); ok {
			return true
		}
	}
	return false
}
