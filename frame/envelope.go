package frame

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// appendEnveloped appends the record as one line of JSON (RFC 8259):
//
//	{"topic":"t","partition":0,"offset":1,"timestamp":1700000000000,
//	 "key":"k","headers":[["name","value"]],"value":"v"}
//
// Key, header values and value are strings or null. One that is not UTF-8
// comes as base64: "key_base64" and "value_base64" take the place of "key" and
// "value", and a header becomes ["name","...","base64"]. An offset above 2^53
// is exact here, but JSON.parse rounds it; the id has it as text.
func (e *Encoder) appendEnveloped(dst, id, name []byte, r *Record, out Outcome) ([]byte, Outcome) {
	text := r.Value == nil || !e.base64 && utf8.Valid(r.Value)
	if !text && e.drop {
		return dst, Outcome{Dropped: true}
	}
	dst, b := beginBlock(dst, id, name, envelopeLen(r, text))
	dst = append(dst, dataField...)
	dst, out.Replaced = appendPlace(dst, r)

	dst = append(dst, `,"timestamp":`...)
	if r.Time < 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, r.Time, 10)
	}
	if utf8.Valid(r.Key) {
		dst = appendText(append(dst, `,"key":`...), r.Key)
	} else {
		dst = appendBase64(append(dst, `,"key_base64":`...), r.Key)
	}
	dst = append(dst, `,"headers":[`...)
	for i := range r.Headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		var replaced bool
		dst, replaced = appendHeader(dst, &r.Headers[i])
		out.Replaced = out.Replaced || replaced
	}
	if text {
		dst = appendText(append(dst, `],"value":`...), r.Value)
	} else {
		dst = appendBase64(append(dst, `],"value_base64":`...), r.Value)
	}
	dst = append(dst, "}\n"...)
	dst, out.Extents = b.end(dst)
	return dst, out
}

// envelopeLen guesses the bytes of an envelope's data line: exact enough for
// the width of the chunk's head in nearly every case.
func envelopeLen(r *Record, text bool) int {
	const names = `data: {"topic":"","partition":0,"offset":1000000,"timestamp":1700000000000,"key":"","headers":[],"value":""}` + "\n"
	n := len(names) + len(r.Topic) + len(r.Key) + len(r.Value)
	if !text {
		n += base64.StdEncoding.EncodedLen(len(r.Value)) - len(r.Value)
	}
	for i := range r.Headers {
		n += len(`["",""],`) + len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	return n
}

// appendPlace appends the opening fields that tell where a record is.
func appendPlace(dst []byte, r *Record) (_ []byte, replaced bool) {
	dst, replaced = appendName(append(dst, `{"topic":`...), r.Topic)
	dst = append(dst, `,"partition":`...)
	dst = strconv.AppendInt(dst, int64(r.Partition), 10)
	dst = append(dst, `,"offset":`...)
	return strconv.AppendInt(dst, r.Offset, 10), replaced
}

func appendHeader(dst []byte, h *Header) (_ []byte, replaced bool) {
	dst, replaced = appendName(append(dst, '['), h.Name)
	dst = append(dst, ',')
	if utf8.Valid(h.Value) {
		return append(appendText(dst, h.Value), ']'), replaced
	}
	return append(appendBase64(dst, h.Value), `,"base64"]`...), replaced
}

// appendName appends a name as a JSON string, with U+FFFD for what is not
// UTF-8: names are for reading.
func appendName(dst []byte, s string) (_ []byte, replaced bool) {
	if utf8.ValidString(s) {
		return appendQuoted(dst, s), false
	}
	return appendQuoted(dst, appendReplaced(nil, []byte(s))), true
}

// appendText appends a JSON string, or null for nil. b is UTF-8.
func appendText(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "null"...)
	}
	return appendQuoted(dst, b)
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

// appendQuoted appends s, which is UTF-8, as a JSON string. No line end gets
// through, so an envelope is one line of data.
func appendQuoted[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}
