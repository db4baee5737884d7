package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"tailcast/route"
)

const (
	// filterItemsMax bounds the items of a filter and filterTermsMax the terms of
	// an item: a route has a few reasons to deliver a record, and each is
	// looked up for every stream that opens.
	filterItemsMax, filterTermsMax = 16, 16
	// filterValueMax bounds a literal value, as hub.ValueBytesMax does all values.
	filterValueMax = 1024
)

// FilterItem is an item of a filter: terms that must all be true.
type FilterItem []FilterTerm

// FilterTerm compares a field of the record with what a template stands for.
type FilterTerm struct {
	Kind  TermKind
	Name  string // of the header; path in the value
	Value route.Template
}

// TermKind is where in a record a term looks: the key in the file.
type TermKind string

// The kinds of terms.
const (
	TermKey    TermKind = "key"
	TermHeader TermKind = "headers"
	TermJSON   TermKind = "json"
)

func (t FilterTerm) String() string {
	name := ""
	if t.Kind != TermKey {
		name = "." + t.Name
	}
	return string(t.Kind) + name + "=" + t.Value.String()
}

func (item FilterItem) String() string {
	terms := make([]string, 0, len(item))
	for _, t := range item {
		terms = append(terms, t.String())
	}
	return strings.Join(terms, " and ")
}

// setFilter reads a filter: a list of items.
func setFilter(f file, k key, r *placedRoute) error {
	list, ok := k.value.(*ast.SequenceNode)
	switch {
	case !ok:
		return fmt.Errorf("%s: must be a list of items, not %s", f.at(k, k.value), kind(k.value))
	case len(list.Values) == 0:
		return fmt.Errorf("%s: holds no item, so nothing would ever match", k.from)
	case len(list.Values) > filterItemsMax:
		return fmt.Errorf("%s: holds %d items, more than %d", k.from, len(list.Values), filterItemsMax)
	}
	for _, node := range list.Values {
		item, err := f.filterItem(node)
		if err != nil {
			return err
		}
		r.Filter = append(r.Filter, item)
	}
	return nil
}

// filterItem reads one item: {key, headers, json}.
func (f file) filterItem(node ast.Node) (FilterItem, error) {
	var item FilterItem
	add := func(k key, kind TermKind, name string) error {
		value, err := f.filterValue(k)
		item = append(item, FilterTerm{kind, name, value})
		return err
	}
	named := func(k key, kind TermKind, check func(string) error) error {
		return f.mapping(k.value, string(kind), func(k key) error {
			if err := check(k.name); err != nil {
				return fmt.Errorf("%s: %w", k.from, err)
			}
			return add(k, kind, k.name)
		})
	}
	err := f.mapping(node, "an item of filter", func(k key) error {
		switch k.name {
		case "key":
			return add(k, TermKey, "")
		case "headers":
			return named(k, TermHeader, func(name string) error {
				_, err := parseName(name)
				return err
			})
		case "json":
			return named(k, TermJSON, checkPath)
		}
		return unknownIn("an item of filter", k, []string{"key", "headers", "json"})
	})
	switch {
	case err != nil:
		return nil, err
	case len(item) == 0:
		return nil, fmt.Errorf("%s: an item of filter without a term would match everything; use key, headers or json", f.place(node))
	case len(item) > filterTermsMax:
		return nil, fmt.Errorf("%s: an item of filter with %d terms, more than %d", f.place(node), len(item), filterTermsMax)
	}
	return item, nil
}

// checkPath refuses what is no path of names in a value.
func checkPath(path string) error {
	if slices.Contains(strings.Split(path, "."), "") {
		return errors.New("has an empty step")
	}
	_, err := parseName(path)
	return err
}

// filterValue reads a value to compare with.
func (f file) filterValue(k key) (value route.Template, err error) {
	if _, ok := k.value.(*ast.MappingNode); ok {
		return value, fmt.Errorf(`%s: a value that begins with { needs quotes, as in "{user}"`, f.at(k, k.value))
	}
	err = f.read(k, func(text string) (err error) {
		value, err = parseFilterValue(text)
		return err
	})
	return value, err
}

func parseFilterValue(text string) (route.Template, error) {
	refuse := func(why string) (route.Template, error) {
		return route.Template{}, fmt.Errorf("%s is not a value to compare with: %s", quote(text), why)
	}
	value, err := route.ParseTemplate(text)
	if err != nil {
		return refuse(err.Error())
	}
	literal, ok := value.Literal()
	switch {
	case ok && literal == "":
		return refuse("it is empty, and what is empty or missing matches nothing")
	case len(literal) > filterValueMax:
		return refuse(fmt.Sprintf("it is longer than %d bytes", filterValueMax))
	}
	return value, nil
}
