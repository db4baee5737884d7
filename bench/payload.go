package bench

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
)

// Payload is what a published record says about itself, as JSON in this very
// order:
//
//	{"p":3,"seq":41,"ts":1790000000000000000,"pad":"xxx"}
//	{"p":3,"seq":41,"ts":1790000000000000000,"u":17,"pad":"xxx"}
type Payload struct {
	Partition int32
	Seq       int64 // counts the records of the partition, or of the user, from 0, without a gap
	Time      int64 // nanoseconds since 1970 when the record was due to be sent
	User      int64 // whom the record is for, or of Changes the number of its key, from 1; 0: for everyone
}

var (
	payloadStart = []byte(`{"p":`)
	payloadSeq   = []byte(`,"seq":`)
	payloadTime  = []byte(`,"ts":`)
	payloadUser  = []byte(`,"u":`)
)

// Append appends the JSON of p, padded to size bytes; a size too small for the
// numbers gives no padding.
func (p Payload) Append(dst []byte, size int) []byte {
	start := len(dst)
	dst = append(dst, payloadStart...)
	dst = strconv.AppendInt(dst, int64(p.Partition), 10)
	dst = append(dst, payloadSeq...)
	dst = strconv.AppendInt(dst, p.Seq, 10)
	dst = append(dst, payloadTime...)
	dst = strconv.AppendInt(dst, p.Time, 10)
	if p.User > 0 {
		dst = append(dst, payloadUser...)
		dst = strconv.AppendInt(dst, p.User, 10)
	}
	dst = append(dst, `,"pad":"`...)
	for from := p.Seq; ; from = 0 {
		room := size - (len(dst) - start + len(`"}`))
		if room <= 0 {
			return append(dst, `"}`...)
		}
		rest := padding[from*padStep%int64(len(padding)):]
		dst = append(dst, rest[:min(room, len(rest))]...)
	}
}

// padding is what payloads are filled with: letters and digits from another
// place for each number, so that compression gains about as much as it does on
// records of the world. padStep is a prime.
var padding = makePadding()

const padStep = 7919

func makePadding() []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 64<<10)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return b
}

// parsePayload reads the payload at the start of b, or the first one inside
// it: some servers wrap what was published.
func parsePayload(b []byte) (p Payload, ok bool) {
	if !bytes.HasPrefix(b, payloadStart) {
		i := bytes.Index(b, payloadStart)
		if i < 0 {
			return p, false
		}
		b = b[i:]
	}
	partition, b, ok := number(b[len(payloadStart):])
	if !ok || partition > math.MaxInt32 || !bytes.HasPrefix(b, payloadSeq) {
		return p, false
	}
	p.Partition = int32(partition)
	if p.Seq, b, ok = number(b[len(payloadSeq):]); !ok || !bytes.HasPrefix(b, payloadTime) {
		return p, false
	}
	p.Time, b, ok = number(b[len(payloadTime):])
	if ok && bytes.HasPrefix(b, payloadUser) {
		p.User, _, ok = number(b[len(payloadUser):])
	}
	return p, ok
}

// number reads the decimal number at the start of b, up to 2^63-1.
func number(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		d := int64(b[i] - '0')
		if n > (math.MaxInt64-d)/10 {
			return 0, b, false
		}
		n = n*10 + d
	}
	return n, b[i:], i > 0
}
