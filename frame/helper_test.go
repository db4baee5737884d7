package frame

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"tailcast/internal/ssetest"
)

// update rewrites golden files; read the diff before it is committed.
var update = flag.Bool("update", false, "rewrite the golden files")

// testID is the id of the event under test, and firstID the stream's before it.
const (
	firstID = "v1:~ab3f9"
	testID  = "v1:0-7~ab3f9"
)

func rawURL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func mustEncoder(t testing.TB, f Format) *Encoder {
	t.Helper()
	e, err := NewEncoder(f)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// encode returns the frame of r, which is checked to be one by readFrame, and
// what a browser makes of it: no event or one.
func encode(t testing.TB, f Format, r *Record) (frame []byte, out Outcome, event *ssetest.Event) {
	t.Helper()
	e := mustEncoder(t, f)
	got, out := e.AppendEvent([]byte("before"), []byte(testID), r)
	frame, ok := bytes.CutPrefix(got, []byte("before"))
	if !ok {
		t.Fatal("what was in dst is gone")
	}
	if out.Kind == Silent {
		if len(frame) > 0 || out != (Outcome{Dropped: out.Dropped}) {
			t.Fatalf("silent, but %q, %+v", frame, out)
		}
		return nil, out, nil
	}
	if m := Measure(frame); m != out.Extents {
		t.Fatalf("extents %+v, measured %+v", out.Extents, m)
	}
	event, lastID := readFrame(t, frame)
	if lastID != testID {
		t.Fatalf("id %q", lastID)
	}
	return frame, out, event
}

// readFrame checks that frame is one chunk with one block, and returns the
// event that a browser with firstID makes of it, and the id that it has then.
func readFrame(t testing.TB, frame []byte) (event *ssetest.Event, lastID string) {
	t.Helper()
	x := Measure(frame)
	if x.Len() != len(frame) {
		t.Fatalf("%+v does not measure %d bytes", x, len(frame))
	}
	if want := fmt.Sprintf("%x\r\n", x.Block); string(frame[:x.Head]) != want {
		t.Fatalf("chunk head %q, want %q", frame[:x.Head], want)
	}
	if !bytes.HasSuffix(frame, []byte("\n\n\r\n")) {
		t.Fatalf("the chunk ends in %q", frame[max(0, len(frame)-4):])
	}
	if block := Unchunk(frame); bytes.ContainsRune(block, '\r') || bytes.Index(block, []byte("\n\n")) != len(block)-2 {
		t.Fatalf("not one block of lines that end in LF: %.200q", block)
	}

	stream := AppendPreamble(nil, 2000, []byte(firstID))
	stream = append(stream, frame...)
	stream = append(stream, Heartbeat...)
	stream = append(stream, LastChunk...)
	var d ssetest.Chunks
	body, err := d.Feed(stream)
	if err != nil || !d.Done || d.Count != 3 {
		t.Fatalf("%d chunks, done: %v, error: %v", d.Count, d.Done, err)
	}
	var p ssetest.Parser
	events := p.Feed(body)
	if len(events) > 1 {
		t.Fatalf("%d events: %q", len(events), events)
	}
	if len(events) == 1 {
		event = &events[0]
		if event.LastEventID != p.LastEventID() {
			t.Fatalf("event has id %q, the stream %q", event.LastEventID, p.LastEventID())
		}
	}
	return event, p.LastEventID()
}

// visible writes wire bytes as text with one line for each of theirs.
func visible(b []byte) string {
	var s strings.Builder
	for line := range bytes.Lines(b) {
		q := fmt.Sprintf("%q", line)
		s.WriteString("    " + strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`) + "\n")
	}
	return s.String()
}

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := "testdata/" + file
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range gotLines {
		if i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d (go test -update rewrites it): got\n%s", path, i+1, gotLines[i])
		}
	}
	t.Fatalf("%s has %d lines, got %d", path, len(wantLines), len(gotLines))
}
