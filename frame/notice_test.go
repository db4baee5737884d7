package frame

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tailcast/internal/ssetest"
)

// TestNoticesGolden shows the bytes of every frame that no record caused.
func TestNoticesGolden(t *testing.T) {
	id := []byte(testID)
	var got strings.Builder
	show := func(name string, frame []byte) {
		fmt.Fprintf(&got, "%s\n%s\n", name, visible(frame))
	}
	show("preamble", AppendPreamble(nil, 2000, id))
	show("preamble, position not known", AppendPreamble(nil, 2000, nil))
	show("preamble, retry too short", AppendPreamble(nil, 0, id))
	show("id block", AppendIDBlock(nil, id))
	show("retry", AppendRetry(nil, 12345))
	show("retry line", AppendRetryLine(nil, 12345))
	show("heartbeat", []byte(Heartbeat))
	show("last chunk", []byte(LastChunk))
	show("resync without ranges", AppendResync(nil, id, UnknownID, nil))
	show("resync", AppendResync(nil, id, Expired, []Range{{"events", 1, 101, 499}}))
	show("resync, ends not known", AppendResync(nil, id, Truncated, []Range{{"events", 0, -1, 4}, {"events", 2, 0, -1}}))
	show("resync of several topics", AppendResync(nil, id, TooFar, []Range{
		{"a", 0, 1, 2}, {"b", 0, 3, 4}, {"a", 1, 5, 6}, {"c\"\n\xff", 0, 7, 8}, {"b", 1, 9, 9},
	}))
	show("resync that names topics", AppendResync(nil, id, Recreated, []Range{{"a", Whole, 0, 0}, {"b", Whole, 0, 0}}))
	golden(t, "notices.golden", got.String())
}

func TestNotices(t *testing.T) {
	id := []byte("v1:0-9~ab3f9")
	for _, c := range []struct {
		name      string
		frame     []byte
		event, id string
	}{
		{"preamble", AppendPreamble(nil, 2000, id), "", "v1:0-9~ab3f9"},
		{"id block", AppendIDBlock(nil, id), "", "v1:0-9~ab3f9"},
		{"retry", AppendRetry(nil, 2000), "", firstID},
		{"resync", AppendResync(nil, id, Expired, nil), "resync", "v1:0-9~ab3f9"},
	} {
		event, lastID := readFrame(t, c.frame)
		if event == nil {
			event = &ssetest.Event{}
		}
		if event.Type != c.event || lastID != c.id {
			t.Errorf("%s: event %q, id %q", c.name, event.Type, lastID)
		}
	}
}

// TestFirstIDIsThereBeforeTheFirstEvent: a stream that breaks early resumes,
// also if Kafka was away when it began.
func TestFirstIDIsThereBeforeTheFirstEvent(t *testing.T) {
	var p ssetest.Parser
	p.Feed(Unchunk(AppendPreamble(nil, 2000, nil)))
	if millis, ok := p.Retry(); millis != 2000 || !ok || p.LastEventID() != "" || p.Comments != 1 {
		t.Errorf("retry %d, id %q, %d comments", millis, p.LastEventID(), p.Comments)
	}
	p.Feed(Unchunk(AppendIDBlock(nil, []byte(testID))))
	if p.LastEventID() != testID {
		t.Errorf("id %q", p.LastEventID())
	}
}

// TestNoBlockWithoutID: at the end of a block a reader takes over the id that
// it read on this connection. What comes before the first id is lines.
func TestNoBlockWithoutID(t *testing.T) {
	for name, f := range map[string][]byte{
		"position not known": AppendPreamble(nil, 2000, nil), "retry": AppendRetryLine(nil, 2000), "heartbeat": []byte(Heartbeat),
	} {
		if bytes.Contains(f, []byte("\n\n")) {
			t.Errorf("%s: %q ends a block", name, f)
		}
	}
}

func TestHeartbeatIsOneCommentLine(t *testing.T) {
	var d ssetest.Chunks
	var p ssetest.Parser
	for range 3 {
		data, err := d.Feed([]byte(Heartbeat))
		if events := p.Feed(data); err != nil || len(events) > 0 || string(data) != ":\n" || string(Unchunk([]byte(Heartbeat))) != ":\n" {
			t.Fatalf("got %q, %v, %v", data, events, err)
		}
	}
	if p.Comments != 3 || d.Count != 3 {
		t.Errorf("%d comments in %d chunks", p.Comments, d.Count)
	}
}

func TestRetryIsAtLeastASecond(t *testing.T) {
	for given, want := range map[int]int{-5: 1000, 0: 1000, 999: 1000, 1000: 1000, 1001: 1001, 86400000: 86400000} {
		for name, frame := range map[string][]byte{"preamble": AppendPreamble(nil, given, nil), "retry": AppendRetry(nil, given)} {
			var p ssetest.Parser
			p.Feed(Unchunk(frame))
			if got, _ := p.Retry(); got != want {
				t.Errorf("%s of %d: got %d, want %d", name, given, got, want)
			}
		}
	}
}

func TestMeasureWithoutID(t *testing.T) {
	if got, want := Measure([]byte(Heartbeat)), (Extents{Head: 3, ID: 0, Block: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
