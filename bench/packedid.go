package bench

// readPacked reads what follows "v2." in an id; see readID.
func readPacked(body []byte, p int32) (offset int64, ok bool) {
	r := packedReader{in: body}
	offset = noOffset
	groups := r.uvarint()
	for range groups {
		offset = r.group(p)
		if r.bad {
			break
		}
	}
	if r.bad || groups == 0 || !r.atEnd() {
		return noOffset, false
	}
	if groups > 1 {
		offset = noOffset
	}
	return offset, true
}

// packedReader reads bytes and numbers out of base64url without padding. After
// something it can't read, bad is set and all reads give zero.
type packedReader struct {
	in   []byte
	bits uint32 // read from in and not yet returned: the low n bits
	n    uint
	bad  bool
}

// group reads one topic's group and returns its offset for partition p.
func (r *packedReader) group(p int32) int64 {
	offset := noOffset
	switch r.byte() {
	case 0:
	case 1: // a tag of the topic's name
		r.byte()
		r.byte()
	case 3: // and of its id
		for range 4 {
			r.byte()
		}
	default:
		r.bad = true
	}
	before := int64(-1)
	for range r.uvarint() {
		before += 1 + int64(r.uvarint()&(1<<31-1))
		next := r.uvarint()
		if r.bad {
			return noOffset
		}
		if before == int64(p) && next > 0 {
			offset = int64(next - 1)
		}
	}
	return offset
}

// uvarint reads a number below 2^63 in its shortest form.
func (r *packedReader) uvarint() uint64 {
	var v uint64
	for shift := 0; shift < 63; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7F) << shift
		if b < 0x80 {
			r.bad = r.bad || b == 0 && shift > 0
			return v
		}
	}
	r.bad = true
	return 0
}

func (r *packedReader) byte() byte {
	for r.n < 8 {
		if len(r.in) == 0 || sextet(r.in[0]) > 63 {
			r.bad = true
			return 0
		}
		r.bits = r.bits<<6 | sextet(r.in[0])
		r.n += 6
		r.in = r.in[1:]
	}
	r.n -= 8
	return byte(r.bits >> r.n)
}

// atEnd reports whether all is read; the bits that make no byte must be zero.
func (r *packedReader) atEnd() bool {
	return len(r.in) == 0 && r.n < 6 && r.bits&(1<<r.n-1) == 0
}
