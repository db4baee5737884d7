package loop

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn keeps the buffers of its handshake for good: 3.4 KB of the 7.3 a
// stream would cost, and as much as the largest record that its client ever
// sent (golang.org/issue/81348). crypto/tls has no call to give them back, so
// shrink reaches for them by name. If another Go names them differently they
// stay, which TestIdleStreamMemory notices.
var handshakeBuffers = func() (offsets []uintptr) {
	conn := reflect.TypeFor[tls.Conn]()
	for _, name := range []string{"rawInput", "hand"} {
		if f, ok := conn.FieldByName(name); ok && f.Type == reflect.TypeFor[bytes.Buffer]() {
			offsets = append(offsets, f.Offset)
		}
	}
	return offsets
}()

// shrink drops the buffers of a session that nobody else uses and that hold
// nothing: a new bytes.Buffer is as good as an empty one.
func shrink(c *tls.Conn) {
	for _, at := range handshakeBuffers {
		if b := (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), at)); b.Len() == 0 {
			*b = bytes.Buffer{}
		}
	}
}
