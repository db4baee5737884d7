package hub

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tailcast/frame"
	"tailcast/internal/ssetest"
)

// matching reads the frames for a filter whose labels are at or behind place.
func matching(t testing.TB, r *Reader, place int64, x *Filter) (got []byte) {
	t.Helper()
	for {
		labels, ok := r.Labels(place)
		if !ok {
			t.Fatal("labels are not held")
		}
		if len(labels) == 0 {
			return got
		}
		place += int64(len(labels))
		for len(labels) > 0 {
			l, n := NextLabel(labels)
			labels = labels[n:]
			if !x.Match(&l) {
				continue
			}
			b, ok := r.Read(l.Place)
			if !ok || frame.Len(b) != l.Size {
				t.Fatalf("the label says %d bytes at %d; held: %v", l.Size, l.Place, ok)
			}
			got = append(got, b[:l.Size]...)
		}
	}
}

// valuesOf spells what a label keeps, as field number and value.
func valuesOf(values []byte) string {
	var all []string
	for len(values) > 0 {
		var v []byte
		v, values = nextValue(values)
		all = append(all, fmt.Sprintf("%d%s", v[0], v[1:]))
	}
	return strings.Join(all, " ")
}

func TestLabeler(t *testing.T) {
	long := strings.Repeat("x", ValueBytesMax)
	lb := newLabeler(fieldSet{{Kind: KeyField}, {HeaderField, "region"}, {JSONField, "a.b"}})
	header := func(name string, value []byte) frame.Header { return frame.Header{Name: name, Value: value} }
	for _, tc := range []struct {
		name string
		rec  frame.Record
		want string
	}{
		{"nothing", frame.Record{}, ""},
		{"key", frame.Record{Key: []byte("k")}, "0k"},
		{"empty key", frame.Record{Key: []byte{}}, ""},
		{"longest key", frame.Record{Key: []byte(long)}, "0" + long},
		{"key too long", frame.Record{Key: []byte(long + "x")}, ""},
		{"header", frame.Record{Headers: []frame.Header{header("region", []byte("eu"))}}, "1eu"},
		{"every occurrence", frame.Record{Headers: []frame.Header{header("region", []byte("eu")), header("x", nil), header("region", []byte("us"))}}, "1eu 1us"},
		{"null header", frame.Record{Headers: []frame.Header{header("region", nil)}}, ""},
		{"other case", frame.Record{Headers: []frame.Header{header("Region", []byte("eu"))}}, ""},
		{"json string", frame.Record{Value: []byte(`{"a":{"b":"\u0041b"}}`)}, "2Ab"},
		{"json number", frame.Record{Value: []byte(`{"a":{"b":1.50}}`)}, "21.50"},
		{"json boolean", frame.Record{Value: []byte(`{"a":{"b":true}}`)}, "2true"},
		{"json null", frame.Record{Value: []byte(`{"a":{"b":null}}`)}, ""},
		{"json object", frame.Record{Value: []byte(`{"a":{"b":{}}}`)}, ""},
		{"json array", frame.Record{Value: []byte(`{"a":{"b":["x",null,["y"],{"b":1},2,""]}}`)}, "2x 22"},
		{"no json", frame.Record{Value: []byte(`a.b`)}, ""},
		{"json in its first 64 KiB", frame.Record{Value: []byte(strings.Repeat(" ", jsonBytesMax-13) + `{"a":{"b":1}}`)}, "21"},
		{"json behind them", frame.Record{Value: []byte(strings.Repeat(" ", jsonBytesMax-10) + `{"a":{"b":1}}`)}, ""},
		{"array across them", frame.Record{Value: []byte(strings.Repeat(" ", jsonBytesMax-13) + `{"a":{"b":[1,2,3]}}`)}, "21"},
		{"tombstone", frame.Record{Key: []byte("k"), Headers: []frame.Header{header("region", []byte("eu"))}}, "0k 1eu"},
		{"all", frame.Record{Key: []byte("k"), Headers: []frame.Header{header("region", []byte("eu"))}, Value: []byte(`{"a":{"b":1}}`)}, "0k 1eu 21"},
	} {
		if got := valuesOf(lb.appendValues(nil, &tc.rec)); got != tc.want {
			t.Errorf("%s: got %.60q, want %.60q", tc.name, got, tc.want)
		}
	}
}

// TestTable files and removes random filters, and holds what is found for
// random records against a look at every filter.
func TestTable(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := newRig(t, testOptions, "t")
		fields := []Field{{Kind: KeyField}, {HeaderField, "a"}, {HeaderField, "b"}}
		if err := g.feed.learn(fields); err != nil {
			t.Fatal(err)
		}
		some := func(n int) (values []string) {
			for range n {
				values = append(values, fmt.Sprint("v", r.IntN(6)))
			}
			return values
		}
		var table Table
		var filed []*Watch
		lb := newLabeler(g.feed.fields)
		for n := range 400 {
			if r.IntN(3) > 0 {
				var items [][]Term
				for range 1 + r.IntN(3) {
					var item []Term
					for _, f := range fields[:1+r.IntN(3)] {
						item = append(item, Term{f, some(1 + r.IntN(3))})
					}
					items = append(items, item)
				}
				x, err := g.feed.NewFilter(items)
				if err != nil {
					t.Fatal(err)
				}
				w := &Watch{Filter: x, Conn: items}
				table.Add(w)
				filed = append(filed, w)
			} else if len(filed) > 0 {
				i := r.IntN(len(filed))
				table.Remove(filed[i])
				filed = slices.Delete(filed, i, i+1)
			}
			rec := frame.Record{Key: []byte(some(1)[0])}
			for _, name := range []string{"a", "b", "b"} {
				if r.IntN(2) == 0 {
					rec.Headers = append(rec.Headers, frame.Header{Name: name, Value: []byte(some(1)[0])})
				}
			}
			l, _ := NextLabel(endLabel(lb.appendValues(appendLabel(nil, LabelRecord, int64(n), 10), &rec)))
			found := table.Find(nil, &l)
			want := 0
			for _, w := range filed {
				if naive(w.Conn.([][]Term), &rec) {
					want++
					if !slices.Contains(found, w) || !w.Filter.Match(&l) {
						t.Fatalf("seed %d: %v does not get %+v", seed, w.Conn, rec)
					}
				}
			}
			if len(found) != want || table.Len() != len(filed) {
				t.Fatalf("seed %d: %d streams get %+v, want %d of %d", seed, len(found), rec, want, len(filed))
			}
		}
		for _, w := range filed {
			table.Remove(w)
		}
		if len(table.files) != 0 {
			t.Errorf("seed %d: %d values are left of no stream", seed, len(table.files))
		}
	}
}

// naive is a filter by the book.
func naive(items [][]Term, rec *frame.Record) bool {
	return slices.ContainsFunc(items, func(item []Term) bool {
		return !slices.ContainsFunc(item, func(term Term) bool {
			has := func(v []byte) bool { return slices.Contains(term.Values, string(v)) }
			if term.Field.Kind == KeyField {
				return !has(rec.Key)
			}
			return !slices.ContainsFunc(rec.Headers, func(h frame.Header) bool { return h.Name == term.Field.Name && has(h.Value) })
		})
	})
}

func TestNewFilterRefuses(t *testing.T) {
	g := newRig(t, testOptions, "t")
	key := Field{Kind: KeyField}
	if err := g.feed.learn([]Field{key}); err != nil {
		t.Fatal(err)
	}
	many := make([]string, filterValuesMax)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	for _, tc := range []struct {
		values []string
		want   string
	}{
		{[]string{"a", ""}, "the value of the filter's key is not 1 to 1024 bytes long"},
		{[]string{strings.Repeat("x", 1025)}, "the value of the filter's key is not 1 to 1024 bytes long"},
		{append(slices.Clone(many), "x"), "the filter has more than 256 values"},
		{many, ""},
	} {
		_, err := g.feed.NewFilter([][]Term{{{key, tc.values}}})
		if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
			t.Errorf("%.20q: %v, want %q", tc.values, err, tc.want)
		}
	}
	var fields []Field
	for i := range fieldsMax {
		fields = append(fields, Field{HeaderField, strconv.Itoa(i)})
	}
	if err := g.feed.learn(fields); err == nil || !strings.Contains(err.Error(), "more than 64 fields") {
		t.Errorf("65 fields: %v", err)
	}
	if err := g.feed.learn([]Field{{JSONField, "a..b"}}); err == nil {
		t.Error("a path with an empty step is taken")
	}
}

// byUser is a filter of one user's records.
func (s *several) byUser(n int) *Filter {
	s.t.Helper()
	x, err := s.feed.NewFilter([][]Term{{{Field{Kind: KeyField}, []string{fmt.Sprint("user-", n)}}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return x
}

// filtering is withBrokers for a feed that knows keys; every tenth record is
// one user's.
func filtering(t *testing.T) *several {
	s := newSeveral(t)
	if err := s.feed.learn([]Field{{Kind: KeyField}}); err != nil {
		t.Fatal(err)
	}
	s.open(0, 30, 100, 200)
	s.open(1, 30)
	s.open(2, 30)
	s.produce(0, 0, 40)
	s.produce(0, 1, 40)
	return s
}

// TestFilteredHistory: of what the log does not hold a stream gets what is for
// it, as of the log, and only that counts for --replay-max; what is read for
// it counts for --replay-scan.
func TestFilteredHistory(t *testing.T) {
	s := filtering(t)
	s.hub.opts.ReplayMax = 30
	from := id(t, "v1:0-50.1-50"+tagOf("a", 1)+","+tagOf("b", 2)+","+tagOf("c", 3))
	evs := s.from(Start{Position: from, Filter: s.byUser(3)})
	var want []string
	for o := 53; o < 140; o += 10 {
		want = append(want, fmt.Sprintf("a/0/%d", o))
	}
	for o := 53; o < 240; o += 10 {
		want = append(want, fmt.Sprintf("a/1/%d", o))
	}
	var got []string
	for _, e := range evs {
		got = append(got, e.Data)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	last := evs[len(evs)-1]
	if pos := id(t, last.LastEventID); pos[0].Parts[0].Next < 134 || pos[0].Parts[1].Next < 234 {
		t.Errorf("ends at %s", last.LastEventID)
	}
	s.hub.opts.ReplayMax = 20 // of 5 and 15
	if evs = s.from(Start{Position: from, Filter: s.byUser(3)}); slices.ContainsFunc(evs, resync) {
		t.Errorf("20 records are too many: %+v", evs)
	}
	s.hub.opts.ReplayMax = 19
	if evs = s.from(Start{Position: from, Filter: s.byUser(3)}); !slices.ContainsFunc(evs, resync) {
		t.Error("19 records are not too many")
	}
	s.hub.opts.ReplayMax = 1000
	for scan, tooFar := range map[int64]bool{203: false, 202: true} { // 7 and 22 reads of 7 bytes, for whatever they hold
		s.hub.opts.ReplayScan = scan
		if evs = s.from(Start{Position: from, Filter: s.byUser(3)}); slices.ContainsFunc(evs, resync) != tooFar {
			t.Errorf("%d bytes may be read, and it is told %+v", scan, evs[0])
		}
	}
}

func resync(e ssetest.Event) bool { return e.Type == "resync" }

// TestFilteredHistoryOfNobody: the position moves over what is not for the
// stream, and is told in time, however long that takes.
func TestFilteredHistoryOfNobody(t *testing.T) {
	s := filtering(t)
	nobody := s.byUser(77)
	at, _ := s.r.Attach(Start{Position: id(t, "v1:0-50.1-50"+tagOf("a", 1)+","+tagOf("b", 2)+","+tagOf("c", 3)), Filter: nobody}, 0, nil)
	s.box.Enter()
	defer s.box.Leave()
	defer at.Own.Close()
	now, state := time.Unix(1000, 0), OwnMore
	var told []byte
	for n := 0; state != OwnShared; n++ {
		now = now.Add(testOptions.Heartbeat / 2)
		if told, state = at.Own.Step(told, 1000, now); n > 100_000 {
			t.Fatal("comes to no end")
		}
		if state == OwnReading {
			eventually(t, func() bool { return len(s.box.TakeOwn(nil)) > 0 })
		}
	}
	if strings.Contains(string(told), "data: ") || !strings.Contains(string(told), "id: v1:") {
		t.Errorf("told %q", told)
	}
	if got := matching(t, s.r, at.Own.Label(), nobody); len(got) > 0 || !strings.Contains(blocks(told), "0-99.1-199") { // from where labels say the rest
		t.Errorf("then %q, was told %q", got, blocks(told))
	}
}

func eventually(t testing.TB, cond func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for tick := time.NewTicker(time.Millisecond); !cond(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not so within 20 s")
		}
	}
}

// TestFilteredJoinsBeforeWhatIsUnread: a personal stream goes on before records
// that are appended and not flushed.
func TestFilteredJoinsBeforeWhatIsUnread(t *testing.T) {
	s := filtering(t)
	x := s.byUser(9)
	at, _ := s.r.Attach(Start{Position: id(t, "v1:0-120.1-239"+tagOf("a", 1)+","+tagOf("b", 2)+","+tagOf("c", 3)), Filter: x}, 0, nil)
	if at.Own == nil {
		t.Fatal("it has a place")
	}
	defer at.Own.Close()
	for o := int64(140); o < 160; o++ {
		s.sinks[0].Append(0, []frame.Record{{Partition: 0, Offset: o, Key: severalKey(o), Value: fmt.Appendf(nil, "a/0/%d", o)}})
	}
	s.box.Enter()
	defer s.box.Leave()
	b, state := []byte(nil), OwnMore
	for state == OwnMore {
		b, state = at.Own.Step(b, 1000, time.Unix(1000, 0))
	}
	s.sinks[0].Flush(nil)
	b = append(b, matching(t, s.r, at.Own.Label(), x)...)
	var got []string
	for _, e := range events(t, b) {
		got = append(got, e.Data)
	}
	if want := "a/0/129 a/0/139 a/0/149 a/0/159"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLabelsLeaveWithTheLog: neither outlives the other by more than a segment.
func TestLabelsLeaveWithTheLog(t *testing.T) {
	for _, tc := range []struct {
		name       string
		key, value int // bytes
	}{{"small labels", 10, 1000}, {"large labels", 1000, 10}} {
		g := filterRig(t, testOptions)
		s := g.sinks[0]
		s.Open(topicID(1), parts(0))
		for o := range int64(10_000) {
			rec := record(0, o)
			rec.Key, rec.Value = []byte(strings.Repeat("k", tc.key)), []byte(strings.Repeat("v", tc.value))
			s.Append(0, []frame.Record{rec})
		}
		s.Flush(nil)
		f := g.feed
		x := &f.index
		if held := f.log.held + f.labels.held; held > 2*testOptions.LogBytes {
			t.Errorf("%s: %d bytes are held", tc.name, held)
		}
		e, at := x.entries.front(), *x.labels.front()
		if x.entries.len() != x.labels.len() || e.place < f.log.first || at < f.labels.first {
			t.Errorf("%s: the index begins at %d and %d, the log at %d and %d", tc.name, e.place, at, f.log.first, f.labels.first)
		}
		if l, _ := NextLabel(f.held(&f.labels, at)); l.Place != e.place {
			t.Errorf("%s: the label is of %d, not %d", tc.name, l.Place, e.place)
		}
		if tc.key < tc.value && len(*f.labels.table.Load()) > 2 {
			t.Errorf("%s: %d segments of labels", tc.name, len(*f.labels.table.Load()))
		}
	}
}
