package loop

import (
	"bytes"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime"
	"testing"
	"unsafe"
)

// TestShrinkGuard: with a crypto/tls that nobody has read, or whose fields are
// elsewhere, nothing is touched.
func TestShrinkGuard(t *testing.T) {
	type inner struct { //nolint:unused // read by reflection
		pad            [3]uint64
		rawInput, hand bytes.Buffer
	}
	type (
		right    struct{ rawInput, hand bytes.Buffer } //nolint:unused // read by reflection
		embedded struct{ inner }                       //nolint:unused // read by reflection
		pointed  struct{ *inner }                      //nolint:unused // read by reflection
		other    struct {
			rawInput bytes.Reader //nolint:unused // read by reflection
			hand     bytes.Buffer //nolint:unused // read by reflection
		}
		behind struct{ rawInput, hand *bytes.Buffer } //nolint:unused // read by reflection
		one    struct{ rawInput bytes.Buffer }        //nolint:unused // read by reflection
		none   struct{ in bytes.Buffer }              //nolint:unused // read by reflection
	)
	for _, tc := range []struct {
		conn reflect.Type
		with string
		want int
	}{
		{reflect.TypeFor[right](), "go1.26", 2},
		{reflect.TypeFor[right](), "go1.26.8", 2},
		{reflect.TypeFor[right](), "go1.26rc1", 2},
		{reflect.TypeFor[right](), "go1.26.1-corp", 2},
		{reflect.TypeFor[right](), "go1.25.9", 0},
		{reflect.TypeFor[right](), "go1.27", 0},
		{reflect.TypeFor[right](), "go1.260", 0},
		{reflect.TypeFor[right](), "go2.26", 0},
		{reflect.TypeFor[right](), "devel go1.26-0123456789 Thu Jan 1", 0},
		{reflect.TypeFor[right](), "", 0},
		{reflect.TypeFor[embedded](), "go1.26", 0},
		{reflect.TypeFor[pointed](), "go1.26", 0},
		{reflect.TypeFor[other](), "go1.26", 0},
		{reflect.TypeFor[behind](), "go1.26", 0},
		{reflect.TypeFor[one](), "go1.26", 0},
		{reflect.TypeFor[none](), "go1.26", 0},
	} {
		if got := buffersIn(tc.conn, tc.with); len(got) != tc.want {
			t.Errorf("%v with %q: offsets %v, want %d", tc.conn, tc.with, got, tc.want)
		}
	}
	if len(handshakeBuffers) != 2 {
		t.Errorf("with %s buffers stay: read its crypto/tls, see docs/adr/0007", runtime.Version())
	}
}

// TestShrink: a session reads on whatever it was in the middle of, and holds
// nothing when there is nothing.
func TestShrink(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			server, client, sent := sessionPair(t, version)
			random := rand.New(rand.NewPCG(1, uint64(version))) // the pieces; any would do
			var in, want, got []byte
			server.wire.Conn, server.wire.out = nil, &in // its replies, which nobody reads
			opened := make([]byte, recordMax)
			for range 300 {
				text := make([]byte, random.IntN(3000))
				if random.IntN(10) == 0 {
					text = make([]byte, random.IntN(3*recordMax))
				}
				for i := range text {
					text[i] = byte(random.Uint32())
				}
				want = append(want, text...)
				if _, err := client.Write(text); err != nil {
					t.Fatal(err)
				}
				for len(*sent) > 0 && random.IntN(4) > 0 { // in pieces, some of them of the next turn
					n := 1 + random.IntN(len(*sent))
					server.wire.in, *sent = (*sent)[:n:n], (*sent)[n:]
					for {
						n, err := server.tls.Read(opened)
						got = append(got, opened[:n]...)
						if err == errDry {
							break
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					shrink(server.tls)
				}
			}
			server.wire.in = *sent
			for {
				n, err := server.tls.Read(opened)
				if got = append(got, opened[:n]...); err != nil {
					break
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("read %d bytes, want %d, or others", len(got), len(want))
			}
			shrink(server.tls)
			for _, at := range handshakeBuffers {
				if b := (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(server.tls), at)); b.Cap() != 0 {
					t.Errorf("%d bytes are kept", b.Cap())
				}
			}
			if _, err := server.tls.Write([]byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
}

// sessionPair is a server's session behind its handshake, and a client of it
// whose further records go to sent.
func sessionPair(t *testing.T, version uint16) (s *session, client *tls.Conn, sent *[]byte) {
	t.Helper()
	as := &setup{}
	withTLS(as)
	theirs := clientTLS()
	theirs.MinVersion, theirs.MaxVersion = version, version
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	s = newSession(near, as.TLS)
	end := &recorder{Conn: far}
	client = tls.Client(end, theirs)
	done := make(chan error, 1)
	go func() { done <- s.tls.Handshake() }()
	err := client.Handshake()
	if err = errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	end.sent = new([]byte)
	return s, client, end.sent
}

// recorder is a transport that keeps what is written once sent is there.
type recorder struct {
	net.Conn
	sent *[]byte
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.sent == nil {
		return r.Conn.Write(b)
	}
	*r.sent = append(*r.sent, b...)
	return len(b), nil
}
