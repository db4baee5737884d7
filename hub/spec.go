package hub

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tailcast/frame"
)

// topicsMax is how many groups an event id can have.
const topicsMax = 64

// Spec is what a feed serves. Routes with equal specs share one feed.
type Spec struct {
	Topics []string // 1 to topicsMax; the order is that of the groups of its ids
	Format frame.Format
	Keys   bool    // some of its streams begin with FromSnapshot
	Fields []Field // what filters of its streams compare, besides those it was opened with before
}

func (s Spec) key() string {
	return fmt.Sprintf("%s\x00%+v", strings.Join(s.Topics, "\x00"), s.Format)
}

// checkTopics refuses what an event id could not tell apart.
func (s Spec) checkTopics() error {
	if len(s.Topics) == 0 {
		return errors.New("topics: there is none")
	}
	if len(s.Topics) > topicsMax {
		return fmt.Errorf("topics: there are %d, and an event id can hold %d", len(s.Topics), topicsMax)
	}
	tags := make([]frame.Tag, 0, len(s.Topics))
	for i, name := range s.Topics {
		tag := frame.MakeTag(name, frame.TopicID{})
		switch k := slices.Index(tags, tag); {
		case k < 0:
			tags = append(tags, tag)
		case s.Topics[k] == name:
			return fmt.Errorf("topics: %q is listed twice", name)
		default:
			return fmt.Errorf("topics: %q and %q have the same two characters (~%s) in event ids, so one feed can't have both; give each a route", s.Topics[k], s.Topics[i], tag.Name)
		}
	}
	return nil
}
