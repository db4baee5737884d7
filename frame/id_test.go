package frame

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMakeTag(t *testing.T) {
	// As `printf %s NAME | sha256sum | xxd -r -p | base64` has them.
	for _, c := range []struct {
		name string
		id   TopicID
		want string
	}{
		{"events", TopicID{}, "~hi"},
		{"events", TopicID{0: 1}, "~hiTLv"},
		{"events", TopicID{15: 1}, "~hifDz"},
		{"", TopicID{}, "~47"},
		{"été", TopicID{}, "~vQ"},
	} {
		if got := tagText(MakeTag(c.name, c.id)); got != c.want {
			t.Errorf("%q, %x: got %s, want %s", c.name, c.id, got, c.want)
		}
	}
}

// TestIDsAreReadForEver holds every form of id to its meaning. A browser may
// come back after a year: lines of the file are added, never changed.
func TestIDsAreReadForEver(t *testing.T) {
	file, err := os.ReadFile("testdata/ids.golden")
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(strings.TrimSuffix(string(file), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		col := strings.Split(line, "\t")
		if len(col) != 3 {
			t.Fatalf("line %d has %d columns", n+1, len(col))
		}
		mode, id, meaning := col[0], col[1], col[2]
		p, err := ParseID([]byte(id))
		if err != nil {
			t.Errorf("line %d: %v", n+1, err)
			continue
		}
		if got := positionText(p); got != meaning {
			t.Errorf("line %d: got %s, want %s", n+1, got, meaning)
		}
		if got := string(AppendID(nil, p)); (got == id) != (mode == "writes") {
			t.Errorf("line %d: the file says %s, and AppendID writes %s", n+1, mode, got)
		}
	}
}

// positionText writes a position the way ids.golden does: what every next
// offset is, not what the wire has.
func positionText(p Position) string {
	var b strings.Builder
	for i, g := range p {
		if i > 0 {
			b.WriteString(" / ")
		}
		b.WriteString(tagText(g.Tag))
		for _, part := range g.Parts {
			next := strconv.FormatInt(part.Next, 10)
			if part.Next == Unknown {
				next = "unknown"
			}
			fmt.Fprintf(&b, " %d:%s", part.ID, next)
		}
	}
	return b.String()
}

func tagText(t Tag) string {
	s := "~"
	if t.Name[0] != 0 {
		s += string(t.Name[:])
	}
	if t.ID[0] != 0 {
		s += string(t.ID[:])
	}
	return s
}

func TestIDHoldsTheLastOffset(t *testing.T) {
	for _, c := range []struct {
		name string
		next int64
		want string
	}{
		{"offset 4 was the last", 5, "v1:7-4"},
		{"offset 0 was the last", 1, "v1:7-0"},
		{"nothing yet, log begins at 500", 500, "v1:7-499"},
		{"nothing yet, log begins at 0", 0, "v1:"},
		{"largest", math.MaxInt64, "v1:7-9223372036854775806"},
		{"unknown", Unknown, "v1:7-*"},
	} {
		p := Position{{Parts: []Partition{{7, c.next}}}}
		if got := string(AppendID(nil, p)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestIDBecomesPackedAbove96Bytes(t *testing.T) {
	p := Position{{Tag: Tag{Name: [2]byte{'a', 'b'}}}}
	for i := range int32(14) {
		p[0].Parts = append(p[0].Parts, Partition{ID: i, Next: 1000})
	}
	p[0].Parts[0].Next = 1_000_001
	got := string(AppendID(nil, p))
	if len(got) > plainMax || got[:3] != "v2." {
		t.Errorf("97 bytes of v1 became %d bytes: %s", len(got), got)
	}
	p[0].Parts[0].Next = 1_000_000
	if got = string(AppendID(nil, p)); len(got) != plainMax || got[:3] != "v1:" {
		t.Errorf("96 bytes of v1 became %d bytes: %s", len(got), got)
	}
}

// TestIDIsSafeInALine also keeps what a cross-origin page sends back within
// the bytes that cost no preflight, but for the one colon.
func TestIDIsSafeInALine(t *testing.T) {
	safe := regexp.MustCompile(`^(v1:[0-9A-Za-z_~.,*-]*|v2\.[0-9A-Za-z_-]+)$`)
	rapid.Check(t, func(t *rapid.T) {
		if id := AppendID(nil, anyPosition().Draw(t, "position")); !safe.Match(id) {
			t.Fatalf("%s", id)
		}
	})
}

func TestIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPosition().Draw(t, "position")
		id := AppendID([]byte("before"), p)
		id, ok := bytes.CutPrefix(id, []byte("before"))
		if !ok {
			t.Fatal("what was in dst is gone")
		}
		got, err := ParseID(id)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if !reflect.DeepEqual(got, p) {
			t.Fatalf("%s: got %v, want %v", id, got, p)
		}
		if plain := plainLen(p); plain != len(appendPlain(nil, p, nil)) || (plain <= plainMax) != (id[1] == '1') {
			t.Fatalf("%s: the length of v1 is taken for %d", id, plain)
		}
	})
}

// anyPosition draws what AppendID takes, in the form that ParseID returns.
func anyPosition() *rapid.Generator[Position] {
	return rapid.Custom(func(t *rapid.T) Position {
		p := make(Position, rapid.IntRange(1, 5).Draw(t, "groups"))
		for i := range p {
			p[i].Tag = rapid.SampledFrom([]Tag{
				{},
				MakeTag("a", TopicID{}), MakeTag("b", TopicID{1}), MakeTag("c", TopicID{2}),
				{[2]byte{'A', 'A'}, [3]byte{'A', 'A', 'A'}},
				{[2]byte{'_', '_'}, [3]byte{'_', '-', '_'}},
			}).Draw(t, "tag")
			ids := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Int32Range(0, 30), rapid.Int32Range(0, math.MaxInt32)),
				0, 20, rapid.ID).Draw(t, "partitions")
			slices.Sort(ids)
			for _, id := range ids {
				p[i].Parts = append(p[i].Parts, Partition{ID: id, Next: anyNext().Draw(t, "next")})
			}
			if len(p) > 1 && len(ids) == 0 && p[i].Tag == (Tag{}) {
				p[i].Tag = MakeTag("d", TopicID{})
			}
		}
		return p
	})
}

func anyNext() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Just(Unknown), rapid.Int64Range(1, 20), rapid.Int64Range(1, 1<<20), rapid.Int64Range(1, math.MaxInt64))
}

func TestParseIDRefuses(t *testing.T) {
	packed := func(b ...byte) string { return "v2." + rawURL(b) }
	for _, c := range []struct {
		name, id string
		want     error
	}{
		{"empty", "", errIDVersion},
		{"a number", "42", errIDVersion},
		{"no version", "0-5", errIDVersion},
		{"half a version", "v1", errIDVersion},
		{"upper case", "V1:0-5", errIDVersion},
		{"later version", "v3.AAAA", errIDVersion},
		{"other version's separator", "v1.0-5", errIDVersion},
		{"packed with a colon", "v2:AQAA", errIDVersion},
		{"space before", " v1:0-5", errIDVersion},
		{"bytes FF 00", "\xff\x00", errIDVersion},
		{"too long", "v1:" + strings.Repeat("0", idParseMax), errIDLong},
		{"1 MB", "v2." + strings.Repeat("A", 1<<20), errIDLong},

		{"no pair between dots", "v1:0-5..1-6", errIDPair},
		{"dot first", "v1:.0-5", errIDPair},
		{"dot last", "v1:0-5.", errIDPair},
		{"partition alone", "v1:0", errIDPair},
		{"colon for the dash", "v1:0:5", errIDPair},
		{"no partition", "v1:-5", errIDPartition},
		{"partition with a sign", "v1:+0-5", errIDPartition},
		{"partition with leading zero", "v1:00-5", errIDPartition},
		{"partition too large", "v1:2147483648-5", errIDPartition},
		{"partition much too large", "v1:99999999999999999999-5", errIDPartition},
		{"Unicode digits", "v1:\u0660-5", errIDPartition},
		{"no offset", "v1:0-", errIDOffset},
		{"negative offset", "v1:0--1", errIDOffset},
		{"offset with a plus", "v1:0-+5", errIDOffset},
		{"offset with leading zero", "v1:0-05", errIDOffset},
		{"hexadecimal", "v1:0-0x10", errIDOffset},
		{"2^63-1", "v1:0-9223372036854775807", errIDOffset},
		{"2^63", "v1:0-9223372036854775808", errIDOffset},
		{"2^64-1", "v1:0-18446744073709551615", errIDOffset},
		{"2^64", "v1:0-18446744073709551616", errIDOffset},
		{"star and more", "v1:0-*1", errIDOffset},
		{"space behind", "v1:0-5 ", errIDOffset},
		{"line end behind", "v1:0-5\n", errIDOffset},
		{"NUL behind", "v1:0-5\x00", errIDOffset},
		{"partition twice", "v1:0-5.0-6", errIDOrder},
		{"partitions descend", "v1:1-5.0-6", errIDOrder},
		{"comma last", "v1:0-5,", errIDEmpty},
		{"comma first", "v1:,0-5", errIDEmpty},
		{"two commas", "v1:0-5~ab,,0-5~cd", errIDEmpty},
		{"too many groups", "v1:0-1" + strings.Repeat(",0-1", groupsMax), errIDGroups},
		{"tag of none", "v1:0-5~", errIDTag},
		{"tag of 1", "v1:0-5~a", errIDTag},
		{"tag of 3", "v1:0-5~ab3", errIDTag},
		{"tag of 6", "v1:0-5~ab3f9a", errIDTag},
		{"tag of other characters", "v1:0-5~a+", errIDTag},
		{"two tags", "v1:0-5~ab~cd", errIDTag},
		{"pair behind the tag", "v1:0-5~ab.1-6", errIDTag},

		{"packed nothing", "v2.", errIDVarint},
		{"packed, not base64", "v2.AQ!A", errIDBase64},
		{"packed with padding", packed(1, 0, 0) + "==", errIDBase64},
		{"packed, other alphabet", "v2.AQ+/", errIDBase64},
		{"packed with a line end", "v2.AQ\nAA", errIDBase64},
		{"packed, unused bits set", "v2.AQB", errIDBase64},
		{"packed, impossible length", "v2.AQAAA", errIDBase64},
		{"no groups", packed(0), errIDGroups},
		{"65 packed groups", packed(65), errIDGroups},
		{"groups cut off", packed(2, hasName, 0, 0, 0), errIDFlags},
		{"unknown flag", packed(1, 4, 0), errIDFlags},
		{"topic id without name", packed(1, hasID, 0, 0, 0, 0, 0), errIDFlags},
		{"name cut off", packed(1, hasName, 0), errIDFlags},
		{"topic id cut off", packed(1, hasName|hasID, 0, 0, 0), errIDFlags},
		{"name over 12 bits", packed(1, hasName, 0x10, 0, 0), errIDTag},
		{"tag over 30 bits", packed(1, hasName|hasID, 0x40, 0, 0, 0, 0), errIDTag},
		{"number of pairs missing", packed(1, 0), errIDVarint},
		{"number of pairs not the shortest", packed(1, 0, 0x80, 0), errIDVarint},
		{"pairs missing", packed(1, 0, 2, 0, 1), errIDPairs},
		{"2^62 pairs", packed(1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F, 0, 1), errIDPairs},
		{"number of pairs over 64 bits", packed(1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F), errIDVarint},
		{"pair cut off", packed(1, 0, 1, 0x80, 0x80), errIDVarint},
		{"next cut off", packed(1, 0, 1, 0, 0x80), errIDVarint},
		{"next 2^63", packed(1, 0, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), errIDVarint},
		{"packed partition 2^31", packed(1, 0, 1, 0x80, 0x80, 0x80, 0x80, 8, 1), errIDVarint},
		{"packed partition 2^31 by a gap", packed(1, 0, 2, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 7, 1), errIDPartition},
		{"one of two groups empty", packed(2, 0, 0, hasName, 0, 0, 0), errIDEmpty},
		{"bytes behind", packed(1, 0, 0, 0), errIDRest},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ParseID([]byte(c.id))
			if !errors.Is(err, ErrID) || !errors.Is(err, c.want) {
				t.Errorf("%.60q: got %v, %v, want %v", c.id, p, err, c.want)
			}
		})
	}
}

// TestParseIDTakesTheMost also shows why the parser needs no bound of its own
// for pairs: 8 KiB hold fewer than ten thousand.
func TestParseIDTakesTheMost(t *testing.T) {
	groups := Position{}
	for i := range groupsMax {
		groups = append(groups, Group{Tag: MakeTag(fmt.Sprint("topic-", i), TopicID{byte(i), 1})})
	}
	wide := Position{{}}
	for i := range int32(3068) {
		wide[0].Parts = append(wide[0].Parts, Partition{i, Unknown})
	}
	for name, p := range map[string]Position{"groups": groups, "pairs": wide} {
		id := AppendID(nil, p)
		if got, err := ParseID(id); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wide[0].Parts = append(wide[0].Parts, Partition{3068, Unknown})
	if id := AppendID(nil, wide); len(id) <= idParseMax {
		t.Errorf("3069 pairs fit into %d bytes", len(id))
	}
}

// FuzzParseID checks that what is read is written as it was, or, in v2, as
// something that is read alike.
func FuzzParseID(f *testing.F) {
	f.Fuzz(func(t *testing.T, id []byte) {
		p, err := ParseID(slices.Clip(id))
		if err != nil {
			if p != nil || !errors.Is(err, ErrID) {
				t.Fatalf("%q: got %v, %v", id, p, err)
			}
			return
		}
		again := AppendID(nil, p)
		if q, err := ParseID(again); err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("%q is %v; written as %q it is %v, %v", id, p, again, q, err)
		}
		switch {
		case id[1] == '1' && len(id) <= plainMax && !bytes.Equal(id, again):
			t.Fatalf("%q was written as %q", id, again)
		case id[1] == '2' && again[1] == '2' && !bytes.Equal(id, again):
			t.Fatalf("%q was written as %q", id, again)
		}
	})
}

// TestIDWriter compares with AppendID after each of many steps.
func TestIDWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w IDWriter
		p := anyPosition().Draw(t, "position")
		w.Set(p)
		model := p.Clone()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			g := rapid.IntRange(0, len(model)-1).Draw(t, "group")
			parts := model[g].Parts
			id := rapid.Int32Range(0, 40).Draw(t, "partition")
			if len(parts) > 0 && rapid.Bool().Draw(t, "known") {
				id = parts[rapid.IntRange(0, len(parts)-1).Draw(t, "which")].ID
			}
			next := nextOf(parts, id)
			switch rapid.IntRange(0, 3).Draw(t, "move") {
			case 0:
				next = anyNext().Draw(t, "next")
			case 1:
				next = 0
			default:
				if next = max(next, 0); next < math.MaxInt64-100 {
					next += rapid.Int64Range(1, 100).Draw(t, "by")
				}
			}
			w.Advance(g, id, next)
			model[g].Parts = withNext(parts, id, next)

			if got := w.Next(g, id); got != next {
				t.Fatalf("partition %d set to %d is at %d", id, next, got)
			}
			if got, want := w.Append(nil), AppendID(nil, model); !bytes.Equal(got, want) || w.Len() != len(want) {
				t.Fatalf("group %d partition %d to %d: got %s, want %s", g, id, next, got, want)
			}
		}
		if got, want := positionText(w.Position()), positionText(model); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func nextOf(parts []Partition, id int32) int64 {
	for _, p := range parts {
		if p.ID == id {
			return p.Next
		}
	}
	return 0
}

// withNext returns a copy of parts with one changed, added or removed.
func withNext(parts []Partition, id int32, next int64) []Partition {
	var out []Partition
	for _, p := range parts {
		if p.ID != id {
			out = append(out, p)
		}
	}
	if next != 0 {
		out = append(out, Partition{id, next})
	}
	slices.SortFunc(out, func(a, b Partition) int { return int(a.ID) - int(b.ID) })
	return out
}

func TestIDWriterSet(t *testing.T) {
	var w IDWriter
	if got := string(w.Append(nil)); got != "v1:" || w.Len() != len(got) {
		t.Errorf("the zero writer writes %s", got)
	}
	p := Position{{Parts: []Partition{{0, 0}, {1, 6}, {2, Unknown}}}}
	w.Set(p)
	p[0].Parts[1].Next = 100
	if got := string(w.Append([]byte("id="))); got != "id=v1:1-5.2-*" {
		t.Errorf("got %s", got)
	}
	w.Set(Position{{Parts: []Partition{{3, 9}}}})
	if got := string(w.Append(nil)); got != "v1:3-8" {
		t.Errorf("after a second Set: got %s", got)
	}
	if w.Next(0, 1) != 0 || w.Next(0, 3) != 9 {
		t.Errorf("next of 1 and 3: got %d and %d", w.Next(0, 1), w.Next(0, 3))
	}
}

// TestIDWriterBetweenForms: an id becomes packed, and plain again where a cut
// leads back, though the number that moved has as many bytes as before.
func TestIDWriterBetweenForms(t *testing.T) {
	p := Position{{}}
	for i := range int32(13) {
		p[0].Parts = append(p[0].Parts, Partition{i, 1001})
	}
	p[0].Parts[0].Next = 10_000
	var w IDWriter
	w.Set(p)
	for _, next := range []int64{10_000, 10_001, 10_000} {
		w.Advance(0, 0, next)
		p[0].Parts[0].Next = next
		if got, want := string(w.Append(nil)), string(AppendID(nil, p)); got != want || strings.HasPrefix(got, "v1:") != (next == 10_000) {
			t.Errorf("at %d: got %s, want %s", next, got, want)
		}
	}
}

func TestPositionClone(t *testing.T) {
	p := Position{{Parts: []Partition{{0, 1}}}, {Parts: []Partition{{0, 2}}}}
	c := p.Clone()
	c[0].Parts = append(c[0].Parts, Partition{1, 1}) // must not run into the next group
	c[1].Parts[0].Next = 3
	if p[1].Parts[0].Next != 2 || c[1].Parts[0].Next != 3 {
		t.Errorf("got %v, a clone of it %v", p, c)
	}
	if Position(nil).Clone() != nil {
		t.Error("nil was cloned to something")
	}
}

func TestDigits(t *testing.T) {
	for _, n := range []uint64{0, 1, 9, 10, 11, 99, 100, 999, 1000, 1023, 1024, 9999, 10000, 65535, 99999, 1e9 - 1, 1e9, 1e18 - 1, 1e18, 1e19 - 1, 1e19, math.MaxUint64} {
		if got, want := digits(n), len(strconv.FormatUint(n, 10)); got != want {
			t.Errorf("%d: got %d, want %d", n, got, want)
		}
	}
}
