package hostile

import (
	"net"
	"sync"
)

// sink is a listener that takes what attackers send to it, as little as they
// send to a gateway, and closes.
type sink struct {
	ln   net.Listener
	open sync.WaitGroup
}

func openSink() (*sink, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{ln: ln}
	s.open.Go(s.accept)
	return s, nil
}

func (s *sink) addr() string { return s.ln.Addr().String() }

func (s *sink) close() {
	_ = s.ln.Close()
	s.open.Wait()
}

// accept reads once of each connection, which is a request that has come
// already.
func (s *sink) accept() {
	buf := make([]byte, 4096)
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(buf)
		_ = c.Close()
	}
}
