package frame

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"unicode/utf8"

	"tailcast/internal/ssetest"
)

// sseCase is a record that went wrong in some server or client, and what an
// EventSource has to see of it. The file says where it comes from.
type sseCase struct {
	ID        string
	Note      string
	Key       *string
	KeyBase64 []byte `json:"key_base64"`
	Value     []byte `json:"value_base64"` // nil for null
	Headers   []struct {
		Name  string
		Value []byte `json:"value_base64"`
	}
	Want     caseEvent   `json:"expect_event"`
	Alt      []caseEvent `json:"expect_alt"`
	Requires string
}

type caseEvent struct {
	Fires bool
	Type  string
	Data  string
}

func (c *sseCase) record() *Record {
	r := &Record{Topic: "events", Partition: 0, Offset: 7, Time: 1700000000000, Key: c.KeyBase64, Value: c.Value}
	if c.Key != nil {
		r.Key = []byte(*c.Key)
	}
	for _, h := range c.Headers {
		r.Headers = append(r.Headers, Header{h.Name, h.Value})
	}
	return r
}

func readCases(t *testing.T) []sseCase {
	t.Helper()
	file, err := os.ReadFile("testdata/sse-cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []sseCase
	if err := json.Unmarshal(file, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 37 {
		t.Fatalf("%d cases", len(cases))
	}
	return cases
}

// format is what the case needs: nothing, or names from a header.
func (c *sseCase) format(t *testing.T) Format {
	t.Helper()
	switch c.Requires {
	case "":
		return Format{}
	case "event type is mapped from the record header `event-type`":
		return Format{Event: EventName{Header: "event-type"}}
	}
	t.Fatalf("needs %q", c.Requires)
	return Format{}
}

// TestCasesRaw also feeds each stream cut at every place.
func TestCasesRaw(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			frame, _, event := encode(t, c.format(t), c.record())
			got := caseEvent{}
			if event != nil {
				got = caseEvent{true, event.Type, event.Data}
			}
			if c.Value == nil {
				if want := (caseEvent{true, "delete", *c.Key}); got != want {
					t.Errorf("%s: got %+v, want %+v", c.Note, got, want)
				}
			} else if got != c.Want && !slices.Contains(c.Alt, got) {
				t.Errorf("%s: got %+v, want %+v", c.Note, got, c.Want)
			}
			splitAnywhere(t, frame, event)
		})
	}
}

// splitAnywhere feeds the frame byte by byte, then cut in two at every place;
// a long one at fifty.
func splitAnywhere(t *testing.T, frame []byte, want *ssetest.Event) {
	t.Helper()
	step := 1
	if len(frame) > 4096 {
		step = len(frame) / 50
	}
	for cut := -1; cut < len(frame); cut += step {
		var events []ssetest.Event
		s := ssetest.Stream{}
		feed := func(b []byte) {
			e, err := s.Feed(b)
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			events = append(events, e...)
		}
		feed([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		if cut < 0 {
			for i := range frame {
				feed(frame[i : i+1])
			}
		} else {
			feed(frame[:cut])
			feed(frame[cut:])
		}
		if len(events) != 1 || events[0] != *want {
			t.Fatalf("cut at %d: got %.200q, want %.200q", cut, events, want)
		}
	}
}

func TestCasesBase64(t *testing.T) {
	for _, c := range readCases(t) {
		f := c.format(t)
		f.Binary = Base64
		r := c.record()
		want := r.Value
		if want == nil {
			want = r.Key
		}
		_, _, event := encode(t, f, r)
		if got, err := base64.StdEncoding.DecodeString(event.Data); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %.200q, %v, want %.200q", c.ID, got, err, want)
		}
	}
}

func TestCasesDrop(t *testing.T) {
	for _, c := range readCases(t) {
		f := c.format(t)
		f.Binary = Drop
		_, out, event := encode(t, f, c.record())
		if fires := utf8.Valid(c.Value); fires != (event != nil) || fires == (out.Kind == Silent) {
			t.Errorf("%s: kind %d, event %.200q", c.ID, out.Kind, event)
		}
	}
}

func TestCasesEnvelope(t *testing.T) {
	for _, c := range readCases(t) {
		f := c.format(t)
		f.Envelope = true
		r := c.record()
		_, _, event := encode(t, f, r)
		checkEnvelope(t, event.Data, r, false)
	}
}
