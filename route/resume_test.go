package route

import (
	"strings"
	"testing"
)

func TestResumeID(t *testing.T) {
	for _, tc := range []struct {
		header string
		lines  int
		query  string
		want   string // "none", "foreign" or the id after "="
	}{
		{"", 0, "", "none"},
		{"v1:0-9", 1, "", "=v1:0-9"},
		{"", 1, "", "none"},
		{"", 1, "lastEventId=v1:0-5", "=v1:0-5"},
		{"v1:0-9", 1, "lastEventId=v1:0-5", "=v1:0-9"}, // the URL is for ever, the header is newer
		{"a", 2, "", "foreign"},
		{"", 2, "", "foreign"},
		{"a", 2, "lastEventId=v1:0-5", "foreign"},
		{"\xe2\x80\xa6", 1, "", "=\xe2\x80\xa6"}, // not ours, which the parser of ids will say
		{"%76", 1, "", "=%76"},                   // a header is not escaped
		{"", 0, "lastEventId=v1:0-5", "=v1:0-5"},
		{"", 0, "last_event_id=v1:0-5", "=v1:0-5"},
		{"", 0, "evs_last_event_id=v1:0-5", "=v1:0-5"},
		{"", 0, "evs_last_event_id=c&last_event_id=b&lastEventId=a", "=a"},
		{"", 0, "evs_last_event_id=c&last_event_id=b&lastEventId=", "=b"},
		{"", 0, "lastEventId&evs_last_event_id=c", "=c"},
		{"", 0, "lastEventId=", "none"},
		{"", 0, "lastEventId", "none"},
		{"", 0, "&&=&=x&x=", "none"},
		{"", 0, "lasteventid=a", "none"},
		{"", 0, "xlastEventId=a&lastEventIdx=b", "none"},
		{"", 0, "access_token=x&lastEventId=v1%3A0-5.1-6%7Eab3f9&y", "=v1:0-5.1-6~ab3f9"},
		{"", 0, "lastEventId=%76%31%3a", "=v1:"},
		{"", 0, "lastEventId=%2561", "=%61"}, // once
		{"", 0, "lastEventId=a+b", "=a+b"},
		{"", 0, "lastEventId=a;x=1", "=a;x=1"},
		{"", 0, "lastEventId=a=b", "=a=b"},
		{"", 0, "lastEventId=a&lastEventId=a", "foreign"},
		{"", 0, "lastEventId=&lastEventId=a", "foreign"},
		{"", 0, "lastEventId=a%zz", "foreign"},
		{"", 0, "lastEventId=%", "foreign"},
		{"", 0, "lastEventId=%4", "foreign"},
		{"", 0, "lastEventId=a%4g", "foreign"},
		{"", 0, "lastEventId=a+b%zz;x=1&lastEventId=c&access_token=%", "foreign"},
		{"", 0, "lastEventId=a%00", "=a\x00"},
	} {
		r := ResumeID([]byte(tc.header), tc.lines, []byte(tc.query), nil)
		got := [...]string{"none", "foreign", "="}[r.Kind] + string(r.ID)
		if got != tc.want {
			t.Errorf("ResumeID(%q, %d, %q) = %q, want %q", tc.header, tc.lines, tc.query, got, tc.want)
		}
	}
}

// An id without escapes is not copied; one with escapes lands in the scratch.
func TestResumeIDAliases(t *testing.T) {
	query, scratch := []byte("lastEventId=v1:0-5"), make([]byte, 0, 64)
	r := ResumeID(nil, 0, query, scratch)
	if &r.ID[0] != &query[len("lastEventId=")] {
		t.Error("a plain id was copied")
	}
	r = ResumeID(nil, 0, []byte("lastEventId=v1%3A0-5"), scratch)
	if &r.ID[0] != &scratch[:1][0] {
		t.Error("a decoded id is not in the scratch")
	}
}

// The longest head that is read holds less than 16 KiB of query.
func TestResumeIDLong(t *testing.T) {
	query := "lastEventId=" + strings.Repeat("%61", 5000)
	r := ResumeID(nil, 0, []byte(query), make([]byte, 0, 16<<10))
	if r.Kind != ResumeGiven || string(r.ID) != strings.Repeat("a", 5000) {
		t.Fatalf("got kind %d and %d bytes", r.Kind, len(r.ID))
	}
}
