package frame

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tailcast/internal/ssetest"
)

// FuzzAppendEvent encodes a record in each format and compares what a browser
// makes of it with the record.
func FuzzAppendEvent(f *testing.F) {
	f.Fuzz(func(t *testing.T, topic string, key, value []byte, name string, header []byte, bits uint8) {
		r := &Record{Topic: topic, Partition: int32(bits), Offset: int64(len(value)), Time: int64(bits) - 100, Key: key, Value: value}
		if bits&1 != 0 {
			r.Key = nil
		}
		if bits&2 != 0 {
			r.Value = nil
		}
		r.Headers = []Header{{name, header}, {"type", nil}, {"type", header}}
		if bits&4 != 0 {
			r.Headers[2].Value = nil
		}
		for _, f := range []Format{
			{Event: EventName{Header: "type"}},
			{Binary: Base64, Event: EventName{Fixed: "order"}},
			{Binary: Drop, Event: EventName{JSON: "type"}},
			{Envelope: true, Event: EventName{Header: "type"}},
			{Envelope: true, Binary: Base64},
			{MaxEvent: 1 + int(bits)},
		} {
			checkEvent(t, f, r)
		}
	})
}

// checkEvent encodes r and compares. encode has checked that the frame is one
// chunk with one block and our id.
func checkEvent(t *testing.T, f Format, r *Record) {
	t.Helper()
	frame, out, event := encode(t, f, r)
	data := r.Value
	if r.Value == nil {
		data = r.Key
	}
	if f.Binary == Drop && !utf8.Valid(data) {
		if out.Kind != Silent {
			t.Fatalf("not dropped: %q", frame)
		}
		return
	}
	if f.MaxEvent > 0 && len(data) > f.MaxEvent {
		checkSkipped(t, event, r, len(data))
		return
	}
	if want := wantName(f.Event, r); event.Type != want {
		t.Fatalf("%+v: event %q, want %q", f, event.Type, want)
	}
	switch {
	case f.Envelope:
		checkEnvelope(t, event.Data, r, f.Binary == Base64)
	case f.Binary == Base64:
		if event.Data != base64.StdEncoding.EncodeToString(data) {
			t.Fatalf("got %q, want the base64 of %q", event.Data, data)
		}
	default:
		if want := wantData(data); event.Data != want || out.Replaced == utf8.Valid(data) {
			t.Fatalf("got %q, replaced %v, want %q", event.Data, out.Replaced, want)
		}
	}
	again, _ := readFrame(t, AppendReframed(nil, []byte("v1:~cd"), frame, out.Extents))
	if again.Data != event.Data || again.Type != event.Type || again.LastEventID != "v1:~cd" {
		t.Fatalf("with another id: got %q, want %q", again, event)
	}
}

func checkSkipped(t *testing.T, event *ssetest.Event, r *Record, size int) {
	t.Helper()
	var got struct {
		Topic        string
		Partition    int32
		Offset, Size int64
	}
	err := json.Unmarshal([]byte(event.Data), &got)
	if err != nil || event.Type != "skipped" || got.Topic != ssetest.DecodeUTF8(r.Topic) || got.Partition != r.Partition || got.Offset != r.Offset || got.Size != int64(size) {
		t.Fatalf("got %q, %v", event, err)
	}
}

// wantData splits at line ends one by one, and leaves the decoding to the
// other parser.
func wantData(b []byte) string {
	s := strings.ReplaceAll(string(b), "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	stream := "data: " + strings.ReplaceAll(s, "\n", "\ndata: ") + "\n\n"
	return new(ssetest.Parser).Feed([]byte(stream))[0].Data
}

func wantName(n EventName, r *Record) string {
	if r.Value == nil {
		return "delete"
	}
	name := n.Fixed
	switch {
	case n.Header != "":
		name = string(r.Headers[2].Value)
	case n.JSON != "":
		name = firstType(r.Value)
	}
	if !utf8.ValidString(name) || len(name) > 256 || strings.ContainsFunc(name, unicode.IsControl) {
		return "message"
	}
	if name == "" || slices.Contains(strings.Fields("resync delete challenge live skipped error open"), name) {
		return "message"
	}
	return name
}

// firstType is the text of the first field "type" of a JSON object, if that
// is a scalar. What follows it may be anything.
func firstType(doc []byte) string {
	dec := json.NewDecoder(bytes.NewReader(doc))
	if open, _ := dec.Token(); open != json.Delim('{') {
		return ""
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return ""
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return ""
		}
		if name != "type" {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) == nil && raw[0] == '"' {
			return s
		}
		if strings.ContainsAny(string(raw[:1]), "{[n") {
			return ""
		}
		return string(raw)
	}
	return ""
}
