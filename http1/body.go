package http1

import "math"

// Body finds the data of one request body in the bytes behind the head (RFC
// 9112 sections 6 and 7). Trailer fields are checked and thrown away: nothing in
// them can change the request. Loop only.
type Body struct {
	state  bodyState
	digits uint8 // of the chunk size so far
	extras int   // bytes of extensions and trailers so far
	left   int64 // bytes of the body, or of the chunk, still to come
	room   int64 // bytes of data that may still be announced
}

type bodyState uint8

const (
	bodyDone    bodyState = iota
	bodyLength            // data, Content-Length of it
	chunkSize             // hex digits
	chunkExt              // what follows a semicolon
	chunkSizeLF           // after the CR of the size line
	chunkData
	chunkDataCR
	chunkDataLF
	trailerStart // of a line: a name, or the end
	trailerName
	trailerValue
	trailerLF // after the CR of a trailer line
	finalLF   // after the CR of the last line
)

// Start makes b ready for the body of r. A body that announces more than limit
// bytes is refused at once.
func (b *Body) Start(r *Request, limit int64) error {
	*b = Body{room: limit}
	switch {
	case r.Chunked:
		b.state = chunkSize
	case r.Length > limit:
		return errBodyLong
	case r.Length > 0:
		b.state, b.left = bodyLength, r.Length
	}
	return nil
}

// Done reports whether the body was read to its end. What follows is the next
// request.
func (b *Body) Done() bool { return b.state == bodyDone }

// Next takes n bytes from the front of in and returns the data among them,
// which is at most one run and aliases in. It stops behind a run of data, at
// the body's end and at the end of in, and keeps nothing of in. Call it until
// Done or until in is used up; the data of all calls, joined, is the body. An
// error is an *Error and final.
func (b *Body) Next(in []byte) (data []byte, n int, err error) {
	for n < len(in) && b.state != bodyDone {
		if b.state == bodyLength || b.state == chunkData {
			data = in[n : n+int(min(b.left, int64(len(in)-n)))]
			n += len(data)
			b.took(len(data))
			return data, n, nil
		}
		if err := b.step(in[n]); err != nil {
			return nil, n, err
		}
		n++
	}
	return nil, n, nil
}

// took counts n bytes of data.
func (b *Body) took(n int) {
	b.left -= int64(n)
	switch {
	case b.left > 0:
	case b.state == bodyLength:
		b.state = bodyDone
	default:
		b.state = chunkDataCR
	}
}

// step reads one byte that is not data.
func (b *Body) step(c byte) error {
	switch b.state {
	case chunkSize:
		return b.size(c)
	case chunkExt:
		if c == '\r' {
			b.state = chunkSizeLF
			return nil
		}
		return b.extra(c, errChunkExtension)
	case chunkSizeLF:
		if c != '\n' {
			return errChunkExtension
		}
		return b.sizeEnd()
	case chunkDataCR:
		return b.expect(c, '\r', chunkDataLF, errChunkEnd)
	case chunkDataLF:
		b.digits = 0
		return b.expect(c, '\n', chunkSize, errChunkEnd)
	case finalLF:
		return b.expect(c, '\n', bodyDone, errTrailer)
	default:
		return b.trailer(c)
	}
}

// size reads a byte of a chunk size. Only a semicolon or CR may end it: the
// blanks that RFC 9112 section 7.1.1 tolerates are what smugglers send, and
// nobody else.
func (b *Body) size(c byte) error {
	switch {
	case class[c]&isHex != 0:
		if b.digits++; b.digits > chunkDigitsMax {
			return errChunkSize
		}
		if b.left > math.MaxInt64>>4 {
			return errBodyLong
		}
		b.left = b.left<<4 | int64(unhex(c))
		return nil
	case b.digits == 0:
		return errChunkSize
	case c == ';':
		b.state = chunkExt
		return b.extra(c, errChunkExtension)
	case c == '\r':
		b.state = chunkSizeLF
		return nil
	}
	return errChunkSize
}

// sizeEnd acts on a complete size line.
func (b *Body) sizeEnd() error {
	if b.left > b.room {
		return errBodyLong
	}
	b.room -= b.left
	b.state = chunkData
	if b.left == 0 {
		b.state = trailerStart
	}
	return nil
}

// trailer reads a byte of the trailer section, by the rules of the head.
func (b *Body) trailer(c byte) error {
	switch {
	case b.state == trailerLF:
		return b.expect(c, '\n', trailerStart, errTrailer)
	case b.state == trailerStart && c == '\r':
		b.state = finalLF
		return nil
	case b.state == trailerValue && c == '\r':
		b.state = trailerLF
		return nil
	case b.state == trailerValue:
	case b.state == trailerName && c == ':':
		b.state = trailerValue
	case class[c]&isToken != 0:
		b.state = trailerName
	default:
		return errTrailer
	}
	return b.extra(c, errTrailer)
}

// extra counts a byte of an extension or a trailer field.
func (b *Body) extra(c byte, bad error) error {
	if c < ' ' && c != '\t' || c == 0x7F {
		return bad
	}
	if b.extras++; b.extras > chunkExtrasMax {
		return errChunkExtras
	}
	return nil
}

// expect moves to state next if c is want.
func (b *Body) expect(c, want byte, next bodyState, bad error) error {
	if c != want {
		return bad
	}
	b.state = next
	return nil
}
