package http1

import "errors"

// ErrIncomplete says that the head goes on beyond the bytes given.
var ErrIncomplete = errors.New("http1: the request head is not complete")

// Error is a request that is refused. Errors are fixed values, compared with
// ==. Except for those of AppendPath, the connection can't go on after one: the
// place where the next request begins is not known.
type Error struct {
	Status int    // of the answer
	Reason string // one plain line for the body of the answer and the log; holds nothing the client sent
}

func (e *Error) Error() string { return e.Reason }

// What a head is refused for.
var (
	errFirstByte   = &Error{400, "the request does not begin with a method"}
	errTLS         = &Error{400, "a TLS handshake on a port that speaks plain HTTP"}
	errBareLF      = &Error{400, "a line ends in LF without CR"}
	errEmptyLines  = &Error{400, "too many empty lines before the request line"}
	errRequestLine = &Error{400, "the request line is not METHOD TARGET HTTP/1.1"}
	errMethod      = &Error{400, "the method has a character that is not allowed"}
	errTarget      = &Error{400, "the request target has a character that is not allowed"}
	errTargetForm  = &Error{400, "the request target is neither a path nor an absolute http URL"}
	errAsterisk    = &Error{400, "the request target * goes with OPTIONS only"}
	errAuthority   = &Error{400, "the request target's host is not valid"}
	errVersion     = &Error{400, "the HTTP version is not valid"}
	errConnect     = &Error{501, "CONNECT is not offered"}
	errVersionHigh = &Error{505, "this HTTP version is not offered; use HTTP/1.1"}
	errLineLong    = &Error{414, "the request line is longer than 12 KiB"}
	errHeadLong    = &Error{431, "the request head is longer than 16 KiB"}
	errFieldsMany  = &Error{431, "the request has more than 128 header fields"}

	errFold      = &Error{400, "a header line begins with a blank"}
	errNoColon   = &Error{400, "a header line has no colon"}
	errNameEmpty = &Error{400, "a header field has no name"}
	errNameBlank = &Error{400, "a header field has a blank in or after its name"}
	errNameByte  = &Error{400, "a header field's name has a character that is not allowed"}
	errValueByte = &Error{400, "a header field's value has a control character"}

	errHostMissing    = &Error{400, "the Host header is missing"}
	errHostTwice      = &Error{400, "the Host header is there twice"}
	errHost           = &Error{400, "the Host header is not valid"}
	errLength         = &Error{400, "the Content-Length header is not a number"}
	errLengthTwice    = &Error{400, "the Content-Length header is there twice"}
	errLengthBig      = &Error{413, "the Content-Length header is too large"}
	errLengthCoding   = &Error{400, "Content-Length and Transfer-Encoding exclude each other"}
	errCoding         = &Error{400, "the Transfer-Encoding header does not end in chunked"}
	errCodingTwice    = &Error{400, "the Transfer-Encoding header is there twice"}
	errCodingUnknown  = &Error{501, "the only transfer coding offered is chunked"}
	errCodingIn10     = &Error{400, "Transfer-Encoding does not exist in HTTP/1.0"}
	errExpectation    = &Error{417, "the only expectation known is 100-continue"}
	errPathEscape     = &Error{400, "the path has a broken percent escape"}
	errPathByte       = &Error{400, "the path has a control character, a backslash or an encoded slash"}
	errPathText       = &Error{400, "the path is not UTF-8"}
	errPathSegment    = &Error{400, "the path has an empty, . or .. segment"}
	errBodyLong       = &Error{413, "the request body is too long"}
	errChunkSize      = &Error{400, "a chunk size is not valid"}
	errChunkExtension = &Error{400, "a chunk extension is not valid"}
	errChunkEnd       = &Error{400, "a chunk is longer than its size says"}
	errChunkExtras    = &Error{431, "chunk extensions and trailer fields are longer than 4 KiB"}
	errTrailer        = &Error{400, "a trailer field is not valid"}
)
