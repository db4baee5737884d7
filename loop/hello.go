package loop

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

const (
	// helloRead is what is read of a client at first: all of a ClientHello
	// without post-quantum keys, a third of one with them.
	helloRead = 512
	// helloMax bounds a ClientHello, and with it what a client makes us hold
	// before it has shown anything: one record's worth (RFC 8446 5.1), which is
	// BoringSSL's bound, too. Browsers send 2 KB.
	helloMax = 16 << 10
	// helloMin is the shortest: version, random, no session, one suite, one
	// compression (RFC 8446 4.1.2).
	helloMin = 2 + 32 + 1 + 2 + 2 + 1 + 1
)

const (
	recordHead = 5                  // type, version, length (RFC 8446 5.1)
	helloHead  = recordHead + 4 + 2 // behind it: type, length, and the version (RFC 8446 4)
)

// errNoHello is of bytes that begin no handshake.
var errNoHello = errors.New("this is no ClientHello")

// helloLen judges the first bytes of a client and returns how many there must be
// to go on: what is needed to tell, then the length of the first record.
func helloLen(b []byte) (int, error) {
	if len(b) < recordHead {
		return helloHead, nil
	}
	n := int(binary.BigEndian.Uint16(b[3:]))
	if b[0] != 22 || b[1] != 3 || n == 0 || n > recordMax { // a handshake, of SSL 3.0 and later
		return 0, errNoHello
	}
	m := b[recordHead:min(len(b), helloHead, recordHead+n)] // the message, which may go on in another record
	if len(m) > 0 && m[0] != 1 {
		return 0, errNoHello
	}
	if len(m) >= 4 {
		if n := int(m[1])<<16 | int(m[2])<<8 | int(m[3]); n < helloMin || n > helloMax {
			return 0, errNoHello
		}
	}
	if len(m) > 4 && m[4] != 3 {
		return 0, errNoHello
	}
	return recordHead + n, nil
}

// readHello reads the record that begins a handshake and keeps it for Read, or
// what was there instead. A client that is silent, slow or no client of TLS
// gets no session and no CPU.
func (hs *handshake) readHello() error {
	for {
		n, err := helloLen(hs.early)
		if err != nil || n <= len(hs.early) {
			return err
		}
		b := slices.Grow(hs.early, max(n, helloRead)-len(hs.early))
		n, err = hs.TCPConn.Read(b[len(b):cap(b)])
		hs.early = b[:len(b)+n]
		if err == io.EOF && len(hs.early) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
}
