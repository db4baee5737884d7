package loop

import (
	"tailcast/hub"
	"tailcast/route"
)

// Filter is which records the streams of a route get: those of which one
// item's terms are all true.
type Filter [][]FilterTerm

// FilterTerm is a condition: the record's field has the value, or one of the
// values, that the template stands for in the stream's request.
type FilterTerm struct {
	Field hub.Field
	Value route.Template
}

// Fields returns the fields that x compares, for hub.Spec.
func (x Filter) Fields() []hub.Field {
	var fields []hub.Field
	for _, item := range x {
		for _, term := range item {
			fields = append(fields, term.Field)
		}
	}
	return fields
}

// of returns the filter of one request's stream. Errors are *route.Refusal.
func (x Filter) of(feed *hub.Feed, v *route.Values) (*hub.Filter, error) {
	items := make([][]hub.Term, 0, len(x))
	for _, terms := range x {
		item := make([]hub.Term, 0, len(terms))
		for _, t := range terms {
			values, err := t.Value.Expand(v, nil)
			if err != nil {
				return nil, err
			}
			item = append(item, hub.Term{Field: t.Field, Values: values})
		}
		items = append(items, item)
	}
	filter, err := feed.NewFilter(items)
	if err != nil {
		return nil, &route.Refusal{Status: 400, Reason: err.Error()}
	}
	return filter, nil
}
