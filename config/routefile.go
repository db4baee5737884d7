package config

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"tailcast/frame"
	"tailcast/route"
)

// routeKey is one key of an item of the file's routes.
type routeKey struct {
	name string
	def  string
	help string // for docs/CONFIGURATION.md
	set  func(f file, k key, r *placedRoute) error
}

// routeKeys is the table of them: the parser and the docs read it.
var routeKeys = []routeKey{
	{"path", "", "path to serve at, exact and decoded; a segment may be a `{parameter}`", setPath},
	{"host", "any", "host that the request must name, without its port; before routes of any host", oneText(parseHost, func(r *placedRoute) *string { return &r.Host })},
	{"topic", "", "topic to serve; with `allow`, it may hold `{parameters}` of the path or query, and `${claims.NAME}` of the token", setTopic},
	{"topics", "", "instead of `topic`, a list: one stream of all of them", setTopics},
	{"allow", "", "topics that parameters may stand for: names, and beginnings of names with a `*`", setAllow},
	{"start", "latest", "where a stream without an id begins: `latest`, `earliest`, `snapshot` (the latest record of each key of a compacted topic), a time (`2026-01-02T03:04:05Z`), a time ago (`15m`), or `{last: 100}` offsets of each partition", setStart},
	{"client_start", "false", "whether clients may ask for another start by `?since=` and `?last=`", oneText(parseBool, func(r *placedRoute) *bool { return &r.ClientStart })},
	{"filter", "every record", "list of items `{key: VALUE, headers: {NAME: VALUE}, json: {PATH: VALUE}}`: records that match all of some item; values may be `{parameters}` of the path or the query, or `${claims.NAME}` of the token", setFilter},
	{"format", "raw", "`raw`: data is the value; `envelope`: data is a JSON object of the whole record", oneText(parseFormat, func(r *placedRoute) *bool { return &r.Format.Envelope })},
	{"binary", "replace", "values that are not UTF-8: `replace` what isn't by U+FFFD, `base64` every value of the route, `drop` them", oneText(oneOf(frame.Replace, frame.Base64, frame.Drop), func(r *placedRoute) *frame.Binary { return &r.Format.Binary })},
	{"event", "no name", "name of events: `{fixed: NAME}`, `{header: NAME}` of the record, or `{json: PATH}` in its value", setEvent},
	{"delete", "event", "tombstones: an `event` named delete with the key as data, or `skip`", oneText(oneOf(frame.DeleteEvent, frame.DeleteSkip), func(r *placedRoute) *frame.Delete { return &r.Format.Delete })},
	{"id", "position", "ids of events: the `position` in the topics, or `key+position`, behind the record's key in base64url", oneText(parseID, func(r *placedRoute) *bool { return &r.Format.KeyID })},
	{"resync", "continue", "streams that can't go on where they were: `continue` as near as possible, or `restart` as without an id", oneText(oneOf(ResyncContinue, ResyncRestart), func(r *placedRoute) *Resync { return &r.Resync })},
	{"max_streams", "no limit", "most streams of the route at a time; more are ended at once, and come back later", oneText(parseStreams, func(r *placedRoute) *int { return &r.MaxStreams })},
	{"max_streams_per_subject", "no limit", "most streams of the route at a time for one subject of tokens; needs a guard", oneText(parseStreams, func(r *placedRoute) *int { return &r.MaxStreamsPerSubject })},
	{"cors", "`cors-origins`", "`{origins: [...], credentials: true}`: pages that may read the route, and whether with cookies", setCORS},
	{"guard", "the file's `guard`", "what tokens must hold to read the route: the keys below, or `none`", setGuard},
}

// routes reads the list of routes.
func (f file) routes(k key) ([]placedRoute, error) {
	sequence, ok := k.value.(*ast.SequenceNode)
	if !ok {
		return nil, fmt.Errorf("%s: must be a list of routes, not %s", f.at(k, k.value), kind(k.value))
	}
	all := make([]placedRoute, 0, len(sequence.Values))
	for _, node := range sequence.Values {
		r, err := f.route(node)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// route reads one item of the list.
func (f file) route(node ast.Node) (placedRoute, error) {
	r := placedRoute{Route: newRoute()}
	err := f.mapping(node, "a route", func(k key) error {
		i := slices.IndexFunc(routeKeys, func(rk routeKey) bool { return rk.name == k.name })
		if i < 0 {
			return unknownRouteKey(k)
		}
		return routeKeys[i].set(f, k, &r)
	})
	switch {
	case err != nil:
		return r, err
	case r.Path == "":
		return r, fmt.Errorf("%s: key \"path\" is missing", f.place(node))
	case len(r.Topics) == 0:
		return r, fmt.Errorf("%s: key \"topic\" is missing", f.place(node))
	case r.Literal() && len(r.Allow) > 0:
		return r, fmt.Errorf("%s: key \"allow\" is for topics with {parameters}", f.place(node))
	case !r.Literal() && len(r.Allow) == 0:
		return r, fmt.Errorf("%s: key \"allow\" is missing: it says which topics parameters may stand for", f.place(node))
	case r.ClientStart && r.Start.From == StartSnapshot:
		return r, fmt.Errorf("%s: key \"client_start\": a stream with start: snapshot begins with the latest record of each key and nowhere else", f.place(node))
	}
	return r, nil
}

func unknownRouteKey(k key) error {
	names := make([]string, 0, len(routeKeys))
	for _, rk := range routeKeys {
		names = append(names, rk.name)
	}
	return unknownIn("a route", k, names)
}

// unknownIn is the error for a key that a mapping, called what, doesn't have.
func unknownIn(what string, k key, names []string) error {
	hint := ""
	if best := nearest(k.name, names); best != "" {
		hint = " (did you mean " + quote(best) + "?)"
	}
	return fmt.Errorf("%s: unknown in %s%s", k.from, what, hint)
}

// oneText sets the field of a route that a key of one value stands for.
func oneText[T any](parse func(string) (T, error), field func(*placedRoute) *T) func(file, key, *placedRoute) error {
	return func(f file, k key, r *placedRoute) error {
		return f.read(k, func(text string) (err error) {
			*field(r), err = parse(text)
			return err
		})
	}
}

// read hands the one value of k to take and puts the place before its error.
func (f file) read(k key, take func(text string) error) error {
	text, err := f.scalar(k, k.value)
	if err != nil {
		return err
	}
	if err := take(text); err != nil {
		return fmt.Errorf("%s: %w", f.at(k, k.value), err)
	}
	return nil
}

func setPath(f file, k key, r *placedRoute) error {
	r.from = f.at(k, k.value)
	return f.read(k, func(text string) (err error) {
		r.Path, err = parsePath(text)
		return err
	})
}

func setTopic(f file, k key, r *placedRoute) error {
	if len(r.Topics) > 0 {
		return fmt.Errorf("%s: the route has topics already", k.from)
	}
	return f.read(k, func(text string) error {
		topic, err := parseTopic(text)
		r.Topics = []string{topic}
		return err
	})
}

func setTopics(f file, k key, r *placedRoute) error {
	topics, err := f.items(k, true)
	switch {
	case err != nil:
		return err
	case len(r.Topics) > 0:
		return fmt.Errorf("%s: the route has a topic already", k.from)
	case len(topics) == 0:
		return fmt.Errorf("%s: holds no topic", k.from)
	}
	for _, it := range topics {
		topic, err := parseTopic(it.text)
		if err != nil {
			return fmt.Errorf("%s: %w", it.from, err)
		}
		if slices.Contains(r.Topics, topic) {
			return fmt.Errorf("%s: topic %s is listed twice", it.from, quote(topic))
		}
		if r.Topics = append(r.Topics, topic); len(r.Topics) > topicsMax {
			return fmt.Errorf("%s: more than %d topics, which an event id can hold", it.from, topicsMax)
		}
	}
	return nil
}

func setAllow(f file, k key, r *placedRoute) error {
	list, err := f.items(k, true)
	if err != nil {
		return err
	}
	for _, it := range list {
		if _, err := parseAllow(it.text); err != nil {
			return fmt.Errorf("%s: %w", it.from, err)
		}
		r.Allow = append(r.Allow, it.text)
	}
	return nil
}

func setEvent(f file, k key, r *placedRoute) error {
	event := &r.Format.Event
	err := f.mapping(k.value, "event", func(k key) error {
		if *event != (frame.EventName{}) {
			return fmt.Errorf("%s: an event has one name; use fixed, header or json", k.from)
		}
		var dst *string
		switch k.name {
		case "fixed":
			dst = &event.Fixed
		case "header":
			dst = &event.Header
		case "json":
			dst = &event.JSON
		default:
			return unknownIn("event", k, []string{"fixed", "header", "json"})
		}
		return f.read(k, func(text string) (err error) {
			if *dst, err = parseName(text); err == nil {
				_, err = frame.NewEncoder(frame.Format{Event: *event})
			}
			return err
		})
	})
	if err == nil && *event == (frame.EventName{}) {
		err = fmt.Errorf("%s: holds no name; use fixed, header or json", k.from)
	}
	return err
}

func setCORS(f file, k key, r *placedRoute) error {
	r.ownCORS = true
	err := f.mapping(k.value, "cors", func(k key) error {
		switch k.name {
		case "origins":
			return setOrigins(f, k, &r.CORS)
		case "credentials":
			return f.read(k, func(text string) (err error) {
				r.CORS.Credentials, err = parseBool(text)
				return err
			})
		}
		return unknownIn("cors", k, []string{"origins", "credentials"})
	})
	if err != nil {
		return err
	}
	if _, err := route.NewCORS(r.CORS.Origins, r.CORS.Credentials); err != nil {
		return fmt.Errorf("%s: %w", k.from, err)
	}
	return nil
}

func setOrigins(f file, k key, c *CORS) error {
	origins, err := f.items(k, true)
	if err != nil {
		return err
	}
	for _, o := range origins {
		if err := route.CheckOrigin(o.text); err != nil {
			return fmt.Errorf("%s: %w", o.from, err)
		}
		c.Origins = append(c.Origins, o.text)
	}
	return nil
}
