package admin

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"
)

func TestStatusGolden(t *testing.T) {
	src := busy()
	started := time.Date(2026, 11, 1, 10, 0, 0, 123_456_789, time.UTC)
	s := newStatus(src.snap, src.ready, "v9.9.9", started, started.Add(90*time.Second+500*time.Microsecond))
	s.GoVersion = "go1.26"
	w := httptest.NewRecorder()
	serveStatus(w, s)
	golden(t, "status.json", w.Body.Bytes())
}

// A script that walks the document must find empty lists and objects in a
// young process, not nulls.
func TestStatusOfNothing(t *testing.T) {
	base, _ := open(t, fake{}, nil)
	_, _, body := do(t, "GET", base+"/status")
	var doc map[string]any
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc) < 20 {
		t.Errorf("only %d fields", len(doc))
	}
	for k, v := range doc {
		if v == nil {
			t.Errorf("%s is null", k)
		}
	}
	if doc["ready"] != true || doc["kafka"].(map[string]any)["topics"] == nil {
		t.Errorf("got %s", body)
	}
}
