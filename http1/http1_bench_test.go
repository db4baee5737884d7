package http1

import (
	"strconv"
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	heads := heads(b)
	heads["cookies-5k"] = []byte(get("Cookie: " + strings.Repeat("c0="+strings.Repeat("x", 96)+"; ", 50)))
	for _, name := range []string{"curl", "chrome", "firefox", "proxied", "cookies-5k"} {
		head := heads[name]
		b.Run(name, func(b *testing.B) {
			var p Parser
			var r Request
			b.SetBytes(int64(len(head)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Parse(head, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseBytewise: the cost of a byte must not grow with the head.
func BenchmarkParseBytewise(b *testing.B) {
	for _, size := range []int{500, 4000, 16000} {
		head := []byte(get("X: " + strings.Repeat("x", size)))
		b.Run("size="+strconv.Itoa(size), func(b *testing.B) {
			var p Parser
			var r Request
			b.SetBytes(int64(len(head)))
			b.ReportAllocs()
			for b.Loop() {
				for i := range head {
					p.Parse(head[:i+1], &r)
				}
			}
		})
	}
}

func BenchmarkBody(b *testing.B) {
	r := mustParse(b, post("Transfer-Encoding: chunked"))
	in := []byte(strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 4) + "0\r\n\r\n")
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		var body Body
		if err := body.Start(r, 1<<20); err != nil {
			b.Fatal(err)
		}
		for rest := in; !body.Done(); {
			_, n, err := body.Next(rest)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
	}
}

func BenchmarkAppendStreamHead(b *testing.B) {
	date := []byte(testDate)
	fields := []byte("Access-Control-Allow-Origin: https://app.example.com\r\nVary: Origin\r\n")
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendStreamHead(dst[:0], 1, date, fields)
	}
}

func BenchmarkAppendPath(b *testing.B) {
	raw := []byte("/events/eu%2Dwest/orders")
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = AppendPath(dst[:0], raw)
	}
}
