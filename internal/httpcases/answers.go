package httpcases

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Answer is one response on a connection.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // as far as it came
}

// answers reads the responses on one connection.
type answers struct {
	list []Answer
	raw  []byte

	interim bool   // 1xx count
	heads   []bool // see Case.heads

	finals int    // in list or not
	rest   []byte // of raw, not yet read
	body   body
}

// body is how the present answer's body goes on.
type body struct {
	kind bodyKind
	left int // of the body or the chunk
}

type bodyKind int

const (
	noBody    bodyKind = iota // none, or it is over: a head comes next
	sized                     // left bytes
	untilEnd                  // all there is
	chunkSize                 // a chunk's head
	chunkData                 // left bytes and CRLF
	trailer                   // after the last chunk
)

// feed takes the next bytes of the connection. An error says that they are no
// HTTP/1 responses.
func (a *answers) feed(b []byte) error {
	a.raw = append(a.raw, b...)
	a.rest = append(a.rest, b...)
	for {
		progress, err := a.step()
		if err != nil || !progress {
			return err
		}
	}
}

// step reads the next element, if it is there.
func (a *answers) step() (bool, error) {
	switch a.body.kind {
	case noBody:
		return a.head()
	case sized:
		n := min(a.body.left, len(a.rest))
		a.take(n)
		if a.body.left -= n; a.body.left == 0 {
			a.body.kind = noBody
		}
		return n > 0, nil
	case untilEnd:
		n := len(a.rest)
		a.take(n)
		return n > 0, nil
	case chunkSize:
		line, found := a.line()
		if !found {
			return false, nil
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseInt(size, 16, 32)
		if err != nil || n < 0 {
			return false, fmt.Errorf("chunk size %.40q", line)
		}
		a.body = body{chunkData, int(n)}
		if n == 0 {
			a.body.kind = trailer
		}
		return true, nil
	case chunkData:
		if len(a.rest) < a.body.left+2 {
			return false, nil
		}
		a.take(a.body.left)
		if !bytes.HasPrefix(a.rest, []byte("\r\n")) {
			return false, fmt.Errorf("%.2q after a chunk", a.rest)
		}
		a.rest = a.rest[2:]
		a.body = body{kind: chunkSize}
		return true, nil
	default: // trailer
		line, found := a.line()
		if found && line == "" {
			a.body = body{}
		}
		return found, nil
	}
}

// take moves n bytes of rest to the present answer's body.
func (a *answers) take(n int) {
	last := &a.list[len(a.list)-1]
	last.Body = append(last.Body, a.rest[:n]...)
	a.rest = a.rest[n:]
}

// line takes a line, if it is whole.
func (a *answers) line() (string, bool) {
	line, rest, found := bytes.Cut(a.rest, []byte("\r\n"))
	if found {
		a.rest = rest
	}
	return string(line), found
}

// head reads a response head.
func (a *answers) head() (bool, error) {
	const version = "HTTP/1."
	if n := min(len(a.rest), len(version)); string(a.rest[:n]) != version[:n] {
		return false, fmt.Errorf("no HTTP/1 response: %.60q", a.rest)
	}
	end := bytes.Index(a.rest, []byte("\r\n\r\n"))
	if end < 0 {
		return false, nil
	}
	end += len("\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(a.rest[:end])), nil)
	if err != nil {
		return false, fmt.Errorf("response head: %w", err)
	}
	_, _ = io.Copy(io.Discard, res.Body) // it ends with the head
	_ = res.Body.Close()
	a.rest = a.rest[end:]
	if res.StatusCode < 200 && !a.interim {
		return true, nil
	}
	a.list = append(a.list, Answer{Status: res.StatusCode, Header: res.Header})
	if res.StatusCode >= 200 {
		a.body = a.bodyOf(res)
		a.finals++
	}
	return true, nil
}

// bodyOf says what body follows a final answer's head (RFC 9112 6.3).
func (a *answers) bodyOf(res *http.Response) body {
	switch {
	case a.finals < len(a.heads) && a.heads[a.finals],
		res.StatusCode == http.StatusNoContent, res.StatusCode == http.StatusNotModified:
		return body{}
	case len(res.TransferEncoding) > 0:
		return body{kind: chunkSize}
	case res.ContentLength > 0:
		return body{sized, int(res.ContentLength)}
	case res.ContentLength == 0:
		return body{}
	}
	return body{kind: untilEnd}
}

// torn reports whether an end of the connection now would cut an answer.
func (a *answers) torn() bool {
	return len(a.rest) > 0 || a.body.kind != noBody && a.body.kind != untilEnd
}
