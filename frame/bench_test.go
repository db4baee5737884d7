package frame

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// text returns n bytes that look like a JSON value on one line.
func text(n int) []byte {
	const unit = `{"id":48151623,"name":"order.created","amount":42.17,"note":"left at the door"},`
	return []byte(strings.Repeat(unit, n/len(unit)+1)[:n])
}

// BenchmarkCopy is the floor of BenchmarkAppendEvent: the same bytes, copied.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{200, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			src, dst := text(size), make([]byte, 0, 2*size)
			b.SetBytes(int64(size))
			for b.Loop() {
				dst = append(dst[:0], src...)
			}
		})
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	for _, size := range []int{200, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			benchEncode(b, Format{}, &Record{Topic: "events", Offset: 5812, Value: text(size)})
		})
	}
}

func BenchmarkAppendEventKinds(b *testing.B) {
	const size = 1 << 10
	r := Record{
		Topic: "events", Partition: 3, Offset: 5812, Time: 1700000000000, Key: []byte("customer-1234"), Value: text(size),
		Headers: []Header{{"type", []byte("order.created")}, {"trace", []byte("00-4bf92f3577b34da6a3ce929d0e0e4736")}},
	}
	value := func(v []byte) *Record { c := r; c.Value = v; return &c }
	for _, c := range []struct {
		name string
		f    Format
		r    *Record
	}{
		{"lines", Format{}, value(bytes.ReplaceAll(text(size), []byte(","), []byte("\n")))},
		{"latin", Format{}, value([]byte(strings.Repeat("déjà vu, être, naïve, où, ", size/32)))},
		{"japanese", Format{}, value([]byte(strings.Repeat("東京都千代田区丸の内", size/30)))},
		{"replace", Format{}, value(bytes.Repeat([]byte("caf\xe9 cr\xe8me "), size/11))},
		{"base64", Format{Binary: Base64}, &r},
		{"envelope", Format{Envelope: true}, &r},
		{"name=header", Format{Event: EventName{Header: "type"}}, &r},
		{"name=json", Format{Event: EventName{JSON: "name"}}, &r},
		{"delete", Format{}, value(nil)},
	} {
		b.Run(c.name, func(b *testing.B) { benchEncode(b, c.f, c.r) })
	}
}

func benchEncode(b *testing.B, f Format, r *Record) {
	e, err := NewEncoder(f)
	if err != nil {
		b.Fatal(err)
	}
	id := []byte("v1:0-5812~ab3f9")
	var dst []byte
	b.SetBytes(int64(len(r.Value)))
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = e.AppendEvent(dst[:0], id, r)
	}
}

// BenchmarkIDWriter is what a feed pays for the id of every record.
func BenchmarkIDWriter(b *testing.B) {
	for _, c := range []struct {
		parts int
		next  int64
	}{{1, 5000}, {12, 5000}, {12, 50_000_000}, {100, 50_000_000}} {
		b.Run(fmt.Sprintf("parts=%d/next=%d", c.parts, c.next), func(b *testing.B) {
			var w IDWriter
			w.Set(vector(c.parts, c.next))
			var dst []byte
			part, next := 0, c.next
			b.ReportAllocs()
			for b.Loop() {
				if part++; part == c.parts {
					part = 0
					if next++; next == c.next+4000 { // stays at its length, as it mostly does
						next = c.next
					}
				}
				w.Advance(0, int32(part), next)
				dst = w.Append(dst[:0])
			}
			b.ReportMetric(float64(len(dst)), "B/id")
		})
	}
}

// BenchmarkAppendID is what IDWriter saves.
func BenchmarkAppendID(b *testing.B) {
	for _, parts := range []int{1, 12, 100} {
		b.Run(fmt.Sprintf("parts=%d", parts), func(b *testing.B) {
			p := vector(parts, 50_000_000)
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendID(dst[:0], p)
			}
		})
	}
}

func BenchmarkParseID(b *testing.B) {
	for _, parts := range []int{1, 12, 100} {
		b.Run(fmt.Sprintf("parts=%d", parts), func(b *testing.B) {
			id := AppendID(nil, vector(parts, 50_000_000))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseID(id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendReframed(b *testing.B) {
	e, _ := NewEncoder(Format{})
	frame, out := e.AppendEvent(nil, []byte("v1:0-5812~ab3f9"), &Record{Value: text(1 << 10)})
	id := AppendID(nil, vector(12, 50_000_000))
	var dst []byte
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendReframed(dst[:0], id, frame, out.Extents)
	}
}

// vector returns a position in one topic, all of whose partitions are at next.
func vector(parts int, next int64) Position {
	g := Group{Tag: MakeTag("events", TopicID{1})}
	for i := range parts {
		g.Parts = append(g.Parts, Partition{ID: int32(i), Next: next})
	}
	return Position{g}
}
