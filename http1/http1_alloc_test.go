//go:build !race

package http1

import "testing"

// TestAllocs: nothing on the loop's way through this package allocates.
func TestAllocs(t *testing.T) {
	heads := heads(t)
	var p Parser
	var r Request
	scratch := make([]byte, 0, HeadMax)
	date := []byte(testDate)
	fields := []byte("Access-Control-Allow-Origin: https://app.example.com\r\nVary: Origin\r\n")
	body := []byte("5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n")
	chunked := mustParse(t, post("Transfer-Encoding: chunked"))
	proxied := mustParse(t, string(heads["proxied"]))
	query := []byte("lastEventId=v1%3A0-5812~ab3f9&since=%32&x")
	bad := []byte(get("Content-Length: x"))
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"Parse", func() { p.Parse(heads["chrome"], &r) }},
		{"Parse in pieces", func() {
			for i := range heads["chrome"] {
				p.Parse(heads["chrome"][:i+1], &r)
			}
		}},
		{"Parse refuses", func() { p.Parse(bad, &r) }},
		{"Fields", func() {
			for name, value := range proxied.Fields() {
				scratch = append(append(scratch[:0], name...), value...)
			}
		}},
		{"Field", func() { proxied.Field("traceparent") }},
		{"AppendPath", func() { AppendPath(scratch[:0], proxied.Path) }},
		{"Pairs", func() {
			for p := NewPairs(query, scratch); p.Next(); {
			}
		}},
		{"Body", func() {
			var b Body
			b.Start(chunked, 100)
			for in := body; !b.Done(); {
				_, n, _ := b.Next(in)
				in = in[n:]
			}
		}},
		{"AppendStreamHead", func() { AppendStreamHead(scratch[:0], 1, date, fields) }},
		{"AppendAnswer", func() {
			AppendAnswer(scratch[:0], &Answer{Status: 405, Date: date, Allow: "GET, HEAD, OPTIONS", Body: "no", Close: true, Fields: fields})
		}},
	} {
		if n := testing.AllocsPerRun(100, c.run); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
