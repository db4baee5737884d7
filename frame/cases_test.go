package frame

import (
	"encoding/base64"
	"slices"
	"testing"
	"unicode/utf8"

	"tailcast/internal/ssetest"
)

type sseCase struct{ ssetest.Case }

func (c *sseCase) record() *Record {
	r := &Record{Topic: "events", Partition: 0, Offset: 7, Time: 1700000000000, Key: c.KeyBytes(), Value: c.Value}
	for _, h := range c.Headers {
		r.Headers = append(r.Headers, Header{h.Name, h.Value})
	}
	return r
}

func readCases(t *testing.T) []sseCase {
	t.Helper()
	var cases []sseCase
	for _, c := range ssetest.ReadCases(t, "testdata/sse-cases.json") {
		cases = append(cases, sseCase{c})
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
			got := ssetest.CaseEvent{}
			if event != nil {
				got = ssetest.CaseEvent{Fires: true, Type: event.Type, Data: event.Data}
			}
			if c.Value == nil {
				if want := (ssetest.CaseEvent{Fires: true, Type: "delete", Data: *c.Key}); got != want {
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
