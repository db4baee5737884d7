package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"tailcast/route"
)

// Route is one path and what is served there.
type Route struct {
	Path   string   // exact and decoded: /a b, not /a%20b
	Topics []string // one, until a route can join several
	Start  Start
	Format Format
	Binary Binary
	Event  EventName
	Delete Delete
	CORS   CORS // its own, or Config.CORS
}

// CORS is which pages of other origins may read answers; checked by
// route.NewCORS.
type CORS struct {
	Origins     []string
	Credentials bool
}

// EventName is where an event takes its name from. At most one field is set;
// none: events have no name.
type EventName struct {
	Fixed  string
	Header string // name of a record's header
	JSON   string // path in a record's value, names joined by dots
}

// Start is where a stream without an id begins.
type Start string

// StartLatest is the end of the topic.
const StartLatest Start = "latest"

// Format is what an event's data is.
type Format string

// The formats.
const (
	Raw      Format = "raw"      // the value
	Envelope Format = "envelope" // a JSON object with the whole record
)

// Binary is what becomes of values that are not UTF-8.
type Binary string

// The binary policies.
const (
	Replace Binary = "replace" // U+FFFD for what is not UTF-8
	Base64  Binary = "base64"  // every value of the route, UTF-8 or not
	Drop    Binary = "drop"    // no event
)

// Delete is what becomes of tombstones.
type Delete string

// The tombstone policies.
const (
	DeleteEvent Delete = "event" // an event named delete
	DeleteSkip  Delete = "skip"  // no event
)

// newRoute returns a route with every default.
func newRoute() Route {
	return Route{Start: StartLatest, Format: Raw, Binary: Replace, Delete: DeleteEvent}
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
	case strings.ContainsAny(path, "{}"):
		return refuse("path parameters are not supported yet")
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
	return path, nil
}

// parseTopic takes a name that Kafka takes.
func parseTopic(topic string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("%s is not a topic: %s", quote(topic), why)
	}
	switch {
	case topic == "":
		return refuse("it is empty")
	case strings.ContainsAny(topic, "{}"):
		return refuse("path parameters are not supported yet")
	case len(topic) > 249:
		return refuse("it is longer than 249 bytes")
	case topic == "." || topic == "..":
		return refuse("Kafka keeps this name")
	}
	for _, c := range []byte(topic) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return refuse("Kafka takes only letters, digits, dot, underscore and dash")
		}
	}
	return topic, nil
}

func parseOrigin(text string) (string, error) {
	return text, route.CheckOrigin(text)
}

func parseStart(text string) (Start, error) {
	if text != string(StartLatest) {
		return "", fmt.Errorf("%s is not supported yet (use latest)", quote(text))
	}
	return StartLatest, nil
}

// reserved are the event names a client must be able to trust, or that
// EventSource uses for itself.
var reserved = [...]string{"resync", "delete", "challenge", "live", "skipped", "error", "open"}

// parseEventName takes a fixed name of a route's events.
func parseEventName(text string) (string, error) {
	for _, r := range reserved {
		if text == r {
			return "", fmt.Errorf("%s is a name with a meaning of its own; choose another", quote(text))
		}
	}
	return parseName(text)
}

// parseJSONPath takes names joined by dots.
func parseJSONPath(text string) (string, error) {
	for name := range strings.SplitSeq(text, ".") {
		if name == "" {
			return "", fmt.Errorf("%s is not a JSON path (use type or meta.type)", quote(text))
		}
	}
	return parseName(text)
}

// parseName is parseText without the empty text.
func parseName(text string) (string, error) {
	if text == "" {
		return "", errors.New("it is empty")
	}
	return parseText(text)
}
