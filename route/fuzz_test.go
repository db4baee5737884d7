package route

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzDecide holds the origin match against a slow reading of the same rule:
// what is granted is the listed text, or a host below the listed one.
func FuzzDecide(f *testing.F) {
	f.Fuzz(func(t *testing.T, listed, asked string) {
		c, err := NewCORS([]string{listed}, false)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("error of more than one line: %q", err)
			}
			return
		}
		g := c.Decide([]byte(asked))
		if bytes.ContainsAny(g.Origin, "\r\n") {
			t.Fatalf("%q lets %q split the head", listed, asked)
		}
		if g.Origin == nil || listed == "*" || asked == listed {
			return
		}
		want, err := url.Parse(listed)
		if err != nil {
			t.Fatalf("%q was taken: %v", listed, err)
		}
		got, err := url.Parse(asked)
		if err != nil {
			t.Fatalf("%q allows %q: %v", listed, asked, err)
		}
		below := strings.TrimPrefix(want.Hostname(), "*")
		if got.Scheme != want.Scheme || got.Port() != want.Port() || !strings.HasSuffix(got.Hostname(), below) ||
			got.Path+got.RawQuery+got.Fragment != "" || got.User != nil {
			t.Fatalf("%q allows %q", listed, asked)
		}
	})
}

// FuzzResumeID compares with net/url where the grammars agree: without plus
// and semicolon, and without escapes in names.
func FuzzResumeID(f *testing.F) {
	f.Fuzz(func(t *testing.T, header string, repeated bool, query string) {
		got := ResumeID([]byte(header), repeated, []byte(query), make([]byte, 0, len(query)))
		if (got.Kind == ResumeGiven) != (len(got.ID) > 0) {
			t.Fatalf("kind %d with id %q", got.Kind, got.ID)
		}
		values, err := url.ParseQuery(query)
		if err != nil || repeated || header != "" || strings.ContainsAny(query, ";+") || escapedName(query) {
			return
		}
		want := Resume{}
		for _, name := range resumeNames {
			if v := values[name]; len(v) > 1 {
				want.Kind = ResumeForeign
			} else if len(v) == 1 && v[0] != "" {
				want = Resume{ResumeGiven, []byte(v[0])}
			}
			if want.Kind != ResumeNone {
				break
			}
		}
		if got.Kind != want.Kind || !bytes.Equal(got.ID, want.ID) {
			t.Fatalf("got %d %q, want %d %q", got.Kind, got.ID, want.Kind, want.ID)
		}
	})
}

// FuzzStartOf compares with the packages of the standard library where they
// agree.
func FuzzStartOf(f *testing.F) {
	for _, tc := range starts {
		f.Add(tc.query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := StartOf([]byte(query), make([]byte, 0, len(query)))
		if got.N < 0 || got.Kind < StartSince && got.N != 0 || got.Kind > StartLast {
			t.Fatalf("%+v", got)
		}
		values, err := url.ParseQuery(query)
		if err != nil || strings.ContainsAny(query, ";+") || escapedName(query) || len(values["since"]) > 1 || len(values["last"]) > 1 {
			return
		}
		want := Start{}
		if text := values.Get("since"); text != "" {
			want = Start{Kind: StartForeign}
			if n, ok := plainNumber(text); ok {
				want = Start{StartSince, n}
			} else if at, err := time.Parse(time.RFC3339, text); err == nil {
				want = Start{StartSince, max(0, at.UnixMilli())}
			}
		} else if text := values.Get("last"); text != "" {
			want = Start{Kind: StartForeign}
			if n, ok := plainNumber(text); ok {
				want = Start{StartLast, n}
			}
		}
		// time.Parse takes a comma in front of a fraction, and hours of one digit.
		if got != want && (got.Kind != StartForeign || want.Kind != StartSince) {
			t.Fatalf("%q: got %+v, want %+v", query, got, want)
		}
	})
}

// plainNumber reads 1 to 15 digits.
func plainNumber(text string) (int64, bool) {
	if len(text) > numberDigitsMax || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// FuzzTemplate expands what is parsed: a text with the values in it, or a
// refusal; a literal is never one.
func FuzzTemplate(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, query string) {
		tpl, err := ParseTemplate(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("error of more than one line: %q", err)
			}
			return
		}
		v := Values{Query: []byte(query), Claims: ClaimMap{"a": []any{"1", "2"}, "sub": "u"}}
		got, err := tpl.Expand(&v, nil)
		literal, is := tpl.Literal()
		switch {
		case err != nil && (is || len(got) > 0):
			t.Fatalf("%q, literal %v, was refused with %q: %v", text, is, got, err)
		case err == nil && (len(got) == 0 || len(got) > valuesMax):
			t.Fatalf("%q stands for %d texts", text, len(got))
		case is && (len(got) != 1 || got[0] != literal):
			t.Fatalf("%q: literal %q, but stands for %q", text, literal, got)
		}
	})
}

// FuzzLookup holds the table against a walk through all of its paths.
func FuzzLookup(f *testing.F) {
	f.Fuzz(func(t *testing.T, first, second, path string) {
		table, err := NewTable([]Route{{Path: first, Feed: 0}, {Path: second, Feed: 1}})
		if err != nil || !strings.HasPrefix(first, "/") || !strings.HasPrefix(second, "/") {
			return
		}
		want, literals := -1, -1
		for i, p := range []string{first, second} {
			if n, ok := fits(p, path); ok && n > literals {
				want, literals = i, n
			}
		}
		var params Params
		r, ok := table.Lookup(nil, []byte(path), &params)
		if ok != (want >= 0) || ok && r.Feed != want {
			t.Fatalf("%q of %q and %q: %+v, %v, want %d", path, first, second, r, ok, want)
		}
	})
}

// fits reports whether path is one of pattern's, and how many of pattern's
// segments are literal.
func fits(pattern, path string) (literals int, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return 0, false
	}
	for i := range want {
		switch {
		case strings.HasPrefix(want[i], "{"):
			if got[i] == "" {
				return 0, false
			}
		case want[i] != got[i]:
			return 0, false
		default:
			literals++
		}
	}
	return literals, true
}

func escapedName(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); strings.Contains(name, "%") {
			return true
		}
	}
	return false
}
