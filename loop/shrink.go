package loop

import (
	"bytes"
	"crypto/tls"
	"go/version"
	"reflect"
	"runtime"
	"unsafe"
)

// A tls.Conn keeps the buffers of its handshake for good: 3.4 KB of the 7.3 a
// stream would cost, and as much as the largest record that its client ever
// sent (golang.org/issue/81348). crypto/tls has no call to give them back, so
// shrink reaches for them: docs/adr/0007 says why that is safe, and with what.

// shrinksWith is the version of Go whose crypto/tls was read for that. With any
// other the buffers stay, which TestIdleStreamMemory notices.
const shrinksWith = "go1.26"

// handshakeBuffers are where they lie in a tls.Conn.
var handshakeBuffers = buffersIn(reflect.TypeFor[tls.Conn](), runtime.Version())

// buffersIn finds the buffers in a type of connection, by what crypto/tls calls
// them: both of them, in the struct itself, or none.
func buffersIn(conn reflect.Type, goVersion string) (offsets []uintptr) {
	if version.Lang(goVersion) != shrinksWith {
		return nil
	}
	for _, name := range []string{"rawInput", "hand"} {
		f, ok := conn.FieldByName(name)
		if !ok || len(f.Index) != 1 || f.Type != reflect.TypeFor[bytes.Buffer]() {
			return nil
		}
		offsets = append(offsets, f.Offset)
	}
	return offsets
}

// shrink drops the buffers of a session if they hold nothing. A new
// bytes.Buffer is as good as an empty one, and what was read of the old one
// keeps its memory.
// REQUIRES: no call of c is under way; it is the loop's.
func shrink(c *tls.Conn) {
	for _, at := range handshakeBuffers {
		if b := (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), at)); b.Len() == 0 {
			*b = bytes.Buffer{}
		}
	}
}
