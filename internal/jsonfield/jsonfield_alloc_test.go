//go:build !race

package jsonfield

import "testing"

func TestLookupAllocatesNothing(t *testing.T) {
	doc := []byte(`{"b":[1,{"c":"d\n"}],"\u0061":{"x":"esc\u0061ped"}}`)
	path, scratch := []string{"a", "x"}, make([]byte, 64)
	n := testing.AllocsPerRun(100, func() {
		if _, ok := Lookup(doc, path, scratch); !ok {
			t.Fatal("not found")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
