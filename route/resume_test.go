package route

import (
	"strings"
	"testing"
)

func TestResumeID(t *testing.T) {
	for _, tc := range []struct {
		header string
		twice  bool // the header came in two lines
		query  string
		want   string // "none", "foreign" or the id after "="
	}{
		{"", false, "", "none"},
		{"v1:0-9", false, "", "=v1:0-9"},
		{"v1:0-9", false, "lastEventId=v1:0-5", "=v1:0-9"}, // the URL is for ever, the header is newer
		{"a", true, "", "foreign"},
		{"", true, "", "foreign"},
		{"a", true, "lastEventId=v1:0-5", "foreign"},
		{"\xe2\x80\xa6", false, "", "=\xe2\x80\xa6"}, // not ours, which the parser of ids will say
		{"%76", false, "", "=%76"},                   // a header is not escaped
		{"", false, "lastEventId=v1:0-5", "=v1:0-5"},
		{"", false, "last_event_id=v1:0-5", "=v1:0-5"},
		{"", false, "evs_last_event_id=v1:0-5", "=v1:0-5"},
		{"", false, "evs_last_event_id=c&last_event_id=b&lastEventId=a", "=a"},
		{"", false, "evs_last_event_id=c&last_event_id=b&lastEventId=", "=b"},
		{"", false, "lastEventId&evs_last_event_id=c", "=c"},
		{"", false, "lastEventId=", "none"},
		{"", false, "lastEventId", "none"},
		{"", false, "&&=&=x&x=", "none"},
		{"", false, "lasteventid=a", "none"},
		{"", false, "xlastEventId=a&lastEventIdx=b", "none"},
		{"", false, "access_token=x&lastEventId=v1%3A0-5.1-6%7Eab3f9&y", "=v1:0-5.1-6~ab3f9"},
		{"", false, "lastEventId=%76%31%3a", "=v1:"},
		{"", false, "lastEventId=%2561", "=%61"}, // once
		{"", false, "lastEventId=a+b", "=a+b"},
		{"", false, "lastEventId=a;x=1", "=a;x=1"},
		{"", false, "lastEventId=a=b", "=a=b"},
		{"", false, "lastEventId=a&lastEventId=a", "foreign"},
		{"", false, "lastEventId=&lastEventId=a", "foreign"},
		{"", false, "lastEventId=a%zz", "foreign"},
		{"", false, "lastEventId=%", "foreign"},
		{"", false, "lastEventId=%4", "foreign"},
		{"", false, "lastEventId=a%4g", "foreign"},
		{"", false, "lastEventId=a+b%zz;x=1&lastEventId=c&access_token=%", "foreign"},
		{"", false, "lastEventId=a%00", "=a\x00"},
	} {
		r := ResumeID([]byte(tc.header), tc.twice, []byte(tc.query), nil)
		got := [...]string{"none", "foreign", "="}[r.Kind] + string(r.ID)
		if got != tc.want {
			t.Errorf("ResumeID(%q, %v, %q) = %q, want %q", tc.header, tc.twice, tc.query, got, tc.want)
		}
	}
}

// An id without escapes is not copied; one with escapes lands in the scratch.
func TestResumeIDAliases(t *testing.T) {
	query, scratch := []byte("lastEventId=v1:0-5"), make([]byte, 0, 64)
	r := ResumeID(nil, false, query, scratch)
	if &r.ID[0] != &query[len("lastEventId=")] {
		t.Error("a plain id was copied")
	}
	r = ResumeID(nil, false, []byte("lastEventId=v1%3A0-5"), scratch)
	if &r.ID[0] != &scratch[:1][0] {
		t.Error("a decoded id is not in the scratch")
	}
}

// The longest head that is read holds less than 16 KiB of query.
func TestResumeIDLong(t *testing.T) {
	query := "lastEventId=" + strings.Repeat("%61", 5000)
	r := ResumeID(nil, false, []byte(query), make([]byte, 0, 16<<10))
	if r.Kind != ResumeGiven || string(r.ID) != strings.Repeat("a", 5000) {
		t.Fatalf("got kind %d and %d bytes", r.Kind, len(r.ID))
	}
}
