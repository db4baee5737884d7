package jsonfield

import (
	"slices"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	const none = "(none)"
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, doc, path, want string }{
		{"string", `{"a":"x"}`, "a", "x"},
		{"number as written", `{"a":-1.50e+2}`, "a", "-1.50e+2"},
		{"zero", `{"a":0}`, "a", "0"},
		{"true", `{"a":true}`, "a", "true"},
		{"false", `{"a":false }`, "a", "false"},
		{"empty string", `{"a":""}`, "a", ""},
		{"null", `{"a":null}`, "a", none},
		{"object", `{"a":{}}`, "a", none},
		{"array", `{"a":["x"]}`, "a", none},
		{"missing", `{"b":"x"}`, "a", none},
		{"empty object", `{}`, "a", none},
		{"no document", ``, "a", none},
		{"no object", `["a","x"]`, "a", none},
		{"space everywhere", " \t\r\n{ \"b\" : [ 1 , { } ] , \"a\" : \"x\" }", "a", "x"},
		{"nested", `{"a":{"b":{"c":1}}}`, "a.b.c", "1"},
		{"nested through a scalar", `{"a":1}`, "a.b", none},
		{"nested through an array", `{"a":[{"b":1}]}`, "a.b", none},
		{"not a field of something deeper", `{"x":{"a":"no"},"a":"yes"}`, "a", "yes"},
		{"not a string that looks like it", `{"x":"\",\"a\":\"no","a":"yes"}`, "a", "yes"},
		{"not a value equal to the name", `{"x":"a","a":"yes"}`, "a", "yes"},
		{"not in an array", `{"x":["a","no",{"a":"no"}],"a":"yes"}`, "a", "yes"},
		{"prefix of a name", `{"ab":"no","a":"yes"}`, "a", "yes"},
		{"first of two", `{"a":1,"a":2}`, "a", "1"},
		{"first of two is null", `{"a":null,"a":2}`, "a", none},
		{"does not go back", `{"a":{"x":1},"a":{"b":2}}`, "a.b", none},
		{"escaped value", `{"a":"\"\\\/\b\f\n\r\té\ud83d\ude00"}`, "a", "\"\\/\b\f\n\r\té\U0001F600"},
		{"lone surrogates", `{"a":"\ud800x\udc00\ud800\ud83d\ude00"}`, "a", "\uFFFDx\uFFFD\uFFFD\U0001F600"},
		{"escaped name", `{"\u0061b\n":"x"}`, "ab\n", "x"},
		{"escaped name is longer", `{"\u0061b":"no","a":"yes"}`, "a", "yes"},
		{"escaped name is shorter", `{"\u0061":"no","ab":"yes"}`, "ab", "yes"},
		{"bytes that are not UTF-8", "{\"a\":\"\xff\"}", "a", "\xff"},
		{"what follows does not matter", `{"a":"x"]`, "a", "x"},
		{"cut in the string", `{"a":"x`, "a", none},
		{"cut behind a number", `{"a":12`, "a", none},
		{"cut in a literal", `{"a":tru`, "a", none},
		{"cut behind a literal", `{"a":true`, "a", none},
		{"number runs on", `{"a":12x}`, "a", none},
		{"literal runs on", `{"a":truex}`, "a", none},
		{"leading zero", `{"a":01}`, "a", none},
		{"plus", `{"a":+1}`, "a", none},
		{"bare minus", `{"a":-}`, "a", none},
		{"no fraction", `{"a":1.}`, "a", none},
		{"no exponent", `{"a":1e}`, "a", none},
		{"unquoted name", `{a:"x"}`, "a", none},
		{"comma missing", `{"b":1 "a":2}`, "a", none},
		{"comma too many", `{"b":1,,"a":2}`, "a", none},
		{"comma first", `{,"a":2}`, "a", none},
		{"colon missing", `{"a" 2}`, "a", none},
		{"brackets crossed", `{"b":[},"a":2}`, "a", none},
		{"array with a trailing comma", `{"b":[1,],"a":2}`, "a", none},
		{"object with a trailing comma", `{"b":{"c":1,},"a":2}`, "a", none},
		{"object without a value", `{"b":{"c"},"a":2}`, "a", none},
		{"bad literal before", `{"b":nul,"a":2}`, "a", none},
		{"bad escape before", `{"b":"\x","a":2}`, "a", none},
		{"cut in an escape", `{"a":"\`, "a", none},
		{"cut in hex", `{"a":"\u00`, "a", none},
		{"upper and lower case hex", `{"a":"\u00Ab\u00eF"}`, "a", "«ï"},
		{"array without commas", `{"b":[1 2],"a":2}`, "a", none},
		{"bad hex before", `{"b":"\u00g0","a":2}`, "a", none},
		{"control character before", "{\"b\":\"\n\",\"a\":2}", "a", none},
		{"deep", `{"b":` + deep(511) + `,"a":2}`, "a", "2"},
		{"too deep", `{"b":` + deep(512) + `,"a":2}`, "a", none},
		{"all kinds before", `{"b":[1,-0.5e3,"x",true,false,null,{"c":{"d":[]}},[[]]],"a":2}`, "a", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := []byte(c.doc)
			got, ok := Lookup(slices.Clip(doc), strings.Split(c.path, "."), nil)
			if !ok {
				got = []byte(none)
			}
			if string(got) != c.want {
				t.Errorf("%s in %.80s: got %q, want %q", c.path, c.doc, got, c.want)
			}
		})
	}
}

func TestLookupWithoutPath(t *testing.T) {
	if v, ok := Lookup([]byte(`"x"`), nil, nil); ok {
		t.Errorf("got %q for an empty path", v)
	}
}

func TestLookupAliases(t *testing.T) {
	doc := []byte(`{"a":"plain","b":"esc\u0061ped"}`)
	v, _ := Lookup(doc, []string{"a"}, nil)
	if &v[0] != &doc[6] || cap(v) != len(v) {
		t.Error("a value without escapes is not the document's own bytes, without room to append over what follows")
	}
	scratch := make([]byte, 16)
	if v, _ = Lookup(doc, []string{"b"}, scratch); &v[0] != &scratch[0] {
		t.Error("a value with escapes was not written to scratch")
	}
}

func BenchmarkLookup(b *testing.B) {
	pad := `"items":[` + strings.Repeat(`{"sku":"A-1","count":3,"price":9.5,"text":"some words that have to be skipped"},`, 12) + `{}]`
	for name, doc := range map[string]string{
		"field=first": `{"type":"order.created",` + pad + `}`,
		"field=last":  `{` + pad + `,"type":"order.created"}`,
	} {
		b.Run(name, func(b *testing.B) {
			doc, path := []byte(doc), []string{"type"}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := Lookup(doc, path, nil); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

func TestEach(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"scalar", `{"a":1}`, "1"},
		{"array", `{"a":[1,"x",true,false,-2.5e3]}`, "1 x true false -2.5e3"},
		{"escapes", `{"a":["\u0041","b\n"]}`, "A b\n"},
		{"space", "{\"a\": [ 1 ,\t2\n] }", "1 2"},
		{"empty array", `{"a":[]}`, ""},
		{"only what is a scalar", `{"a":[null,{"a":1},[2,[3]],4]}`, "4"},
		{"null", `{"a":null}`, ""},
		{"object", `{"a":{"b":1}}`, ""},
		{"missing", `{"b":[1]}`, ""},
		{"first of two", `{"a":[1],"a":[2]}`, "1"},
		{"not through an array", `[{"a":1}]`, ""},
		{"cut behind an element", `{"a":[1,2`, "1"},
		{"cut in a string", `{"a":["x","y`, "x"},
		{"cut in something deeper", `{"a":[1,{"b":`, "1"},
		{"comma too many", `{"a":[1,,2]}`, "1"},
		{"trailing comma", `{"a":[1,]}`, "1"},
		{"comma missing", `{"a":[1 2]}`, "1"},
		{"no element", `{"a":[1,x,2]}`, "1"},
		{"nested too deep", `{"a":[1,` + strings.Repeat("[", depthMax) + strings.Repeat("]", depthMax) + `,2]}`, "1"},
	} {
		var got []string
		Each([]byte(c.doc), []string{"a"}, make([]byte, 0, 16), func(v []byte) { got = append(got, string(v)) })
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.name, s, c.want)
		}
	}
}
