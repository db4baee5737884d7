//go:build clients

package apptest

import (
	"io"
	"net"
	"sync"
	"testing"

	"tailcast/internal/testkit"
)

// proxy passes connections on, until a test cuts them.
type proxy struct {
	addr string

	mu    sync.Mutex
	open  map[*net.TCPConn]*net.TCPConn // the client's, the server's
	total int
}

func startProxy(t testing.TB, upstream string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp4", testkit.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), open: map[*net.TCPConn]*net.TCPConn{}}
	t.Cleanup(func() { l.Close(); p.cut(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c.(*net.TCPConn), upstream)
		}
	}()
	return p
}

func (p *proxy) pass(client *net.TCPConn, upstream string) {
	defer client.Close()
	c, err := net.Dial("tcp4", upstream)
	if err != nil {
		return
	}
	defer c.Close()
	server := c.(*net.TCPConn)
	p.mu.Lock()
	p.open[client] = server
	p.total++
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
	p.mu.Lock()
	delete(p.open, client)
	p.mu.Unlock()
}

// connections is how many there were.
func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// cut ends every connection, by RST or by FIN.
func (p *proxy) cut(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, server := range p.open {
		if reset {
			_ = client.SetLinger(0)
		}
		_ = client.Close()
		_ = server.Close()
	}
}
