package frame

import (
	"strings"
	"testing"
)

// With KeyID an event's id begins with its key, a copy with another position
// keeps it, and both are read as the position.
func TestKeyID(t *testing.T) {
	const at, later = "v1:0-7~ab3f9", "v2.AQEKBQEAAg"
	long := strings.Repeat("k", keyIDMax+1)
	for _, tc := range []struct {
		key    []byte
		format Format
		want   string // before the position
	}{
		{[]byte("key"), Format{KeyID: true}, "a2V5/"},
		{[]byte("key"), Format{}, ""},
		{[]byte("\xff\xfe?"), Format{KeyID: true}, "__4_/"},
		{[]byte{}, Format{KeyID: true}, "/"},
		{nil, Format{KeyID: true}, ""},
		{[]byte(long[1:]), Format{KeyID: true}, strings.Repeat("a2tr", keyIDMax/3) + "aw/"},
		{[]byte(long), Format{KeyID: true}, ""},
		{[]byte("key"), Format{KeyID: true, Envelope: true}, "a2V5/"},
		{[]byte("key"), Format{KeyID: true, MaxEvent: 1}, "a2V5/"}, // skipped
	} {
		for _, value := range [][]byte{[]byte("value"), nil} {
			e, err := NewEncoder(tc.format)
			if err != nil {
				t.Fatal(err)
			}
			fr, _ := e.AppendEvent(nil, []byte(at), &Record{Topic: "t", Key: tc.key, Value: value})
			if got := idOf(t, fr); got != tc.want+at {
				t.Errorf("key %.20q, %+v: id %.60q, want %.60q", tc.key, tc.format, got, tc.want+at)
			}
			again := AppendReframed(nil, []byte(later), fr, Measure(fr))
			if got := idOf(t, again); got != tc.want+later {
				t.Errorf("key %.20q: reframed as %.60q, want %.60q", tc.key, got, tc.want+later)
			}
			if Len(again) != len(again) {
				t.Errorf("a frame of %d bytes says %d", len(again), Len(again))
			}
			pos, err := ParseID([]byte(tc.want + at))
			if err != nil || string(AppendID(nil, pos)) != at {
				t.Errorf("%.60q is read as %v, %v", tc.want+at, pos, err)
			}
		}
	}
}

func idOf(t *testing.T, fr []byte) string {
	t.Helper()
	line, _, _ := strings.Cut(string(Unchunk(fr)), "\n")
	id, ok := strings.CutPrefix(line, "id: ")
	if !ok {
		t.Fatalf("no id in %q", fr)
	}
	return id
}

func TestParseIDRefusesOtherPrefixes(t *testing.T) {
	for _, id := range []string{"a b/v1:0-7", "a/b/v1:0-7", "a2V5/", "a2V5/7", "a2V5=/v1:0-7", "/", "v1:0-7/v1:0-7"} {
		if pos, err := ParseID([]byte(id)); err == nil {
			t.Errorf("%q is read as %v", id, pos)
		}
	}
}
