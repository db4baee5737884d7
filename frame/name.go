package frame

import (
	"slices"
	"unicode/utf8"

	"tailcast/internal/jsonfield"
)

const (
	// nameBytesMax bounds an event name; it is repeated in every event.
	nameBytesMax = 256
	// jsonBytesMax is how much of a value is searched for its name, so that
	// one record can't hold up the others. A name belongs at the front.
	jsonBytesMax = 64 << 10
)

// validName reports whether a record may give its event this name. Line ends
// would forge fields, and the reserved names are the gateway's own or, open
// and error, those that run a page's connection handlers.
func validName(b []byte) bool {
	if len(b) == 0 || len(b) > nameBytesMax || !utf8.Valid(b) || reserved(b) {
		return false
	}
	for i, c := range b {
		// C0, DEL, and C1, which is U+0080 to U+009F: C2 80 to C2 9F.
		if c < 0x20 || c == 0x7F || c == 0xC2 && b[i+1] < 0xA0 {
			return false
		}
	}
	return true
}

func reserved(b []byte) bool {
	switch string(b) {
	case "resync", "delete", "challenge", "live", "skipped", "error", "open":
		return true
	}
	return false
}

// name returns the event name of a record, or nil for none. unnamed means
// that the record names one that is not allowed. The name is valid until the
// next call and may alias the record.
func (e *Encoder) name(r *Record) (name []byte, unnamed bool) {
	switch {
	case len(e.fixed) > 0:
		return e.fixed, false
	case e.header != "":
		name = lastHeader(r.Headers, e.header)
	case e.path != nil:
		name = e.jsonName(r.Value)
	}
	if name == nil {
		return nil, false
	}
	if !validName(name) {
		return nil, true
	}
	return name, false
}

// lastHeader returns the value of the last header of a name, as Kafka's own
// lastHeader does, or nil.
func lastHeader(headers []Header, name string) []byte {
	for _, h := range slices.Backward(headers) {
		if h.Name == name {
			return h.Value
		}
	}
	return nil
}

func (e *Encoder) jsonName(value []byte) []byte {
	name, ok := jsonfield.Lookup(value[:min(len(value), jsonBytesMax)], e.path, e.scratch[:])
	if !ok {
		return nil
	}
	return name
}
