package loop

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

// Proxy is what balancers are to say about the connections they pass on, by
// the PROXY protocol.
type Proxy uint8

// The modes of the PROXY protocol.
const (
	ProxyOff      Proxy = iota // nobody sends a header
	ProxyOptional              // those of Config.ProxyTrusted may
	ProxyRequired              // everybody must, and only those of Config.ProxyTrusted can
)

// proxyBytesMax bounds a header: the prefix of version 2 and what the parser
// takes behind it, room for a client's certificate among the extensions.
const proxyBytesMax = 16 + 4096

// proxyLineMax is the longest header of version 1, as its specification says.
const proxyLineMax = 107

var (
	errProxyMore  = errors.New("the PROXY header is not whole yet")
	errProxyLong  = errors.New("the PROXY header is too long")
	errProxyNone  = errors.New("there is no PROXY header")
	errProxyLimit = errors.New("its address has as many connections as it may")
)

// proxyLen returns how many bytes at the front of b are a PROXY header of
// either version, as far as its length tells. errProxyMore: b is the beginning
// of one; errProxyNone: it isn't.
func proxyLen(b []byte) (int, error) {
	switch {
	case begins(b, proxyproto.SIGV1):
		n := bytes.IndexByte(b[:min(len(b), proxyLineMax)], '\n') + 1
		if n == 0 && len(b) >= proxyLineMax {
			return 0, errProxyLong
		}
		if n == 0 {
			return 0, errProxyMore
		}
		return n, nil
	case begins(b, proxyproto.SIGV2):
		if len(b) < 16 {
			return 0, errProxyMore
		}
		n := 16 + int(binary.BigEndian.Uint16(b[14:]))
		if n > proxyBytesMax {
			return 0, errProxyLong
		}
		if len(b) < n {
			return 0, errProxyMore
		}
		return n, nil
	}
	return 0, errProxyNone
}

// begins reports whether b begins with sign, as far as either goes.
func begins(b, sign []byte) bool {
	n := min(len(b), len(sign))
	return bytes.Equal(b[:n], sign[:n])
}

// parseProxy reads a header that proxyLen has measured. The address is not
// valid when the balancer speaks for itself: a health check (LOCAL, UNKNOWN).
func parseProxy(head []byte) (netip.Addr, error) {
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(head), len(head)))
	if err != nil {
		return netip.Addr{}, err
	}
	if h.Command.IsLocal() {
		return netip.Addr{}, nil
	}
	from, ok := h.SourceAddr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, errors.New("the PROXY header is of another transport than TCP")
	}
	return from.AddrPort().Addr().Unmap(), nil
}

// trusts reports whether a PROXY header of addr is believed.
func (a *accepter) trusts(addr netip.Addr) bool {
	for _, p := range a.srv.cfg.ProxyTrusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// translate takes the address that a header says into e, and counts it. What
// a balancer opens for itself counts for no address.
func (a *accepter) translate(e *edge, head []byte) error {
	addr, err := parseProxy(head)
	if err != nil || !addr.IsValid() {
		return err
	}
	q, ok := a.perAddr.take(addr)
	if !ok {
		return errProxyLimit
	}
	e.addr, e.quota = addr, q
	return nil
}

// readProxy takes bytes of a PROXY header, in front of the first request. It
// is false when the connection is to be closed.
func (l *Loop) readProxy(c *conn, b []byte) (rest []byte, ok bool) {
	in := l.inboundOf(c)
	in.head = append(in.head, b...)
	n, err := proxyLen(in.head)
	switch {
	case err == errProxyMore:
		return nil, true
	case err == errProxyNone && l.srv.cfg.Proxy == ProxyOptional:
		in.head = in.head[:len(in.head)-len(b)] // as far as it was taken for one, it is the request
		c.state = stateHead
		return b, true
	case err == nil:
		err = l.srv.accepter.translate(c.edge, in.head[:n])
	}
	if err != nil {
		c.reason = closeProxy
		l.srv.journal.refused("proxy", c.addr())
		if err == errProxyLimit {
			c.reason = closeLimit
		}
		c.reset()
		return nil, false
	}
	rest = b[len(b)-(len(in.head)-n):]
	l.putInbound(c)
	c.state = stateHead
	l.wheel.set(c, l.now+l.srv.cfg.HeaderTimeout)
	return rest, true
}

// readProxy reads a PROXY header in front of a handshake, and keeps what came
// behind it for Read.
func (hs *handshake) readProxy(a *accepter, e *edge) error {
	b := make([]byte, 0, proxyBytesMax)
	for {
		n, err := hs.TCPConn.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			return err
		}
		n, err = proxyLen(b)
		switch {
		case err == errProxyMore:
			continue
		case err == errProxyNone && a.srv.cfg.Proxy == ProxyOptional:
			hs.early = b
			return nil
		case err != nil:
			return err
		}
		hs.early = b[n:]
		return a.translate(e, b[:n])
	}
}
