package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// depthMax bounds how deep the JSON of a token is nested: claims of real
// issuers have three levels or four.
const depthMax = 16

var errNotStrict = errors.New("not one JSON object of distinct names")

// decodeObject reads one JSON object in which no name occurs twice, on any
// level: which one counts is where two readers of a token differ (RFC 7519 4,
// RFC 8725 2.5). Numbers stay as they are spelled.
func decodeObject(text []byte) (map[string]any, error) {
	if !json.Valid(text) || !utf8.Valid(text) { // so that Token can fail nowhere below
		return nil, errNotStrict
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	value, ok := decodeValue(dec, 0)
	object, isObject := value.(map[string]any)
	if !ok || !isObject {
		return nil, errNotStrict
	}
	return object, nil
}

// decodeValue reads the next value; false if it is not strict.
func decodeValue(dec *json.Decoder, depth int) (any, bool) {
	token, err := dec.Token()
	switch token {
	default:
		return token, err == nil
	case json.Delim('{'):
		return decodeMembers(dec, depth+1)
	case json.Delim('['):
		return decodeItems(dec, depth+1)
	}
}

func decodeMembers(dec *json.Decoder, depth int) (any, bool) {
	object := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if _, twice := object[name]; err != nil || !ok || twice || depth > depthMax {
			return nil, false
		}
		if object[name], ok = decodeValue(dec, depth); !ok {
			return nil, false
		}
	}
	_, err := dec.Token() // the closing brace
	return object, err == nil
}

func decodeItems(dec *json.Decoder, depth int) (any, bool) {
	items := []any{}
	for dec.More() {
		item, ok := decodeValue(dec, depth)
		if !ok || depth > depthMax {
			return nil, false
		}
		items = append(items, item)
	}
	_, err := dec.Token() // the closing bracket
	return items, err == nil
}
