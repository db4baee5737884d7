package loop

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestHelloLen(t *testing.T) {
	const random = "01234567890123456789012345678901"
	for _, tc := range []struct {
		name, in string
		want     int // 0: errNoHello
	}{
		{"nothing", "", helloHead},
		{"half a head", "\x16\x03\x01", helloHead},
		{"a head", "\x16\x03\x01\x02\x00", 5 + 0x200},
		{"half a message's head", "\x16\x03\x01\x02\x00\x01\x00", 5 + 0x200},
		{"a hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random, 5 + 0x200},
		{"of SSL 3.0", "\x16\x03\x00\x00\x2d\x01\x00\x00\x29\x03\x00" + random, 5 + 0x2d},
		{"of a version to come", "\x16\x03\x04\x00\x2d\x01\x00\x00\x29\x03\x09" + random, 5 + 0x2d},
		{"that goes on in another record", "\x16\x03\x01\x00\x2d\x01\x00\x10\x00\x03\x03" + random, 5 + 0x2d},
		{"the longest", "\x16\x03\x01\x40\x00\x01\x00\x40\x00\x03\x03" + random, 5 + 0x4000},
		{"cut within its head", "\x16\x03\x01\x00\x02\x01\x00\x16\x03\x01", 7},
		{"cut within its version", "\x16\x03\x01\x00\x05\x01\x00\x01\xfc\x03\x16\x03\x01", 10},

		{"HTTP", "GET / HTTP/1.1\r\n", 0},
		{"SSL 2.0", "\x80\x2e\x01\x00\x02", 0},
		{"an alert", "\x15\x03\x01\x00\x02\x02\x28", 0},
		{"TLS of a far future", "\x16\x04\x01\x02\x00", 0},
		{"an empty record", "\x16\x03\x01\x00\x00", 0},
		{"a record too long", "\x16\x03\x01\x40\x01", 0},
		{"a server's hello", "\x16\x03\x01\x02\x00\x02", 0},
		{"a hello too long", "\x16\x03\x01\x40\x00\x01\x00\x40\x01", 0},
		{"a hello too short", "\x16\x03\x01\x00\x2c\x01\x00\x00\x28", 0},
		{"random behind the head", "\x16\x03\x01\x07\x00\x01\x9b\x2e\x71\xc8", 0},
		{"another version of hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x02", 0},
	} {
		n, err := helloLen([]byte(tc.in))
		if n != tc.want || (err != nil) != (tc.want == 0) {
			t.Errorf("%s: %d, %v, want %d", tc.name, n, err, tc.want)
		}
	}
}

// FuzzHello: bytes that were refused are refused whatever comes behind them, and
// what they ask for does not become less.
func FuzzHello(f *testing.F) {
	for _, hello := range hellos(f) {
		f.Add(hello, 7)
	}
	f.Add([]byte("\x16\x03\x01\x07\x00\x01\x9b\x2e\x71\xc8"), 5)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 3)
	f.Add([]byte("\x16\x03\x01\x00\x02\x01\x00\x16\x03\x01\x00\x02\x00\x30"), 8)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		n, err := helloLen(b)
		cut = max(0, min(cut, len(b)))
		early, earlyErr := helloLen(b[:cut])
		switch {
		case err != nil:
		case earlyErr != nil:
			t.Errorf("%q is refused, %q is not", b[:cut], b)
		case early > max(n, helloHead):
			t.Errorf("%q asks for %d bytes, %q for %d", b[:cut], early, b, n)
		case n <= recordHead || n > recordHead+recordMax:
			t.Errorf("a record of %d bytes", n)
		}
	})
}

// hellos are those of clients as they are, and some that went on.
func hellos(tb testing.TB) (all [][]byte) {
	for _, config := range []*tls.Config{
		{ServerName: "gw.test"},
		{ServerName: strings.Repeat("long.", 40) + "test", NextProtos: []string{"h2", "http/1.1"}},
		{ServerName: "gw.test", MaxVersion: tls.VersionTLS12},
		{ServerName: "gw.test", CurvePreferences: []tls.CurveID{tls.CurveP256}},
	} {
		var r helloRecorder
		if err := tls.Client(&r, config).Handshake(); !errors.Is(err, errRecorded) {
			tb.Fatal(err)
		}
		all = append(all, r.first)
	}
	return all
}

var errRecorded = errors.New("recorded")

// helloRecorder is a transport that keeps what is written first, and ends.
type helloRecorder struct {
	net.Conn
	first []byte
}

func (r *helloRecorder) Write(b []byte) (int, error) {
	r.first = slices.Clone(b)
	return 0, errRecorded
}

func (r *helloRecorder) Close() error { return nil }

// TestHelloInPieces: a hello is understood however it was cut, into segments and
// into records, and however long it is.
func TestHelloInPieces(t *testing.T) {
	for name, cut := range map[string]func(hello []byte) (segments [][]byte){
		"bytes": func(hello []byte) (all [][]byte) {
			for i := range hello[:200] {
				all = append(all, hello[i:i+1])
			}
			return append(all, hello[200:])
		},
		"records": func(hello []byte) [][]byte {
			b := hello[recordHead:]
			return [][]byte{record(b[:3]), record(b[3:10]), record(b[10:100]), record(b[100:])}
		},
		"records at once": func(hello []byte) [][]byte {
			b := hello[recordHead:]
			return [][]byte{slices.Concat(record(b[:2]), record(b[2:]))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, withTLS)
			s.open(1)
			raw, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { raw.Close() })
			for range 100 { // more than is read at once
				s.tls.NextProtos = append(s.tls.NextProtos, "some-other-protocol")
			}
			c := tls.Client(&cutter{Conn: raw, cut: cut}, s.tls)
			if _, err := c.Write([]byte(req("GET /events HTTP/1.1"))); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the stream is open", func() bool { return s.stats().Streams == 1 })
		})
	}
}

func record(b []byte) []byte {
	return append([]byte{22, 3, 1, byte(len(b) >> 8), byte(len(b))}, b...)
}

// cutter is a transport that cuts what is written first.
type cutter struct {
	net.Conn
	cut func([]byte) [][]byte // nil once it was
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.cut == nil {
		return c.Conn.Write(b)
	}
	all := c.cut(b)
	c.cut = nil
	for _, part := range all {
		if _, err := c.Conn.Write(part); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// TestHandshakesThatGoOn come before those that begin, but for one.
func TestHandshakesThatGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handshakes{cpus: make(chan struct{}, 1), begins: make(chan struct{}, 1)}
		order := make(chan string, 10)
		wait := func(what string, f func(*handshake)) {
			hs := &handshake{all: h, gone: make(chan struct{})}
			go func() {
				f(hs)
				order <- what
				hs.rest()
			}()
			synctest.Wait()
		}
		busy := &handshake{all: h}
		busy.goOn()
		for range 3 {
			wait("begins", func(hs *handshake) { hs.compute() })
		}
		for range 2 {
			wait("goes on", (*handshake).goOn)
		}
		busy.rest()
		synctest.Wait()
		close(order)
		var got []string
		for what := range order {
			got = append(got, what)
		}
		if want := []string{"begins", "goes on", "goes on", "begins", "begins"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
