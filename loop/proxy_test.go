package loop

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The address block and the extensions of version 2 headers, in hex.
const (
	sigV2     = "0d0a0d0a000d0a515549540a"
	tcp4Block = "cb007107" + "c0000201" + "d431" + "01bb" // 203.0.113.7:54321 to 192.0.2.1:443
	tcp6Block = "20010db8000000000000000000000007" + "20010db8000000000000000000000001" + "d431" + "01bb"
)

func v2(rest string) string {
	b, err := hex.DecodeString(sigV2 + rest)
	if err != nil {
		panic(err)
	}
	return string(b)
}

var proxyHeaders = []struct {
	name, head string
	addr       string // "": the balancer's own
	err        string // "": none
}{
	{"v1 TCP4", "PROXY TCP4 203.0.113.7 192.0.2.1 54321 443\r\n", "203.0.113.7", ""},
	{"v1 TCP6", "PROXY TCP6 2001:db8::7 2001:db8::1 54321 443\r\n", "2001:db8::7", ""},
	{"v1 mapped", "PROXY TCP6 ::ffff:203.0.113.7 ::ffff:192.0.2.1 1 2\r\n", "203.0.113.7", ""},
	{"v1 UNKNOWN", "PROXY UNKNOWN\r\n", "", ""},
	{"v1 UNKNOWN with more", "PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", "", ""},
	{"v2 TCP4", v2("2111000c" + tcp4Block), "203.0.113.7", ""},
	{"v2 TCP6", v2("21210024" + tcp6Block), "2001:db8::7", ""},
	{"v2 TCP4 with extensions", v2("21110014" + tcp4Block + "0300051234567890"), "203.0.113.7", ""},
	{"v2 LOCAL", v2("20000000"), "", ""},
	{"v2 LOCAL with an address", v2("2011000c" + tcp4Block), "", ""},

	{"no header", "GET / HTTP/1.1\r\n", "", "there is no PROXY header"},
	{"another word", "PROXIES TCP4 203.0.113.7 192.0.2.1 54321 443\r\n", "", "there is no PROXY header"},
	{"a letter behind", "PROXYX TCP4 203.0.113.7 192.0.2.1 54321 443\r\n", "", "can't read version 1 header"},
	{"no line end", "PROXY TCP4 " + strings.Repeat("1", 200), "", "too long"},
	{"LF alone", "PROXY TCP4 203.0.113.7 192.0.2.1 54321 443\n", "", "must end with"},
	{"two spaces", "PROXY  TCP4 203.0.113.7 192.0.2.1 54321 443\r\n", "", "address family"},
	{"leading zero", "PROXY TCP4 203.0.113.07 192.0.2.1 54321 443\r\n", "", "invalid address"},
	{"a name", "PROXY TCP4 localhost 192.0.2.1 54321 443\r\n", "", "invalid address"},
	{"a zone", "PROXY TCP6 fe80::1%lo 2001:db8::1 54321 443\r\n", "", "invalid address"},
	{"port 65536", "PROXY TCP4 203.0.113.7 192.0.2.1 65536 443\r\n", "", "invalid port"},
	{"UDP", "PROXY UDP4 203.0.113.7 192.0.2.1 54321 443\r\n", "", "address family"},
	{"v2 short", v2("21110008" + tcp4Block[:16]), "", "invalid length"},
	{"v2 long", v2("21111001" + tcp4Block), "", "too long"},
	{"v2 version 3", v2("3111000c" + tcp4Block), "", "version and command"},
	{"v2 UDP", v2("2112000c" + tcp4Block), "", "another transport"},
	{"v2 unix", v2("213100d8" + strings.Repeat("00", 216)), "", "another transport"},
	{"v2 unknown family", v2("2141000c" + tcp4Block), "", "address family"},
}

// TestProxyHeader reads headers cut at each place, and with a request behind.
func TestProxyHeader(t *testing.T) {
	for _, tc := range proxyHeaders {
		t.Run(tc.name, func(t *testing.T) {
			addr, n, err := readHeader(t, tc.head+"GET /events HTTP/1.1\r\n")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			want, _ := netip.ParseAddr(tc.addr) // not valid for ""
			if err != nil || addr != want || n != len(tc.head) {
				t.Errorf("got %v, %d of %d bytes, %v, want %v", addr, n, len(tc.head), err, tc.addr)
			}
		})
	}
}

// readHeader reads the header at the front of text, and checks that no cut
// makes a difference: before its end it is not whole, or is not one.
func readHeader(t *testing.T, text string) (addr netip.Addr, n int, err error) {
	b := []byte(text)
	whole, err := proxyLen(slices.Clip(b))
	for i := range whole {
		if _, cut := proxyLen(b[:i:i]); cut != errProxyMore {
			t.Errorf("cut at %d of %d: %v", i, whole, cut)
		}
	}
	if err != nil {
		return addr, 0, err
	}
	addr, err = parseProxy(b[:whole:whole])
	return addr, whole, err
}

func FuzzProxyHeader(f *testing.F) {
	for _, tc := range proxyHeaders {
		f.Add(tc.head)
	}
	f.Fuzz(func(t *testing.T, head string) {
		addr, n, err := readHeader(t, head)
		if err != nil {
			return
		}
		if n > proxyBytesMax || n > len(head) {
			t.Errorf("a header of %d bytes, of %d", n, len(head))
		}
		if addr.Is4In6() || addr.Zone() != "" {
			t.Errorf("address %v", addr)
		}
		if want := proxySource([]byte(head[:n])); addr.IsValid() && addr != want {
			t.Errorf("address %v, the header says %v", addr, want)
		}
		if again, m, err := readHeader(t, head[:n]+"GET"); err != nil || m != n || again != addr {
			t.Errorf("with more behind: %v, %d, %v, was %v, %d", again, m, err, addr, n)
		}
	})
}

// proxySource reads the source out of a header that is right, without more.
func proxySource(head []byte) (addr netip.Addr) {
	if words := strings.Split(string(head), " "); words[0] == "PROXY" && len(words) > 2 {
		addr, _ = netip.ParseAddr(words[2])
	} else if len(head) >= 28 && head[13] == 0x11 {
		addr = netip.AddrFrom4([4]byte(head[16:]))
	} else if len(head) >= 52 && head[13] == 0x21 {
		addr = netip.AddrFrom16([16]byte(head[16:]))
	}
	return addr.Unmap()
}

func behind(networks ...string) func(*setup) {
	return func(as *setup) {
		as.Proxy = ProxyRequired
		for _, n := range networks {
			as.ProxyTrusted = append(as.ProxyTrusted, netip.MustParsePrefix(n))
		}
	}
}

// TestProxyProtocol: what a balancer says about a client is what counts, on
// both listeners.
func TestProxyProtocol(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		s := start(t, func(as *setup) { with(as); behind("127.0.0.0/8")(as); as.MaxConnsPerIP = 2 })
		s.open(1)
		page := func(head string) *page { return s.pageBehind(head) }
		first := page(proxyHeaders[0].head)
		page(v2("2111000c" + tcp4Block))
		third := s.dialBehind(v2("2111000c" + tcp4Block))
		// The first call that meets the reset is told of it, and no later one.
		_, err := third.Write([]byte(req("GET /events HTTP/1.1")))
		if got := third.all(); !strings.HasSuffix(got, "reset") && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a third one got %v, then %q", err, got)
		}
		page(v2("21210024" + tcp6Block))
		for range 3 { // health checks count for nobody
			page(v2("20000000"))
		}
		first.Close()
		eventually(t, "a place is free", func() bool { return s.srv.accepter.count() == 5 })
		page(proxyHeaders[0].head)
		s.produce(0, "one")
	})
}

// dialBehind connects as a balancer that sends head.
func (s *site) dialBehind(head string) *client {
	s.t.Helper()
	c := s.dial()
	if _, err := c.tcp.Write([]byte(head)); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// pageBehind opens a stream through such a balancer.
func (s *site) pageBehind(head string) *page {
	s.t.Helper()
	p := &page{client: s.dialBehind(head), buf: make([]byte, 64<<10)}
	p.send(req("GET /events HTTP/1.1"))
	for p.stream.Head == nil {
		if err := p.more(); err != nil {
			s.t.Fatal(err)
		}
	}
	return p
}

// TestProxyRefusals: no header, a wrong one, half of one, and one from a
// client that is nobody's balancer.
func TestProxyRefusals(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		for name, tc := range map[string]struct {
			networks, text string
		}{
			"none":      {"127.0.0.0/8", req("GET /events HTTP/1.1")},
			"wrong":     {"127.0.0.0/8", "PROXY TCP4 a b 1 2\r\n"},
			"half":      {"127.0.0.0/8", "PROXY TCP4 203"},
			"nothing":   {"127.0.0.0/8", ""},
			"untrusted": {"10.0.0.0/8", proxyHeaders[0].head},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := start(t, func(as *setup) { with(as); behind(tc.networks)(as); as.HeaderTimeout = time.Second })
				s.open(1)
				s.tls = nil                                    // none of them gets as far
				if c, err := s.from("127.0.0.1"); err == nil { // it may be reset as soon as that, or then
					_, _ = c.Write([]byte(tc.text))
					c.all()
				}
				eventually(t, "it is refused", func() bool {
					_, refused := s.srv.Accepted()
					closed := s.stats().Closed
					return refused["proxy"]+refused["tls-timeout"]+closed["proxy"]+closed["timeout"] == 1
				})
				eventually(t, "nobody is left", func() bool { return s.srv.accepter.count() == 0 })
			})
		}
	})
}

// TestProxyOptional: those who may send a header need not.
func TestProxyOptional(t *testing.T) {
	plainAndSealed(t, func(t *testing.T, with func(*setup)) {
		s := start(t, func(as *setup) { with(as); behind("127.0.0.0/8")(as); as.Proxy = ProxyOptional })
		s.open(1)
		s.page("HTTP/1.1", "/events")
		s.pageBehind(proxyHeaders[0].head)
		c := s.dial()
		if s.tls == nil { // for a moment it looks like one
			for _, b := range req("POST /events HTTP/1.1", "Content-Length: 0", "Connection: close") {
				c.send(string(b))
			}
			if got := c.all(); !strings.HasPrefix(got, "HTTP/1.1 405 ") {
				t.Errorf("got %q", got)
			}
		}
	})
}

// TestProxyAddr: history is shared out by the address that the balancer says.
func TestProxyAddr(t *testing.T) {
	r := newRig(t, behind("0.0.0.0/0"))
	r.open(1)
	p := r.dialThrough(&edge{proxy: true})
	p.send(proxyHeaders[0].head + req("GET /events HTTP/1.1"))
	if got := p.c.addr(); got != netip.MustParseAddr("203.0.113.7") {
		t.Errorf("its address is %v", got)
	}
	if p.c.state != stateStream {
		t.Errorf("state %d", p.c.state)
	}
}
