package frame

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"tailcast/internal/ssetest"
)

// TestEventsGolden shows the bytes of every kind of frame.
func TestEventsGolden(t *testing.T) {
	rec := func(key, value string, headers ...Header) *Record {
		r := &Record{Topic: "events", Partition: 3, Offset: 7, Time: 1700000000000, Headers: headers}
		if key != "null" {
			r.Key = []byte(key)
		}
		if value != "null" {
			r.Value = []byte(value)
		}
		return r
	}
	var got strings.Builder
	for _, c := range []struct {
		name string
		f    Format
		r    *Record
	}{
		{"one line", Format{}, rec("k", `{"a":1}`)},
		{"every line end, and one at the end", Format{}, rec("k", "a\nb\rc\r\nd\r\r\n\n")},
		{"empty value", Format{}, rec("k", "")},
		{"spaces and colons stay", Format{}, rec("k", "  x \n:y\ndata: z")},
		{"not UTF-8", Format{}, rec("k", "a\xff\xe2\x82\nb")},
		{"not UTF-8, base64", Format{Binary: Base64}, rec("k", "a\xff\xe2\x82\nb")},
		{"UTF-8, base64", Format{Binary: Base64}, rec("k", "a")},
		{"empty value, base64", Format{Binary: Base64}, rec("k", "")},
		{"fixed name", Format{Event: EventName{Fixed: "order"}}, rec("k", "v")},
		{"name from a header, the last", Format{Event: EventName{Header: "type"}}, rec("k", "v", Header{"type", []byte("a")}, Header{"type", []byte("b")})},
		{"name from the value", Format{Event: EventName{JSON: "meta.type"}}, rec("k", `{"meta":{"type":"order"}}`)},
		{"reserved name", Format{Event: EventName{Header: "type"}}, rec("k", "v", Header{"type", []byte("challenge")})},
		{"tombstone", Format{Event: EventName{Fixed: "order"}}, rec("k", "null")},
		{"tombstone with lines in its key", Format{}, rec("k\nl", "null")},
		{"tombstone with a null key", Format{}, rec("null", "null")},
		{"tombstone, base64", Format{Binary: Base64}, rec("k", "null")},
		{"too large", Format{MaxEvent: 3, Event: EventName{Fixed: "order"}}, rec("k", "four")},
		{"too large a tombstone", Format{MaxEvent: 3}, rec("four", "null")},
		{"envelope", Format{Envelope: true}, rec("k", "v", Header{"a", []byte("1")}, Header{"b", nil})},
		{"envelope of nothing", Format{Envelope: true}, &Record{Topic: "events", Time: -1, Value: []byte{}}},
		{"envelope, escapes", Format{Envelope: true}, rec("k", "\"\\/\n\r\t\x00\x1f\x7f<é\u2028")},
		{"envelope, not UTF-8", Format{Envelope: true}, rec("\xff", "\xfe", Header{"a\xff", []byte("\xff\x00")})},
		{"envelope, base64", Format{Envelope: true, Binary: Base64}, rec("k", "v")},
		{"envelope of a tombstone", Format{Envelope: true, Event: EventName{Fixed: "order"}}, rec("k", "null")},
		{"envelope of a tombstone, base64", Format{Envelope: true, Binary: Base64}, rec("k", "null")},
		{"envelope too large", Format{Envelope: true, MaxEvent: 3}, rec("k", "v", Header{"a", []byte("1")})},
	} {
		frame, _, _ := encode(t, c.f, c.r)
		fmt.Fprintf(&got, "%s\n%s\n", c.name, visible(frame))
	}
	golden(t, "events.golden", got.String())
}

// TestValues: what a page gets of a value, by itself and as the first event of
// a connection, where a reader strips one BOM and no more.
func TestValues(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"\n", "\n"},
		{"\r", "\n"},
		{"\r\n", "\n"},
		{"\n\r", "\n\n"},
		{"\r\r", "\n\n"},
		{"\n\n\n", "\n\n\n"},
		{"a\n\rb", "a\n\nb"},
		{"a\r\n\nb\r", "a\n\nb\n"},
		{"\ra", "\na"},
		{"a\x00b", "a\x00b"},
		{"\x00", "\x00"},
		{"\t\ta\t", "\t\ta\t"},
		{"  a", "  a"},
		{" \n \n", " \n \n"},
		{" ", " "},
		{":", ":"},
		{":\n:", ":\n:"},
		{"data", "data"},
		{"data:", "data:"},
		{"id: 7\nretry: 1\nevent: x\n\n", "id: 7\nretry: 1\nevent: x\n\n"},
		{"undefined", "undefined"},
		{"[DONE]", "[DONE]"},
		{"\uFEFF", "\uFEFF"},
		{"\uFEFF\uFEFFa", "\uFEFF\uFEFFa"},
		{"a\uFEFF\n\uFEFFb", "a\uFEFF\n\uFEFFb"},
		{"\xFE\xFFa", "\uFFFD\uFFFDa"}, // UTF-16 is not looked for
		{"\xEF\xBBa", "\uFFFDa"},
		{"a\xE2\nb\x80\x80", "a\uFFFD\nb\uFFFD\uFFFD"},
		{"\xE2\r\n\x82\xAC", "\uFFFD\n\uFFFD\uFFFD"},
		{"\uFFFE\uFFFF\U0010FFFF", "\uFFFE\uFFFF\U0010FFFF"},
		{"e\u0301\u200D\U0001F468", "e\u0301\u200D\U0001F468"},
		{"\u0085\u2028\u2029\v\f\x1C\x1E", "\u0085\u2028\u2029\v\f\x1C\x1E"},
	} {
		frame, _, event := encode(t, Format{}, &Record{Value: []byte(c.value)})
		if event == nil || event.Type != "message" || event.Data != c.want {
			t.Errorf("%q: got %+v", c.value, event)
		}
		var p ssetest.Parser
		if all := p.Feed(Unchunk(frame)); len(all) != 1 || all[0].Data != c.want {
			t.Errorf("%q at the beginning: got %+v", c.value, all)
		}
	}
}

func TestOutcome(t *testing.T) {
	byHeader := EventName{Header: "h"}
	header := func(v []byte) []Header { return []Header{{"h", v}} }
	for _, c := range []struct {
		name string
		f    Format
		r    Record
		want Outcome
	}{
		{"event", Format{}, Record{Value: []byte("v")}, Outcome{Kind: Event}},
		{"empty value", Format{}, Record{Value: []byte{}}, Outcome{Kind: Event}},
		{"tombstone", Format{}, Record{Key: []byte("k")}, Outcome{Kind: Deleted}},
		{"tombstone, skip", Format{Delete: DeleteSkip}, Record{Key: []byte("k")}, Outcome{}},
		{"tombstone, skip, too large", Format{Delete: DeleteSkip, MaxEvent: 1}, Record{Key: []byte("kk")}, Outcome{}},
		{"empty value, skip", Format{Delete: DeleteSkip}, Record{Value: []byte{}}, Outcome{Kind: Event}},
		{"not UTF-8", Format{}, Record{Value: []byte{0xFF}}, Outcome{Kind: Event, Replaced: true}},
		{"not UTF-8, base64", Format{Binary: Base64}, Record{Value: []byte{0xFF}}, Outcome{Kind: Event}},
		{"not UTF-8, drop", Format{Binary: Drop}, Record{Value: []byte{0xFF}}, Outcome{Dropped: true}},
		{"UTF-8, drop, key is not", Format{Binary: Drop}, Record{Key: []byte{0xFF}, Value: []byte("v")}, Outcome{Kind: Event}},
		{"tombstone, key not UTF-8", Format{}, Record{Key: []byte{0xFF}}, Outcome{Kind: Deleted, Replaced: true}},
		{"tombstone, key not UTF-8, drop", Format{Binary: Drop}, Record{Key: []byte{0xFF}}, Outcome{Dropped: true}},
		{"envelope, not UTF-8", Format{Envelope: true}, Record{Key: []byte{0xFF}, Value: []byte{0xFF}}, Outcome{Kind: Event}},
		{"envelope, not UTF-8, drop", Format{Envelope: true, Binary: Drop}, Record{Value: []byte{0xFF}}, Outcome{Dropped: true}},
		{"envelope of a tombstone, drop", Format{Envelope: true, Binary: Drop}, Record{Key: []byte{0xFF}}, Outcome{Kind: Deleted}},
		{"envelope, header name not UTF-8", Format{Envelope: true}, Record{Value: []byte("v"), Headers: []Header{{"\xff", nil}, {"h", nil}}}, Outcome{Kind: Event, Replaced: true}},
		{"largest", Format{MaxEvent: 3}, Record{Key: []byte("key"), Value: []byte("vvv")}, Outcome{Kind: Event}},
		{"too large", Format{MaxEvent: 3}, Record{Value: []byte("vvvv")}, Outcome{Kind: Skipped}},
		{"too large, drop", Format{MaxEvent: 3, Binary: Drop}, Record{Value: []byte("\xff\xff\xff\xff")}, Outcome{Kind: Skipped}},
		{"largest tombstone", Format{MaxEvent: 3}, Record{Key: []byte("key")}, Outcome{Kind: Deleted}},
		{"largest envelope", Format{Envelope: true, MaxEvent: 4}, Record{Key: []byte("k"), Value: []byte("v"), Headers: header([]byte("x"))}, Outcome{Kind: Event}},
		{"envelope too large", Format{Envelope: true, MaxEvent: 3}, Record{Key: []byte("k"), Value: []byte("v"), Headers: header([]byte("x"))}, Outcome{Kind: Skipped}},
		{"default largest", Format{}, Record{Value: make([]byte, 1<<20)}, Outcome{Kind: Event}},
		{"default too large", Format{}, Record{Value: make([]byte, 1<<20+1)}, Outcome{Kind: Skipped}},
		{"name allowed", Format{Event: byHeader}, Record{Value: []byte("v"), Headers: header([]byte("x"))}, Outcome{Kind: Event}},
		{"name absent", Format{Event: byHeader}, Record{Value: []byte("v")}, Outcome{Kind: Event}},
		{"name null", Format{Event: byHeader}, Record{Value: []byte("v"), Headers: header(nil)}, Outcome{Kind: Event}},
		{"name null, an earlier one is not", Format{Event: byHeader}, Record{Value: []byte("v"), Headers: []Header{{"h", []byte("\n")}, {"h", nil}}}, Outcome{Kind: Event}},
		{"name not allowed", Format{Event: byHeader}, Record{Value: []byte("v"), Headers: header([]byte("open"))}, Outcome{Kind: Event, Unnamed: true}},
		{"name empty", Format{Event: byHeader}, Record{Value: []byte("v"), Headers: header([]byte{})}, Outcome{Kind: Event, Unnamed: true}},
		{"name not allowed, on a tombstone", Format{Event: byHeader}, Record{Headers: header([]byte("open"))}, Outcome{Kind: Deleted}},
		{"field allowed", Format{Event: EventName{JSON: "a"}}, Record{Value: []byte(`{"a":1}`)}, Outcome{Kind: Event}},
		{"field empty", Format{Event: EventName{JSON: "a"}}, Record{Value: []byte(`{"a":""}`)}, Outcome{Kind: Event, Unnamed: true}},
		{"field null", Format{Event: EventName{JSON: "a"}}, Record{Value: []byte(`{"a":null}`)}, Outcome{Kind: Event}},
		{"value is not JSON", Format{Event: EventName{JSON: "a"}}, Record{Value: []byte(`a=1`)}, Outcome{Kind: Event}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got, _ := encode(t, c.f, &c.r)
			got.Extents = Extents{}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestNoRecordForgesAField tries every place of a record that a producer
// fills, in every format.
func TestNoRecordForgesAField(t *testing.T) {
	for _, evil := range []string{"x\ndata: forged\n\n", "x\rdata: forged\r\r", "x\r\nid: 9\r\n\r\n", "\n\nevent: challenge\ndata: {}\n\n", "\x00\nretry: 1\n"} {
		for _, f := range []Format{
			{},
			{Binary: Base64},
			{Envelope: true},
			{Event: EventName{Header: "h"}},
			{Event: EventName{JSON: "h"}},
			{Envelope: true, Event: EventName{Header: "h"}},
			{MaxEvent: 1},
		} {
			quoted, _ := json.Marshal(map[string]string{"h": evil})
			for _, value := range [][]byte{nil, []byte("v"), []byte(evil), quoted} {
				r := &Record{Topic: "t" + evil, Key: []byte(evil), Value: value, Headers: []Header{{evil, []byte(evil)}, {"h", []byte(evil)}}}
				frame, out, event := encode(t, f, r) // checks that it is one block with our id
				want := map[Kind]string{Event: "message", Deleted: "delete", Skipped: "skipped"}[out.Kind]
				if event == nil || event.Type != want {
					t.Errorf("%+v: got %q of %q", f, event, frame)
				}
			}
		}
	}
}

func TestEventNames(t *testing.T) {
	long := strings.Repeat("x", nameBytesMax)
	for _, c := range []struct {
		name string
		want bool
	}{
		{"order.created", true},
		{"message", true},
		{"été", true},
		{"注文", true},
		{"a b: c", true},
		{" a ", true},
		{"Error", true},
		{"errors", true},
		{"\u00a0", true},
		{"À", true},
		{"\U0001F600", true},
		{"\uFEFF", true},
		{long, true},
		{"", false},
		{long + "x", false},
		{"a\nb", false},
		{"a\rb", false},
		{"a\x00", false},
		{"\x1f", false},
		{"a\tb", false},
		{"\x7f", false},
		{"\u0080", false},
		{"a\u0085b", false},
		{"\u009f", false},
		{"\xff", false},
		{"a\xc2", false},
		{"\xc2a", false},
		{"\xed\xa0\x80", false},
		{"resync", false},
		{"delete", false},
		{"challenge", false},
		{"live", false},
		{"skipped", false},
		{"error", false},
		{"open", false},
	} {
		r := &Record{Value: []byte("v"), Headers: []Header{{"h", []byte(c.name)}}}
		_, out, event := encode(t, Format{Event: EventName{Header: "h"}}, r)
		want := "message"
		if c.want {
			want = c.name
		}
		if event.Type != want || out.Unnamed == c.want {
			t.Errorf("%q: event %q, unnamed %v", c.name, event.Type, out.Unnamed)
		}
		_, err := NewEncoder(Format{Event: EventName{Fixed: c.name}})
		if ok := c.want || c.name == ""; ok != (err == nil) {
			t.Errorf("%q as a fixed name: %v", c.name, err)
		}
	}
}

// TestNameIsSoughtInTheFirst64KiB keeps a record from holding up the others.
func TestNameIsSoughtInTheFirst64KiB(t *testing.T) {
	f := Format{Event: EventName{JSON: "type"}}
	const open, field = `{"pad":"`, `","type":"order"`
	for over, want := range []string{"order", "message"} {
		value := open + strings.Repeat("x", jsonBytesMax-len(open)-len(field)+over) + field + "}"
		if _, _, event := encode(t, f, &Record{Value: []byte(value)}); event.Type != want {
			t.Errorf("name ends %d bytes behind: got %q, want %q", over, event.Type, want)
		}
	}
}

func TestNewEncoderNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		f    Format
		want string
	}{
		{Format{Binary: "hex"}, `binary: "hex" is not one of replace, base64, drop`},
		{Format{Delete: "keep"}, `delete: "keep" is not one of event, skip`},
		{Format{MaxEvent: -1}, `max-event: -1 is not within 1 to 268435456 bytes`},
		{Format{MaxEvent: 1 << 30}, `max-event: 1073741824 is not within 1 to 268435456 bytes`},
		{Format{Event: EventName{Fixed: "a", Header: "b"}}, `event: more than one of fixed, header, json is set`},
		{Format{Event: EventName{Header: "a", JSON: "b"}}, `event: more than one of fixed, header, json is set`},
		{Format{Event: EventName{Fixed: "error"}}, `event.fixed: "error" is reserved, over 256 bytes, not UTF-8 or has control characters`},
		{Format{Event: EventName{JSON: "a..b"}}, `event.json: "a..b" has an empty step`},
		{Format{Event: EventName{JSON: "."}}, `event.json: "." has an empty step`},
	} {
		e, err := NewEncoder(c.f)
		if e != nil || err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v", c.f, err)
		}
	}
	for _, f := range []Format{{}, {Binary: Replace, Delete: DeleteEvent, MaxEvent: 1}, {Binary: Drop, Delete: DeleteSkip, MaxEvent: maxEventMost}} {
		if _, err := NewEncoder(f); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// TestGrowingValues encodes values that grow as they are encoded, and so
// defeat the guess of the chunk's length.
func TestGrowingValues(t *testing.T) {
	for _, f := range []Format{{}, {Binary: Base64}, {Envelope: true}} {
		for _, unit := range []string{"x", "\n", "\xff", "\r\n", "\xf0\x9f\x92", `"`} {
			for n := 1; n < 9000; n += 1 + n/4 {
				encode(t, f, &Record{Key: []byte{}, Value: bytes.Repeat([]byte(unit), n)})
			}
		}
	}
}

func TestReplacedLikeABrowser(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"a", "a"},
		{"é€\U0001F600", "é€\U0001F600"},
		{"\uFFFD", "\uFFFD"},
		{"\xff\xfe", "\uFFFD\uFFFD"},
		{"\x80a\xbf", "\uFFFDa\uFFFD"},
		{"\xc0\x80", "\uFFFD\uFFFD"},           // overlong
		{"\xe0\x80\x80", "\uFFFD\uFFFD\uFFFD"}, // overlong
		{"\xe0\x9f\xbf\xe0\xa0\x80", "\uFFFD\uFFFD\uFFFD\u0800"},
		{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"}, // surrogate
		{"\xed\x9f\xbf", "\ud7ff"},
		{"\xf0\x8f\xbf\xbf", "\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"}, // past U+10FFFF
		{"\xf4\x8f\xbf\xbf", "\U0010FFFF"},
		{"\xf5\x80", "\uFFFD\uFFFD"},
		{"\xe2\x82", "\uFFFD"},
		{"\xe2", "\uFFFD"},
		{"\xf0\x9f\x92", "\uFFFD"},
		{"\xf0\x9f", "\uFFFD"},
		{"\xf0\x9f\x92x", "\uFFFDx"},
		{"\xe2\x82\xe2\x82\xac", "\uFFFD€"},
		{"\xf0\x9f\xe2\x82", "\uFFFD\uFFFD"},
		{"\xc3\xc3\xa9", "\uFFFDé"},
		{"caf\xe9 cr\xe8me", "caf\uFFFD cr\uFFFDme"},
	} {
		if got := string(appendReplaced([]byte("<"), []byte(c.in))); got != "<"+c.want {
			t.Errorf("%q: got %q, want %q", c.in, got[1:], c.want)
		}
	}
}

func TestReframed(t *testing.T) {
	for name, frame := range map[string][]byte{
		"event":  first(encode(t, Format{Event: EventName{Fixed: "x"}}, &Record{Value: []byte("a\nb")})),
		"resync": AppendResync(nil, []byte(testID), TooFar, nil),
		"id":     AppendIDBlock(nil, []byte(testID)),
		"no id":  AppendRetry(nil, 2000),
	} {
		for _, id := range []string{"v1:0-8~ab3f9", "v1:", "v2." + strings.Repeat("A", 700)} {
			was, _ := readFrame(t, frame)
			got := AppendReframed([]byte("before"), []byte(id), frame, Measure(frame))
			got, ok := bytes.CutPrefix(got, []byte("before"))
			if !ok {
				t.Fatal("what was in dst is gone")
			}
			event, lastID := readFrame(t, got)
			if was != nil {
				was.LastEventID = id
			}
			if lastID != id || !reflect.DeepEqual(event, was) {
				t.Errorf("%s as %.20s: got %v, id %.20s", name, id, event, lastID)
			}
		}
	}
}

func first(frame []byte, _ Outcome, _ *ssetest.Event) []byte { return frame }

// envelope is what a page's JSON.parse would find.
type envelope struct {
	Topic       *string
	Partition   *int32
	Offset      *int64
	Timestamp   *int64
	Key         *string
	KeyBase64   []byte `json:"key_base64"`
	Headers     [][]*string
	Value       *string
	ValueBase64 []byte `json:"value_base64"`
}

// checkEnvelope compares data with the record it was made of.
func checkEnvelope(t testing.TB, data string, r *Record, allBase64 bool) {
	t.Helper()
	if strings.ContainsAny(data, "\r\n") {
		t.Errorf("not one line: %q", data)
	}
	var env envelope
	dec := json.NewDecoder(strings.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&env); err != nil {
		t.Errorf("%v in %.300q", err, data)
		return
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal([]byte(data), &names); err != nil || len(names) != 7 {
		t.Errorf("%v, %d fields: %.300q", err, len(names), data)
	}
	if got, want := *env.Topic, ssetest.DecodeUTF8(r.Topic); got != want {
		t.Errorf("topic %q, want %q", got, want)
	}
	if *env.Partition != r.Partition || *env.Offset != r.Offset {
		t.Errorf("partition %d offset %d, want %d and %d", *env.Partition, *env.Offset, r.Partition, r.Offset)
	}
	if (env.Timestamp == nil) != (r.Time < 0) || env.Timestamp != nil && *env.Timestamp != r.Time {
		t.Errorf("timestamp %v, want %d", env.Timestamp, r.Time)
	}
	checkText(t, "key", names, env.Key, env.KeyBase64, r.Key, false)
	checkText(t, "value", names, env.Value, env.ValueBase64, r.Value, allBase64 && r.Value != nil)
	if len(env.Headers) != len(r.Headers) {
		t.Errorf("%d headers, want %d", len(env.Headers), len(r.Headers))
		return
	}
	for i, h := range env.Headers {
		want := r.Headers[i]
		if len(h) < 2 || *h[0] != ssetest.DecodeUTF8(want.Name) {
			t.Errorf("header %d is not of name %q", i, want.Name)
			continue
		}
		switch {
		case want.Value == nil:
			if len(h) != 2 || h[1] != nil {
				t.Errorf("header %d is not null", i)
			}
		case utf8.Valid(want.Value):
			if len(h) != 2 || *h[1] != string(want.Value) {
				t.Errorf("header %d is %q, want %q", i, *h[1], want.Value)
			}
		default:
			if len(h) != 3 || *h[2] != "base64" || *h[1] != base64.StdEncoding.EncodeToString(want.Value) {
				t.Errorf("header %d of %q is %q", i, want.Value, *h[1])
			}
		}
	}
}

func checkText(t testing.TB, name string, names map[string]json.RawMessage, text *string, bin, want []byte, allBase64 bool) {
	t.Helper()
	_, isText := names[name]
	_, isBase64 := names[name+"_base64"]
	wantText := utf8.Valid(want) && !allBase64
	switch {
	case isText != wantText || isBase64 == wantText:
		t.Errorf("%s is text: %v, base64: %v", name, isText, isBase64)
	case isText && (text == nil) != (want == nil):
		t.Errorf("%s is null: %v, want %v", name, text == nil, want == nil)
	case isText && text != nil && *text != string(want):
		t.Errorf("%s is %.200q, want %.200q", name, *text, want)
	case isBase64 && !bytes.Equal(bin, want):
		t.Errorf("%s is %.200q, want %.200q", name, bin, want)
	}
}
