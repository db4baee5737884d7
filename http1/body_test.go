package http1

import (
	"strings"
	"testing"
)

// bodyOutcome is what came of a body: its data, how much of the input was
// taken, and how it ended.
type bodyOutcome struct {
	data  string
	taken int
	done  bool
	err   error
}

// readCuts reads a body that comes in pieces that end at cuts and at last whole.
func readCuts(r *Request, limit int64, in []byte, cuts ...int) (o bodyOutcome) {
	var b Body
	if o.err = b.Start(r, limit); o.err != nil {
		return o
	}
	var data []byte
	for _, end := range append(cuts, len(in)) {
		piece := append([]byte(nil), in[min(o.taken, end):end]...)
		for len(piece) > 0 && !b.Done() {
			d, n, err := b.Next(piece)
			data = append(data, d...)
			o.taken += n
			if err != nil {
				return bodyOutcome{string(data), o.taken, false, err}
			}
			for i := range n {
				piece[i] = 0xDB
			}
			piece = piece[n:]
		}
	}
	return bodyOutcome{string(data), o.taken, b.Done(), nil}
}

func readAnyhow(t testing.TB, r *Request, limit int64, in []byte) bodyOutcome {
	t.Helper()
	want := readCuts(r, limit, in)
	if got := readCuts(r, limit, in, everyByte(in)...); got != want {
		t.Errorf("%.200q\nbyte by byte: %+v\nwhole:        %+v", in, got, want)
	}
	for i := 0; i < len(in); i += step(in) {
		if got := readCuts(r, limit, in, i); got != want {
			t.Errorf("%.200q\ncut at %d: %+v\nwhole:     %+v", in, i, got, want)
		}
	}
	return want
}

const bodyMax = 100

// TestBody: one line a body that ends well.
func TestBody(t *testing.T) {
	chunked := mustParse(t, post("Transfer-Encoding: chunked"))
	for _, c := range []struct {
		r        *Request
		in, want string
	}{
		{mustParse(t, get()), "", ""},
		{mustParse(t, post()), "", ""},
		{mustParse(t, post("Content-Length: 0")), "", ""},
		{mustParse(t, post("Content-Length: 1")), "a", "a"},
		{mustParse(t, post("Content-Length: 100")), strings.Repeat("a", 100), strings.Repeat("a", 100)},
		{mustParse(t, "POST / HTTP/1.0\r\nContent-Length: 4\r\n\r\n"), "\r\n\x00\xFF", "\r\n\x00\xFF"},
		{chunked, "0\r\n\r\n", ""},
		{chunked, "000\r\n\r\n", ""},
		{chunked, "0000000000000000\r\n\r\n", ""},
		{chunked, "5\r\nhello\r\n0\r\n\r\n", "hello"},
		{chunked, "0000000000000005\r\nhello\r\n0\r\n\r\n", "hello"},
		{chunked, "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"},
		{chunked, "64\r\n" + strings.Repeat("a", 100) + "\r\n0\r\n\r\n", strings.Repeat("a", 100)},
		{chunked, strings.Repeat("1\r\na\r\n", 100) + "0\r\n\r\n", strings.Repeat("a", 100)},
		{chunked, "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"},
		{chunked, "1;x=1;y=\"q;\\\"z\"\r\na\r\n0;last\r\n\r\n", "a"},
		{chunked, "1;\r\na\r\n0; \t\xFF\r\n\r\n", "a"},
		{chunked, "0\r\nX-Trailer: v\r\nContent-Length: 99\r\nHost: evil.test\r\n\r\n", ""},
		{chunked, "0\r\nX:POST /smuggled HTTP/1.1\r\n\r\n", ""},
		{chunked, "0\r\nX:\r\nY:\xE2\t \r\n\r\n", ""},
		{chunked, "0\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{chunked, "1;a;b=;=c;;\r\na\r\n0\r\n\r\n", "a"},
		{chunked, "5\r\n0\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n"},
		{chunked, "3\r\n\x00\xFF\n\r\n0\r\n\r\n", "\x00\xFF\n"},
		{chunked, "0;" + strings.Repeat("x", chunkExtrasMax-1) + "\r\n\r\n", ""},
		{chunked, "0\r\nX:" + strings.Repeat("x", chunkExtrasMax-2) + "\r\n\r\n", ""},
	} {
		const next = "GET /next HTTP/1.1\r\n"
		got := readAnyhow(t, c.r, bodyMax, []byte(c.in+next))
		if want := (bodyOutcome{c.want, len(c.in), true, nil}); got != want {
			t.Errorf("%q\n got %+v\nwant %+v", c.in, got, want)
		}
		for i := range c.in {
			if got := readCuts(c.r, bodyMax, []byte(c.in[:i])); got.done || got.err != nil || got.taken != i {
				t.Errorf("%q: %+v, want more", c.in[:i], got)
			}
		}
	}
}

// TestBodyRefuses: one line a body that is refused, with its last byte.
func TestBodyRefuses(t *testing.T) {
	chunked := mustParse(t, post("Transfer-Encoding: chunked"))
	for _, c := range []struct {
		in   string
		want *Error
	}{
		{"\r", errChunkSize},
		{"\n", errChunkSize},
		{";", errChunkSize},
		{" ", errChunkSize},
		{"0 ", errChunkSize},
		{"0\t", errChunkSize},
		{"+", errChunkSize},
		{"-", errChunkSize},
		{"0x", errChunkSize},
		{"0_", errChunkSize},
		{"g", errChunkSize},
		{"0,", errChunkSize},
		{"\xEF", errChunkSize},
		{"I", errChunkSize},
		{"5\n", errChunkSize},
		{"5\r\r", errChunkExtension},
		{"5\rh", errChunkExtension},
		{"5;x\n", errChunkExtension},
		{"5;x\r\r", errChunkExtension},
		{"5;\x00", errChunkExtension},
		{"5;\v", errChunkExtension},
		{"5;\x7F", errChunkExtension},
		{"10000000000000005", errChunkSize},
		{"00000000000000000", errChunkSize},
		{"8000000000000000", errBodyLong},
		{"FFFFFFFFFFFFFFFF", errBodyLong},
		{"7fffffffffffffff\r\n", errBodyLong},
		{"65\r\n", errBodyLong},
		{"64\r\n" + strings.Repeat("a", 100) + "\r\n1\r\n", errBodyLong},
		{"5\r\nhelloX", errChunkEnd},
		{"5\r\nhello\n", errChunkEnd},
		{"5\r\nhello\rX", errChunkEnd},
		{"5\r\nhello\r\r", errChunkEnd},
		{"5\r\nhello\r\n\r", errChunkSize},
		{"1\r\na0", errChunkEnd},
		{"5 ", errChunkSize},
		{"5\x00", errChunkSize},
		{"\"", errChunkSize},
		{"5;\"\r\"", errChunkExtension},
		{"0\r\n\n", errTrailer},
		{"0\r\n\r\r", errTrailer},
		{"0\r\n\rX", errTrailer},
		{"0\r\n:", errTrailer},
		{"0\r\n ", errTrailer},
		{"0\r\n\t", errTrailer},
		{"0\r\n\x00", errTrailer},
		{"0\r\nX\r", errTrailer},
		{"0\r\nX\n", errTrailer},
		{"0\r\nX ", errTrailer},
		{"0\r\nX@", errTrailer},
		{"0\r\nX:y\n", errTrailer},
		{"0\r\nX:y\r\r", errTrailer},
		{"0\r\nX:y\x00", errTrailer},
		{"0\r\nX:y\r\n ", errTrailer},
		{"0\r\nX:y\r\n\rZ", errTrailer},
		{"0;" + strings.Repeat("x", chunkExtrasMax), errChunkExtras},
		{"0\r\nX:" + strings.Repeat("x", chunkExtrasMax-1), errChunkExtras},
		{"1;" + strings.Repeat("x", chunkExtrasMax-2) + "\r\na\r\n1;x", errChunkExtras},
		{"1;" + strings.Repeat("x", chunkExtrasMax-2) + "\r\na\r\n0\r\nXY", errChunkExtras},
		{strings.Repeat("1;"+strings.Repeat("x", 63)+"\r\na\r\n", chunkExtrasMax/64) + "1;", errChunkExtras},
	} {
		got := readAnyhow(t, chunked, bodyMax, []byte(c.in+"\r\nGET / HTTP/1.1\r\n"))
		if got.err != c.want || got.done || got.taken != len(c.in)-1 {
			t.Errorf("%.200q: %+v, want %v", c.in, got, c.want)
		}
		if got := readCuts(chunked, bodyMax, []byte(c.in[:len(c.in)-1])); got.err != nil || got.done {
			t.Errorf("%.200q: %+v, want more", c.in[:len(c.in)-1], got)
		}
	}
	var b Body
	if err := b.Start(mustParse(t, post("Content-Length: 101")), bodyMax); err != errBodyLong {
		t.Errorf("Content-Length: 101: %v", err)
	}
	if err := b.Start(mustParse(t, get("Content-Length: 1")), 0); err != errBodyLong {
		t.Errorf("Content-Length: 1 where none is taken: %v", err)
	}
}
