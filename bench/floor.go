package bench

import (
	"strconv"
	"time"
)

// Floor is the server that no other can beat: a bare loop of write(2) over the
// accepted sockets, which reads no request. What it spends for an event is the
// kernel's share. Events that are due together go out in one write.
type Floor struct {
	Listen string // IPv4 host:port
	Size   int    // bytes of the payload, unless FrameBytes says more
	// FrameBytes is what one event takes on the wire, chunk framing included,
	// so that it can be made equal to another server's, whose ids are longer;
	// one less at the few sizes that no chunk has.
	FrameBytes int
	// Each gives every event to one connection alone, in turn.
	Each bool

	listener int
	fds      []int
	each     []int64 // with Each, the events each of fds has got
	next     int     // with Each, whose turn it is
	seq      int64
	frames   []byte
	totals   FloorTotals
}

// FloorTotals is what a floor has done.
type FloorTotals struct {
	Accepted int   `json:"accepted"`
	Dropped  int   `json:"dropped"` // a socket that was full or gone
	Events   int64 `json:"events"`  // made
	Writes   int64 `json:"writes"`
	Bytes    int64 `json:"bytes"`
}

const floorHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store, no-transform\r\nTransfer-Encoding: chunked\r\n\r\n"

// appendFrame appends one event in one chunk.
func (f *Floor) appendFrame(dst []byte, seq int64, due time.Time) []byte {
	const fields = len("id: \ndata: \n\n")
	id := strconv.AppendInt([]byte("v1:0-"), seq, 10)
	size := f.Size
	if f.FrameBytes > 0 {
		size = chunkRoom(f.FrameBytes) - fields - len(id)
	}
	payload := Payload{Seq: seq, Time: due.UnixNano()}.Append(nil, size)
	dst = strconv.AppendInt(dst, int64(fields+len(id)+len(payload)), 16)
	dst = append(dst, "\r\nid: "...)
	dst = append(dst, id...)
	dst = append(dst, "\ndata: "...)
	dst = append(dst, payload...)
	return append(dst, "\n\n\r\n"...)
}

// chunkRoom is how much data a chunk of n bytes on the wire holds.
func chunkRoom(n int) int {
	room := n - len("\r\n\r\n")
	for digits := 1; digits < room; digits++ {
		if len(strconv.FormatInt(int64(room-digits), 16)) <= digits {
			return room - digits
		}
	}
	return 0
}
