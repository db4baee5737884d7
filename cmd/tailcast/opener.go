package main

import (
	"errors"
	"slices"

	"tailcast/hub"
	"tailcast/kafkatail"
	"tailcast/loop"
	"tailcast/route"
)

// opener opens the feeds of a route whose topics depend on the request. Safe
// from any goroutine.
type opener struct {
	hub    *hub.Hub
	tail   *kafkatail.Tail
	spec   hub.Spec // but for the topics
	topics []route.Template
	allow  route.Allow
	lot    *hub.Lot
}

var (
	// errNoTopic is for topics that do not exist, and names that none can have.
	errNoTopic   = &route.Refusal{Status: 404, Reason: "there is no such topic"}
	errForbidden = &route.Refusal{Status: 403, Reason: "this topic is not served here"}
	errApart     = &route.Refusal{Status: 403, Reason: "these topics can't be in one stream"}
)

// open is loop.Serving's Open. Without wait, a topic that nobody knows of is
// taken for one that will come.
func (o *opener) open(v *route.Values, wait bool) (*hub.Feed, error) {
	spec := o.spec
	var named []string // by the request
	for _, t := range o.topics {
		if name, ok := t.Literal(); ok {
			spec.Topics = append(spec.Topics, name)
			continue
		}
		names, err := o.names(t, v)
		if err != nil {
			return nil, err
		}
		named = append(named, names...)
		spec.Topics = append(spec.Topics, names...)
	}
	spec.Topics = unique(spec.Topics)
	if f, ok := o.hub.Find(spec); ok {
		return f, nil
	}
	if err := o.exist(named, wait); err != nil {
		return nil, err
	}
	f, err := o.hub.Lend(spec, o.tail, o.lot)
	switch {
	case errors.Is(err, hub.ErrFull):
		return nil, loop.ErrFull
	case err != nil:
		return nil, errApart
	}
	return f, nil
}

// names returns the topics that a template stands for, if a request may name
// them; sorted, so that equal requests share a feed.
func (o *opener) names(t route.Template, v *route.Values) ([]string, error) {
	names, err := t.Expand(v, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch {
		case route.CheckTopic(name) != nil:
			return nil, errNoTopic
		case !o.allow.Allows(name):
			return nil, errForbidden
		}
	}
	slices.Sort(names)
	return names, nil
}

// exist returns nil if the topics exist, as far as anybody can know.
func (o *opener) exist(topics []string, wait bool) error {
	unasked := false
	for _, name := range topics {
		switch o.tail.Presence(name) {
		case kafkatail.Absent:
			return errNoTopic
		case kafkatail.Forbidden:
			return errForbidden
		case kafkatail.Unasked:
			unasked = true
		case kafkatail.Present, kafkatail.Away:
		}
	}
	if unasked && wait {
		return &loop.Later{Ask: func(ready func()) { o.tail.Ask(topics, ready) }}
	}
	return nil
}

// unique removes what occurs before.
func unique(names []string) []string {
	seen := names[:0]
	for _, name := range names {
		if !slices.Contains(seen, name) {
			seen = append(seen, name)
		}
	}
	return seen
}
