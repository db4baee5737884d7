package http1

import "bytes"

// Pairs walks a query: the parts between ampersands, each cut at its first
// equals sign. Semicolons are data. Names and values are percent-decoded once;
// a plus stays a plus, because ids and tokens may hold one, and a blank comes
// as %20 from encodeURIComponent. Pairs with a broken escape, and empty parts,
// are passed over. Decoded bytes may be any, NUL and line ends included.
//
// When a name comes more than once the first is the one to use, by router and
// guard alike.
//
//	for p := http1.NewPairs(r.Query, scratch); p.Next(); {
//		use(p.Name, p.Value)
//	}
type Pairs struct {
	Name, Value []byte // alias the query or the scratch; valid until Next
	rest        []byte
	scratch     []byte
}

// NewPairs walks query. Escapes are decoded into scratch; with room for
// len(query) bytes there nothing is allocated.
func NewPairs(query, scratch []byte) Pairs {
	return Pairs{rest: query, scratch: scratch[:0]}
}

// Next moves to the next good pair and reports whether there was one.
func (p *Pairs) Next() bool {
	for len(p.rest) > 0 {
		var part []byte
		part, p.rest, _ = bytes.Cut(p.rest, []byte("&"))
		if len(part) > 0 && p.decode(part) {
			return true
		}
	}
	p.Name, p.Value = nil, nil
	return false
}

func (p *Pairs) decode(part []byte) bool {
	name, value, _ := bytes.Cut(part, []byte("="))
	dst := p.scratch
	var ok bool
	if p.Name, dst, ok = unescape(dst, name); !ok {
		return false
	}
	p.Value, _, ok = unescape(dst, value)
	return ok
}

// unescape returns raw percent-decoded: raw itself when it has no escape, else
// what it appends to dst.
func unescape(dst, raw []byte) (text, grown []byte, ok bool) {
	if bytes.IndexByte(raw, '%') < 0 {
		return raw, dst, true
	}
	start := len(dst)
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			if !isEscape(raw[i:]) {
				return nil, dst, false
			}
			c = unhex(raw[i+1])<<4 | unhex(raw[i+2])
			i += 2
		}
		dst = append(dst, c)
	}
	return dst[start:], dst, true
}
