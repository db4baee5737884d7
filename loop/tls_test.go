package loop

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ours is the certificate of every server here, made once.
var ours = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"gw.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

// withTLS makes a server listen by TLS alone.
func withTLS(as *setup) {
	as.TLS = &tls.Config{
		Certificates: []tls.Certificate{ours()}, NextProtos: []string{"http/1.1"}, DynamicRecordSizingDisabled: true,
	}
}

func clientTLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(ours().Leaf)
	return &tls.Config{RootCAs: roots, ServerName: "gw.test", NextProtos: []string{"h2", "http/1.1"}}
}

// plainAndSealed runs a test without TLS and with it.
func plainAndSealed(t *testing.T, test func(t *testing.T, with func(*setup))) {
	t.Run("plain", func(t *testing.T) { test(t, func(*setup) {}) })
	t.Run("TLS", func(t *testing.T) { test(t, withTLS) })
}

// TestTLS: a stream as a browser has it, a client that offers HTTP/2 too, and
// a session that is taken up again.
func TestTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			s := start(t, withTLS)
			s.tls.MinVersion, s.tls.MaxVersion = version, version
			s.tls.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			s.open(1)
			s.page("HTTP/1.1", "/events").Close()
			p := s.page("HTTP/1.1", "/events")
			st := p.Conn.(*tls.Conn).ConnectionState()
			if st.NegotiatedProtocol != "http/1.1" || !st.DidResume || st.Version != version {
				t.Errorf("protocol %q, resumed: %t, version %x", st.NegotiatedProtocol, st.DidResume, st.Version)
			}
			for i := range 50 {
				want := strings.Repeat(fmt.Sprint(i, " "), 1+i*200)
				s.produce(0, want)
				if got := p.next(); got.Data != want {
					t.Fatalf("event %d: got %.100q", i, got.Data)
				}
			}
			s.srv.loops[0].order(orderDrain)
			endsCleanly(t, p) // without close_notify it were io.ErrUnexpectedEOF
			p.Close()
			s.closed(closeDrain, 1)
		})
	}
}

// TestTLSRequests: answers, a kept connection, a body, requests in one record
// with others and cut into many.
func TestTLSRequests(t *testing.T) {
	s := start(t, withTLS)
	c := s.dial()
	text := req("GET /nope HTTP/1.1") + req("POST /events HTTP/1.1", "Content-Length: 5") + "hello" + req("HEAD /events HTTP/1.1", "Connection: close")
	c.send(text[:40])
	for _, b := range text[40:] {
		c.send(string(b))
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("%v behind %q", err, got)
	}
	for _, want := range []string{"HTTP/1.1 404 ", "HTTP/1.1 405 ", "HTTP/1.1 200 "} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	// What comes right behind the handshake, in the same segment.
	s.open(1)
	p := s.page("HTTP/1.1", "/events")
	s.produce(0, "one")
	if got := p.next(); got.Data != "one" {
		t.Errorf("got %v", got)
	}
	// Our client half-closes: its close_notify is the end of the stream.
	if err := p.Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.closed(closePeer, 1)
}

// TestTLSIdleEnds: a kept connection that is closed hears so.
func TestTLSIdleEnds(t *testing.T) {
	s := start(t, func(as *setup) { withTLS(as); as.waits.keepAlive = 50 * time.Millisecond })
	c := s.dial()
	c.send(req("GET /nope HTTP/1.1"))
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 404 ") {
		t.Errorf("got %q, %v", got, err)
	}
	s.closed(closeTimeout, 1)
}

// TestTLSSlowReader: a client that reads slowly gets every byte, whatever
// part of a record the socket refused.
func TestTLSSlowReader(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS)
	s.open(1)
	p := s.page("HTTP/1.1", "/events")
	if err := p.tcp.SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	p.buf = p.buf[:7001]
	var want []string
	for i := range 40 {
		want = append(want, strings.Repeat(fmt.Sprint(i, " "), 20_000))
		s.produce(0, want[i])
	}
	eventually(t, "it lags", func() bool { return s.stats().Lagging == 1 })
	for i, v := range want {
		if got := p.next(); got.Data != v {
			t.Fatalf("event %d: %d bytes, want %d", i, len(got.Data), len(v))
		}
	}
	eventually(t, "it has caught up", func() bool { return s.stats().Lagging == 0 })
}

// TestTLSFarewellWaits: the end of a stream waits for the socket, close_notify
// too.
func TestTLSFarewellWaits(t *testing.T) {
	t.Parallel()
	s := start(t, func(as *setup) { withTLS(as); as.Drain = 20 * time.Second })
	s.open(1)
	c := s.dial()
	if err := c.tcp.SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	s.asks(c)
	s.produce(0, strings.Repeat("x", 1<<20-100), "not begun")
	eventually(t, "it lags", func() bool { return s.stats().Lagging == 1 })
	s.srv.loops[0].order(orderDrain)
	p := &page{client: c, buf: make([]byte, 64<<10)}
	events, err := p.rest()
	if err != io.EOF || len(events) != 1 || !p.stream.Chunks.Done {
		t.Errorf("%d events, %v", len(events), err)
	}
	c.Close()
	s.closed(closeDrain, 1)
}

// refusals waits until that many connections were refused for the reason.
func (s *site) refusals(why string, n uint64) {
	s.t.Helper()
	eventually(s.t, fmt.Sprint(n, " refused: ", why), func() bool {
		_, refused := s.srv.Accepted()
		return refused[why] == n && s.srv.accepter.count() == 0
	})
}

func TestTLSRefusals(t *testing.T) {
	plainly := func(s *site) *client { s.tls = nil; return s.dial() }
	for _, tc := range []struct {
		name string
		do   func(s *site) (got string)
		want string
	}{
		{"HTTP", func(s *site) string { c := plainly(s); c.send(req("GET /events HTTP/1.1")); return c.all() }, "400 Bad Request\r\n"},
		{"garbage", func(s *site) string { c := plainly(s); c.send("\xff\xff\xff\xff\xff\xff\xff\xff"); return c.all() }, ""},
		{"garbage behind a head", func(s *site) string {
			c := plainly(s)
			c.send("\x16\x03\x01\x07\x00\x01\xff\xff\xff\xff\xff")
			return c.all()
		}, ""},
		{"nothing", func(s *site) string { return plainly(s).all() }, "reset"},
		{"half a hello", func(s *site) string { c := plainly(s); c.send("\x16\x03\x01\x02\x00\x01"); return c.all() }, "reset"},
		{"HTTP/2 alone", func(s *site) string { s.tls.NextProtos = []string{"h2"}; return s.dial().handshake() }, "no application protocol"},
		{"TLS 1.1", func(s *site) string {
			s.tls.MinVersion, s.tls.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
			return s.dial().handshake()
		}, "protocol version not supported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(as *setup) { withTLS(as); as.HeaderTimeout = time.Second })
			if got := tc.do(s); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it", got, tc.want)
			}
			why := "tls"
			if tc.want == "reset" {
				why = "tls-timeout"
			}
			s.refusals(why, 1)
		})
	}
}

// all reads to the end of a connection.
func (c *client) all() string {
	b, err := io.ReadAll(c)
	if errors.Is(err, syscall.ECONNRESET) {
		return string(b) + "reset"
	}
	return string(b)
}

// handshake returns how it fails.
func (c *client) handshake() string {
	return fmt.Sprint(c.Conn.(*tls.Conn).Handshake())
}

// TestTLSPlacesAreTaken: more clients than places hang in their handshakes;
// one that does not gets through.
func TestTLSPlacesAreTaken(t *testing.T) {
	s := start(t, func(as *setup) { withTLS(as); as.MaxConns, as.HeaderTimeout = 3*handshakesMax, 20*time.Second })
	s.open(1)
	const over = 50
	var silent []net.Conn
	for range handshakesMax + over {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		silent = append(silent, c)
	}
	p := s.page("HTTP/1.1", "/events")
	eventually(t, "the oldest have gone", func() bool {
		_, refused := s.srv.Accepted()
		return refused["tls-timeout"] == over+1
	})
	s.produce(0, "one")
	if got := p.next(); got.Data != "one" {
		t.Errorf("got %v", got)
	}
	for _, c := range silent[:over+1] {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("an old one: %v", err)
		}
	}
	if err := silent[over+1].SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := silent[over+1].Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a newer one: %v", err)
	}
}

// TestTLSEndsInTurn: the ends of handshakes have their CPU, too, however many
// there are at once.
func TestTLSEndsInTurn(t *testing.T) {
	s := start(t, withTLS)
	cpus := s.srv.accepter.handshakes.cpus
	for range cap(cpus) {
		cpus <- struct{}{}
	}
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "this is no TLS"); err != nil {
		t.Fatal(err)
	}
	read := func(within time.Duration) error {
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(make([]byte, 1))
		return err
	}
	if err := read(200 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("while others have the CPU: %v", err)
	}
	for range cap(cpus) {
		<-cpus
	}
	if err := read(20 * time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("afterwards: %v", err)
	}
}

// forger seals records of its own as a TLS 1.3 client (AES-128-GCM): what
// crypto/tls has no call for.
type forger struct {
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

// Write implements KeyLogWriter.
func (f *forger) Write(line []byte) (int, error) {
	if word := strings.Fields(string(line)); word[0] == "CLIENT_TRAFFIC_SECRET_0" {
		secret, err := hex.DecodeString(word[2])
		if err != nil {
			return 0, err
		}
		f.use(secret)
	}
	return len(line), nil
}

// use derives the keys of a secret (RFC 8446 7.3).
func (f *forger) use(secret []byte) {
	block, err := aes.NewCipher(expand(secret, "key", 16))
	if err != nil {
		panic(err)
	}
	if f.aead, err = cipher.NewGCM(block); err != nil {
		panic(err)
	}
	f.secret, f.iv, f.seq = secret, expand(secret, "iv", 12), 0
}

func expand(secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	info := string([]byte{0, byte(n), byte(len(label))}) + label + "\x00"
	b, err := hkdf.Expand(sha256.New, secret, info, n)
	if err != nil {
		panic(err)
	}
	return b
}

// seal makes a record of a type (RFC 8446 5.2).
func (f *forger) seal(kind byte, content string) []byte {
	head := []byte{23, 3, 3, 0, byte(len(content) + 17)}
	nonce := append([]byte(nil), f.iv...)
	binary.BigEndian.PutUint64(nonce[4:], binary.BigEndian.Uint64(nonce[4:])^f.seq)
	f.seq++
	return f.aead.Seal(head, nonce, append([]byte(content), kind), head[:5:5])
}

// keyUpdate is the message that asks for one in return (RFC 8446 4.6.3).
const keyUpdate = "\x18\x00\x00\x01\x01"

// update is a KeyUpdate, after which the keys are new.
func (f *forger) update() []byte {
	_, b := f.updateCut(0)
	return b
}

// updateCut is a KeyUpdate in two records, the first with so many of its bytes.
func (f *forger) updateCut(at int) (first, second []byte) {
	if at > 0 {
		first = f.seal(22, keyUpdate[:at])
	}
	second = f.seal(22, keyUpdate[at:])
	f.use(expand(f.secret, "traffic upd", 32))
	return first, second
}

// forge is a client whose next records are the forger's; one was sent already.
func (s *site) forge(first string) (*page, *forger) {
	s.t.Helper()
	f := &forger{}
	s.tls.KeyLogWriter, s.tls.MinVersion = f, tls.VersionTLS13
	p := &page{client: s.dial(), buf: make([]byte, 64<<10)}
	p.send(first)
	if got := p.Conn.(*tls.Conn).ConnectionState().CipherSuite; got != tls.TLS_AES_128_GCM_SHA256 {
		s.t.Fatalf("cipher suite %x", got)
	}
	f.seq = 1
	return p, f
}

// TestTLSKeyUpdate: a client takes new keys in the middle of its stream, with a
// message in one record or two, and asks for ours to change too.
func TestTLSKeyUpdate(t *testing.T) {
	s := start(t, withTLS)
	s.open(1)
	p, f := s.forge(req("GET /events HTTP/1.1"))
	for p.stream.Head == nil {
		if err := p.more(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 16 {
		first, second := f.updateCut(i % len(keyUpdate))
		if _, err := p.tcp.Write(first); err != nil {
			t.Fatal(err)
		}
		s.produce(0, "first "+strconv.Itoa(i))
		if got := p.next(); got.Data != "first "+strconv.Itoa(i) {
			t.Fatalf("got %v", got)
		}
		if _, err := p.tcp.Write(second); err != nil {
			t.Fatal(err)
		}
		s.produce(0, strconv.Itoa(i))
		if got := p.next(); got.Data != strconv.Itoa(i) {
			t.Fatalf("got %v", got)
		}
	}
	// The client's own records are under the new keys: its end is understood.
	if _, err := p.tcp.Write(f.seal(21, "\x01\x00")); err != nil {
		t.Fatal(err)
	}
	s.closed(closePeer, 1)
}

// TestTLSKeyUpdateFlood: a client that does nothing else is cut off, and so
// is one that doesn't read the replies, and one that breaks the protocol.
func TestTLSKeyUpdateFlood(t *testing.T) {
	for name, first := range map[string]string{"stream": req("GET /events HTTP/1.1"), "head": "GET /"} {
		t.Run(name, func(t *testing.T) {
			s := start(t, withTLS)
			s.open(1)
			p, f := s.forge(first)
			for range 17 {
				if _, err := p.tcp.Write(f.update()); err != nil {
					break // it is cut off
				}
			}
			s.closed(closeTLS, 1)
		})
	}
	t.Run("unread", func(t *testing.T) { // the replies fill its socket
		s := start(t, func(as *setup) { withTLS(as); as.SndBuf = 4096 })
		s.open(1)
		p, f := s.forge(req("GET /events HTTP/1.1"))
		if err := p.tcp.SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the stream is open", func() bool { return s.stats().Streams == 1 })
		s.produce(0, strings.Repeat("x", 500_000))
		eventually(t, "it lags", func() bool { return s.stats().Lagging == 1 })
		for i := range 2 * repliesMax / 27 {
			b := f.update()
			if i%16 == 15 {
				b = append(b, f.seal(23, "x")...)
			}
			if _, err := p.tcp.Write(b); err != nil {
				break // it is cut off
			}
		}
		s.closed(closeTLS, 1)
	})
	t.Run("forged", func(t *testing.T) {
		s := start(t, withTLS)
		s.open(1)
		p, f := s.forge(req("GET /events HTTP/1.1"))
		f.seq = 7
		if _, err := p.tcp.Write(f.seal(23, "hello")); err != nil {
			t.Fatal(err)
		}
		_, err := p.rest()
		if err == nil || !strings.Contains(err.Error(), "bad record MAC") {
			t.Errorf("got %v", err)
		}
		s.closed(closeTLS, 1)
	})
}
