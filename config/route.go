package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tailcast/auth"
	"tailcast/frame"
	"tailcast/route"
)

// Route is one path and what is served there.
type Route struct {
	Host   string       // as route.ParseHost returns it; "": any
	Path   string       // decoded: /a b, not /a%20b; segments may be {parameters}
	Topics []string     // at least one: names, or templates of names (route.Template)
	Allow  []string     // which topics templates may stand for (route.NewAllow); at least one with them
	Start  Start        // where a stream without an id begins
	Format frame.Format // checked by frame.NewEncoder
	Resync Resync

	MaxStreams           int          // at a time; 0: no limit
	MaxStreamsPerSubject int          // of one token's subject; 0: no limit
	Filter               []FilterItem // a record is delivered if one of them matches; none: every record is

	ClientStart bool // a request may ask for another start

	CORS     CORS       // its own, or Config.CORS
	Guard    *auth.Spec // checked; nil: everyone may read it
	KeysFrom string     // where Guard.Keys was set: errors about the file begin with it
}

// Literal reports whether the route's topics are the same for every request.
func (r *Route) Literal() bool {
	return !slices.ContainsFunc(r.Topics, func(t string) bool { return strings.ContainsAny(t, "{}") })
}

// CORS is which pages of other origins may read answers; checked by
// route.NewCORS.
type CORS struct {
	Origins     []string
	Credentials bool
}

// Resync is what becomes of a stream that can't go on exactly where it was.
type Resync string

// The resync policies.
const (
	ResyncContinue Resync = "continue" // as near as possible
	ResyncRestart  Resync = "restart"  // by the start policy, as without an id
)

// newRoute returns a route with every default.
func newRoute() Route {
	return Route{Start: Start{From: StartLatest}, Resync: ResyncContinue, Format: frame.Format{Binary: frame.Replace, Delete: frame.DeleteEvent}}
}

// parseRoute reads PATH=TOPIC, split at the last =, which a path may hold and a
// topic may not.
func parseRoute(text string) (Route, error) {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return Route{}, fmt.Errorf("%s is not PATH=TOPIC (use /events=events; a path with a comma goes into the file)", quote(text))
	}
	path, err := parsePath(text[:i])
	if err != nil {
		return Route{}, err
	}
	topic, err := parseTopic(text[i+1:])
	if err != nil {
		return Route{}, err
	}
	r := newRoute()
	r.Path, r.Topics = path, []string{topic}
	if !r.Literal() {
		return Route{}, fmt.Errorf("%s: a topic with parameters goes into the file, with its allow list", quote(text))
	}
	return r, nil
}

// parsePath takes a path as requests hold it after decoding. What a client or a
// proxy would rewrite before it gets here could never match, so it is refused.
func parsePath(path string) (string, error) {
	const most = 1024 // far over any path people route by, far under a head's 16 KiB
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("%s is not a path: %s", quote(path), why)
	}
	switch {
	case !strings.HasPrefix(path, "/"):
		return refuse("it must begin with /")
	case len(path) > most:
		return refuse(fmt.Sprintf("it is longer than %d bytes", most))
	case !utf8.ValidString(path):
		return refuse("it is not UTF-8")
	case strings.ContainsFunc(path, unicode.IsControl):
		return refuse("it holds control characters")
	case strings.ContainsAny(path, "?#"):
		return refuse("it ends before ? and #")
	case strings.Contains(path, "*"):
		return refuse("paths are exact, without wildcards")
	case strings.Contains(path, `\`):
		return refuse("requests with a backslash are refused")
	case strings.Contains(path, "%"):
		return refuse("write it decoded, without %")
	case strings.Contains(path, "//"):
		return refuse("it has an empty segment")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return refuse("clients take . and .. segments away")
		}
	}
	if _, err := route.PathParams(path); err != nil {
		return refuse(err.Error())
	}
	return path, nil
}

// parseTopic takes a name that Kafka takes, or a template of such names.
func parseTopic(topic string) (string, error) {
	if err := route.CheckTopicTemplate(topic); err != nil {
		return "", fmt.Errorf("%s is not a topic: %w", quote(topic), err)
	}
	return topic, nil
}

// parseAllow takes a name of a topic, or the beginning of one and a *.
func parseAllow(text string) (string, error) {
	_, err := route.NewAllow([]string{text})
	return text, err
}

// parseHost takes the name of a host.
func parseHost(text string) (string, error) {
	host, err := route.ParseHost(text)
	if err != nil {
		return "", fmt.Errorf("%s is not a host: %w", quote(text), err)
	}
	return host, nil
}

func parseStreams(text string) (int, error) {
	n, err := parseInt(text)
	if err == nil && (n == 0 || n > connsMax) {
		err = fmt.Errorf("%s is outside 1 to %d", quote(text), connsMax)
	}
	return n, err
}

func parseOrigin(text string) (string, error) {
	return text, route.CheckOrigin(text)
}

// parseFormat reads the format key: whether data is an envelope.
func parseFormat(text string) (envelope bool, err error) {
	word, err := oneOf("raw", "envelope")(text)
	return word == "envelope", err
}

// parseID reads the id key: whether ids begin with the record's key.
func parseID(text string) (withKey bool, err error) {
	word, err := oneOf("position", "key+position")(text)
	return word == "key+position", err
}

// parseName takes a name, or a path of names, that a route's events are called
// by. What else is wrong with it, frame knows.
func parseName(text string) (string, error) {
	const most = 256 // bytes; frame takes no longer name of an event
	switch {
	case text == "":
		return "", errors.New("it is empty")
	case len(text) > most:
		return "", fmt.Errorf("%s is longer than %d bytes", quote(text), most)
	}
	return parseText(text)
}
