package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// topicBytesMax bounds the name of a topic, as Kafka does.
const topicBytesMax = 249

// CheckTopic returns why Kafka would refuse name as that of a topic.
func CheckTopic(name string) error {
	switch {
	case name == "":
		return errors.New("it is empty")
	case len(name) > topicBytesMax:
		return fmt.Errorf("it is longer than %d bytes", topicBytesMax)
	case name == "." || name == "..":
		return errors.New("it is a name that Kafka keeps")
	case !isTopic(name):
		return errors.New("only letters, digits, dot, underscore and dash may be in it")
	}
	return nil
}

// isTopic reports whether every byte of name may be in a topic's.
func isTopic(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// CheckTopicTemplate returns why a template can't stand for names of topics.
func CheckTopicTemplate(text string) error {
	t, err := ParseTemplate(text)
	if err != nil {
		return err
	}
	var name strings.Builder
	for _, p := range t.parts {
		if name.WriteString(p.literal); !p.isLiteral() {
			name.WriteByte('x') // the least that it stands for
		}
	}
	return CheckTopic(name.String())
}

// Allow is which topics requests may name: by name, or by how they begin. Kafka's
// own topics, which begin with an underscore, are only allowed by what begins
// so itself. Fixed after NewAllow; the zero Allow allows none.
type Allow struct {
	names    []string // sorted
	prefixes []string
}

// NewAllow reads a list of names; a * at the end of one stands for any rest.
func NewAllow(list []string) (Allow, error) {
	var a Allow
	for _, text := range list {
		prefix, open := strings.CutSuffix(text, "*")
		switch err := CheckTopic(prefix); {
		case strings.Contains(prefix, "*"):
			return Allow{}, fmt.Errorf("%s: a * may only stand at the end", printable(text))
		case err != nil && (!open || prefix != "" && prefix != "." && prefix != ".."):
			return Allow{}, fmt.Errorf("%s: %w", printable(text), err)
		case open:
			a.prefixes = append(a.prefixes, prefix)
		default:
			a.names = append(a.names, text)
		}
	}
	slices.Sort(a.names)
	return a, nil
}

// Allows reports whether a request may name topic.
func (a *Allow) Allows(topic string) bool {
	if _, ok := slices.BinarySearch(a.names, topic); ok {
		return true
	}
	for _, p := range a.prefixes {
		if strings.HasPrefix(topic, p) && (p != "" || topic[0] != '_') {
			return true
		}
	}
	return false
}
