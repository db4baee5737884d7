package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Start is where a stream without an id begins.
type Start struct {
	From StartFrom
	Time time.Time     // StartTime
	Ago  time.Duration // StartAgo, at least 1 ms
	Last int           // StartLast, more than 0: offsets of each partition
}

// StartFrom is a kind of Start.
type StartFrom string

// The kinds of Start.
const (
	StartLatest   StartFrom = "latest"
	StartEarliest StartFrom = "earliest"
	StartSnapshot StartFrom = "snapshot" // the latest record of each key
	StartTime     StartFrom = "time"
	StartAgo      StartFrom = "ago"
	StartLast     StartFrom = "last"
)

// String is s as the file has it.
func (s Start) String() string {
	switch s.From { //nolint:exhaustive // the others are their words
	case StartTime:
		return s.Time.Format(time.RFC3339Nano)
	case StartAgo:
		return show(s.Ago)
	case StartLast:
		return fmt.Sprintf("last %d", s.Last)
	}
	return string(s.From)
}

// setStart reads the start key: a word, a time, a duration, or {last: N}.
func setStart(f file, k key, r *placedRoute) error {
	if _, ok := k.value.(*ast.MappingNode); !ok {
		return f.read(k, func(text string) (err error) {
			r.Start, err = parseStart(text)
			return err
		})
	}
	err := f.mapping(k.value, "start", func(k key) error {
		if k.name != "last" {
			return unknownIn("start", k, []string{"last"})
		}
		return f.read(k, func(text string) (err error) {
			r.Start, err = parseLast(text)
			return err
		})
	})
	if err == nil && r.Start.From != StartLast {
		err = fmt.Errorf("%s: holds nothing; use {last: 100}", k.from)
	}
	return err
}

func parseStart(text string) (Start, error) {
	switch from := StartFrom(text); from { //nolint:exhaustive // the others are no words of the file
	case StartLatest, StartEarliest, StartSnapshot:
		return Start{From: from}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return Start{From: StartTime, Time: at}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		if ago < time.Millisecond || ago > agoMax {
			return Start{}, fmt.Errorf("%s is outside 1ms to %s: a stream begins so long ago", quote(text), show(agoMax))
		}
		return Start{From: StartAgo, Ago: ago}, nil
	}
	return Start{}, fmt.Errorf("%s is no start (use latest, earliest, snapshot, 2026-01-02T03:04:05Z, 15m for 15 minutes ago, or {last: 100})", quote(text))
}

// agoMax is ten years: Kafka itself is not much older.
const agoMax = 10 * 365 * 24 * time.Hour

// lastMax bounds {last: N}; more is the whole of any topic.
const lastMax = 1 << 40

func parseLast(text string) (Start, error) {
	n, err := parseInt(text)
	switch {
	case err != nil:
		return Start{}, err
	case n < 1 || n > lastMax:
		return Start{}, errors.New(quote(text) + " is outside 1 to 1099511627776 (use start: latest for none)")
	}
	return Start{From: StartLast, Last: n}, nil
}
