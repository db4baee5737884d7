package frame

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Format is how the records of a route become events. The zero Format is the
// default one: the value as it is, no event names, deletions are told. The
// strings are those of the route's keys.
type Format struct {
	Envelope bool      // the data is a JSON object around the record, not its value
	Binary   Binary    // what to do with values that are not UTF-8
	Event    EventName // where event names come from
	Delete   Delete    // what to do with tombstones
	KeyID    bool      // ids begin with the record's key (idkey.go)

	// MaxEvent is the largest record that is delivered, in bytes before
	// encoding: its value, or its key for a tombstone; in envelopes key,
	// value and headers together. A larger one becomes an event `skipped`.
	// 0 means maxEventDefault.
	MaxEvent int
}

// Binary is what becomes of a value that is not UTF-8, which SSE can't carry
// (WHATWG HTML 9.2.5). Empty means Replace.
type Binary string

// The binary policies.
const (
	// Replace puts U+FFFD where a browser's decoder would. In envelopes it
	// is not needed: there a value that is not UTF-8 comes as base64.
	Replace Binary = "replace"
	// Base64 encodes every value of the route (RFC 4648 4, with padding), so
	// that pages need not guess.
	Base64 Binary = "base64"
	// Drop passes over records whose value (for a raw tombstone: key) is not UTF-8.
	Drop Binary = "drop"
)

// Delete is what becomes of a tombstone. Empty means DeleteEvent.
type Delete string

// The delete policies.
const (
	// DeleteEvent makes it an event `delete`, whose data is the key under the
	// binary policy, or an envelope whose value is null.
	DeleteEvent Delete = "event"
	// DeleteSkip passes over it.
	DeleteSkip Delete = "skip"
)

// EventName is where the name of an event comes from: at most one field is
// set, and none means that events have no name. A record whose name is
// missing or null has none; a name that is not allowed (validName) counts as
// Outcome.Unnamed.
type EventName struct {
	Fixed  string // the name itself
	Header string // the record header of this name; of several the last
	// JSON is the path of a scalar in the value, which is a JSON object:
	// names of fields, joined by dots. The first 64 KiB of a value are looked
	// at. See jsonfield.Lookup.
	JSON string
}

const (
	// maxEventDefault is well under Kafka's usual message.max.bytes (1 MB) and
	// above what pages show; an event is also the least that a slow stream has
	// to be able to hold.
	maxEventDefault = 1 << 20
	// maxEventMost keeps the length of a frame, at most seven times that of a
	// value (every byte an empty line), within 31 bits.
	maxEventMost = 256 << 20
)

// NewEncoder compiles f. Errors name the route's key, or the flag, at fault.
func NewEncoder(f Format) (*Encoder, error) {
	e := &Encoder{envelope: f.Envelope, keyID: f.KeyID, max: f.MaxEvent}
	switch f.Binary {
	case Replace, "":
	case Base64:
		e.base64 = true
	case Drop:
		e.drop = true
	default:
		return nil, fmt.Errorf("binary: %q is not one of replace, base64, drop", string(f.Binary))
	}
	switch f.Delete {
	case DeleteEvent, "":
	case DeleteSkip:
		e.skipDeletes = true
	default:
		return nil, fmt.Errorf("delete: %q is not one of event, skip", string(f.Delete))
	}
	switch {
	case e.max == 0:
		e.max = maxEventDefault
	case e.max < 0 || e.max > maxEventMost:
		return nil, fmt.Errorf("max-event: %d is not within 1 to %d bytes", e.max, maxEventMost)
	}
	if err := e.nameFrom(f.Event); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Encoder) nameFrom(n EventName) error {
	set := 0
	for _, s := range []string{n.Fixed, n.Header, n.JSON} {
		if s != "" {
			set++
		}
	}
	if set > 1 {
		return errors.New("event: more than one of fixed, header, json is set")
	}
	if n.Fixed != "" && !validName([]byte(n.Fixed)) {
		return fmt.Errorf("event.fixed: %q is reserved, over %d bytes, not UTF-8 or has control characters", n.Fixed, nameBytesMax)
	}
	e.fixed, e.header = []byte(n.Fixed), n.Header
	if n.JSON != "" {
		e.path = strings.Split(n.JSON, ".")
		if slices.Contains(e.path, "") {
			return fmt.Errorf("event.json: %q has an empty step", n.JSON)
		}
	}
	return nil
}
