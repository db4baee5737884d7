package frame

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// spell is a position with what an id can't say.
func spell(f Foreign) string {
	var b strings.Builder
	for _, g := range f.Position {
		fmt.Fprintf(&b, "%s", AppendID(nil, Position{{Tag: g.Tag, Parts: g.Parts}}))
		if g.Rest {
			b.WriteString(" rest")
		}
		b.WriteByte(' ')
	}
	if f.Since != 0 {
		fmt.Fprintf(&b, "since %d", f.Since)
	}
	return strings.TrimSpace(b.String())
}

// progress is Zilla's encoding of pairs of partition and next offset.
func progress(numbers ...int64) string {
	b := binary.AppendVarint([]byte{1}, int64(len(numbers)/2))
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return base64.URLEncoding.EncodeToString(b)
}

// tag is what ids of ours say of a topic by its name alone.
func tag(name string) string {
	n := MakeTag(name, TopicID{}).Name
	return "~" + string(n[:])
}

// foreignIDs are ids of others, and what they spell.
var foreignIDs = []struct{ id, want string }{
	{"AQQABAIC", "v1:0-1.1-0"}, // as Zilla's own tests have it: 0 is at 2, 1 at 1
	{"AQQABgIC", "v1:0-2.1-0"},
	{progress(0, 2, 1, 1), "v1:0-1.1-0"},
	{"AQQABAIC/etag", "v1:0-1.1-0"},
	{"AQQABAIC/a/b,c", "v1:0-1.1-0"},
	{`["a2V5","AQQABAIC"]`, "v1:0-1.1-0"},
	{`["a2V5","AQQABAIC/etag"]`, "v1:0-1.1-0"},
	{`[null,"AQQABAIC"]`, "v1:0-1.1-0"},
	{`["a2V5","AQQABAIC/"33a64df5""]`, "v1:0-1.1-0"}, // Zilla does not escape what is in a record
	{`[null,"AQQABAIC/W/"a,"b\""]`, "v1:0-1.1-0"},
	{`["a2V5","AQQABAIC"33""]`, "error"},
	{`["a2V5","AQQABAIC/"33"`, "error"},
	{`["a2V5","AQQABA/"33""]`, "error"},
	{` ["a2V5", "AQQABAIC"] `, "error"}, // a header has no blanks around it
	{`["a2V5", "AQQABAIC"]`, "v1:0-1.1-0"},
	{progress(), "v1:"},
	{progress(1, 7, 0, 5), "v1:0-4.1-6"},
	{progress(0, 0, 1, -2, 2, 9), "v1:2-8"}, // historical is what is left out
	{progress(0, -1, 1, 4), "v1:0-*.1-3"},   // live is the start policy
	{progress(0, 1<<62, 2147483647, 3), "v1:0-4611686018427387903.2147483647-2"},
	{progress(0, 5, 0, 6), "error"},
	{progress(-1, 5), "error"},
	{progress(1<<31, 5), "error"},
	{progress(0, -3), "error"},
	{progress(0, 5)[:4], "error"},
	{strings.TrimRight(progress(0, 200), "="), "error"}, // Zilla pads
	{"AgQABAIC", "error"},                               // version 2
	{"AQQABAIC" + "AAAA", "error"},
	{"AQQABA\nIC", "error"},
	{"AQ==", "error"},
	{"", "error"},
	{"17", "error"},
	{"[]", "error"},
	{"[1,2]", "error"},
	{`["a","b","c"]`, "error"},
	{`["a",null]`, "error"},
	{"[", "error"},
	{`[{"topic":"a","partition":0,"offset":12}]`, "v1:0-11" + tag("a") + " rest"},
	{`[{"topic":"a","partition":1,"offset":12},{"topic":"b","partition":0,"offset":1},{"topic":"a","partition":0,"offset":3}]`, "v1:0-2.1-11" + tag("a") + " rest v1:0-0" + tag("b") + " rest"},
	{`[{"topic":"a","partition":0,"offset":-1}]`, "v1:0-*" + tag("a") + " rest"},
	{`[{"topic":"a","partition":0,"offset":0}]`, "v1:" + tag("a") + " rest"},
	{`[{"topic":"a","partition":0,"timestamp":1500}]`, "v1:0-*" + tag("a") + " rest since 1500"},
	{`[{"topic":"a","partition":0,"timestamp":1500},{"topic":"b","partition":0,"timestamp":1400}]`, "v1:0-*" + tag("a") + " rest v1:0-*" + tag("b") + " rest since 1400"},
	{`[{"topic":"a","partition":0,"offset":5,"timestamp":1500}]`, "v1:0-4" + tag("a") + " rest"},
	{`[{"topic":"a","partition":0,"offset":-1,"timestamp":1500}]`, "v1:0-*" + tag("a") + " rest since 1500"},
	{`[{"topic":"a","partition":0}]`, "error"},
	{`[{"topic":"a","offset":5}]`, "error"},
	{`[{"partition":0,"offset":5}]`, "error"},
	{`[{"topic":"a","partition":-1,"offset":5}]`, "error"},
	{`[{"topic":"a","partition":2147483648,"offset":5}]`, "error"},
	{`[{"topic":"a","partition":0,"offset":1.5}]`, "error"},
	{`[{"topic":"a","partition":0,"offset":9223372036854775808}]`, "error"},
	{`[{"topic":"a","partition":0,"timestamp":-1}]`, "error"},
	{`[{"topic":"a","partition":0,"offset":5},{"topic":"a","partition":0,"offset":6}]`, "error"},
	{`[{"topic":"a","partition":0,"offset":5},7]`, "error"},
	{"[" + strings.Repeat(" ", idParseMax) + "]", "error"},
}

func TestParseForeignID(t *testing.T) {
	for _, tc := range foreignIDs {
		f, err := ParseForeignID([]byte(tc.id))
		got := spell(f)
		if err != nil {
			if got = "error"; !errors.Is(err, ErrID) {
				t.Errorf("%q: %v is not an ErrID", tc.id, err)
			}
		}
		if got != tc.want {
			t.Errorf("%.200q: got %s, %v, want %s", tc.id, got, err, tc.want)
		}
	}
}

func TestParseForeignIDRefusesManyTopics(t *testing.T) {
	var items []string
	for i := range groupsMax + 1 {
		items = append(items, fmt.Sprintf(`{"topic":"t%d","partition":0,"offset":1}`, i*100)) // tags that differ
	}
	if _, err := ParseForeignID([]byte("[" + strings.Join(items, ",") + "]")); !errors.Is(err, errIDGroups) {
		t.Fatalf("got %v", err)
	}
}

// What is read of other gateways' ids is a position that an id of ours can hold.
func FuzzParseForeignID(f *testing.F) {
	for _, tc := range foreignIDs {
		if len(tc.id) < 1000 { // mutating larger ones finds little, slowly
			f.Add([]byte(tc.id))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseForeignID(b)
		if err != nil {
			if !errors.Is(err, ErrID) || got.Position != nil {
				t.Fatalf("%v with %v", err, got)
			}
			return
		}
		for i := range got.Position {
			got.Position[i].Rest = false
		}
		if _, err := ParseID(AppendID(nil, got.Position)); err != nil {
			t.Fatalf("%q became %v: %v", b, got.Position, err)
		}
	})
}
