// Package frame turns records into the bytes a browser reads: Server-Sent
// Events (WHATWG HTML 9.2) inside HTTP/1.1 chunks, and the event ids that make
// a stream resumable. Bytes to bytes: it reads no clock, opens no socket and
// knows neither Kafka nor the event loop.
package frame

// Record is one record as the encoder sees it. The encoder borrows every
// slice until it returns; nothing of a Record lives on in a frame.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      int64    // milliseconds since 1970; negative: the record has none
	Key       []byte   // nil is a null key, which is not an empty one
	Value     []byte   // nil is a tombstone, which is not an empty value
	Headers   []Header // in the record's order; names may repeat
}

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte // nil is a null value
}
