package http1

// Limits. Each says what it protects and where the number comes from. None is
// a setting: a client that needs more is not a browser.
const (
	// HeadMax bounds one request head in bytes: leading empty lines, request
	// line, fields and the empty line at the end. Browsers stay under 8 KiB;
	// twice that leaves room for cookies beside the longest event id. Beyond it
	// the answer is 431.
	HeadMax = 16 << 10
	// RequestLineMax bounds the request line in bytes, with its CRLF: an event
	// id of 8 KiB, the longest the id parser reads, in the query beside a path
	// and a token. RFC 9112 section 3 asks for 8000. Beyond it the answer is 414.
	RequestLineMax = 12 << 10
	// FieldsMax bounds the header fields of one request: browsers behind two
	// proxies send about 40. Beyond it the answer is 431.
	FieldsMax = 128
	// emptyLinesMax bounds the empty lines before a request line. RFC 9112
	// section 2.2 asks for one; old clients send it after a body.
	emptyLinesMax = 2
	// chunkDigitsMax bounds the hex digits of a chunk size, leading zeros
	// included: 16 hold every 64-bit size.
	chunkDigitsMax = 16
	// chunkExtrasMax bounds the chunk extensions and trailer fields of one body
	// in bytes, together. Nothing here reads them, so they get little room.
	chunkExtrasMax = 4 << 10
)
