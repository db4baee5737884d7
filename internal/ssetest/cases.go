package ssetest

import (
	"encoding/json"
	"os"
	"testing"
)

// Case is a record that went wrong in some server or client, and what an
// EventSource has to see of it. The file says where each comes from.
type Case struct {
	ID        string
	Note      string
	Key       *string
	KeyBase64 []byte `json:"key_base64"`
	Value     []byte `json:"value_base64"` // nil for null
	Headers   []struct {
		Name  string
		Value []byte `json:"value_base64"`
	}
	Want     CaseEvent   `json:"expect_event"`
	Alt      []CaseEvent `json:"expect_alt"`
	Requires string
}

// CaseEvent is what a page sees of a case; nothing if it doesn't fire.
type CaseEvent struct {
	Fires bool
	Type  string
	Data  string
}

// KeyBytes is the record's key, nil for null.
func (c *Case) KeyBytes() []byte {
	if c.Key != nil {
		return []byte(*c.Key)
	}
	return c.KeyBase64
}

// casesMin is how many cases there were when the file was made; it only grows.
const casesMin = 37

// ReadCases reads a file of cases.
func ReadCases(t testing.TB, path string) []Case {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	if err := json.Unmarshal(file, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < casesMin {
		t.Fatalf("%s: %d cases", path, len(cases))
	}
	return cases
}
