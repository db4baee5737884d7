package ssetest

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"slices"
)

// Stream reads an HTTP/1.x response that is an event stream. The zero Stream
// awaits the head.
type Stream struct {
	Parser Parser
	Chunks Chunks // unused by a response that is not chunked

	// Head is the response's status and header fields, nil until they are
	// complete. Its Body is not to be used.
	Head *http.Response

	head []byte
}

// Feed takes the next bytes of the connection and returns the events they
// complete.
func (s *Stream) Feed(b []byte) ([]Event, error) {
	if s.Head == nil {
		s.head = append(s.head, b...)
		end := bytes.Index(s.head, []byte("\r\n\r\n"))
		if end < 0 {
			return nil, nil
		}
		end += len("\r\n\r\n")
		head, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(s.head[:end])), nil) //nolint:bodyclose // it is given the head alone
		if err != nil {
			return nil, fmt.Errorf("response head: %w", err)
		}
		s.Head, b, s.head = head, s.head[end:], nil
	}
	if !slices.Contains(s.Head.TransferEncoding, "chunked") {
		return s.Parser.Feed(b), nil
	}
	data, err := s.Chunks.Feed(b)
	return s.Parser.Feed(data), err
}
