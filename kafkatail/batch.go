package kafkatail

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"tailcast/frame"
)

// batch is scratch space that records are converted in, kept from fetch to
// fetch. Its records alias the library's, which are handed back after Append.
type batch struct {
	recs    []frame.Record
	headers []frame.Header // of all recs, one run each
}

func (b *batch) len() int { return len(b.recs) }

// add converts one record and returns how many the batch holds.
func (b *batch) add(topic string, rec *kgo.Record) int {
	var r frame.Record
	b.headers = convert(&r, b.headers, topic, rec)
	b.recs = append(b.recs, r)
	return len(b.recs)
}

// convert makes dst the record rec, whose bytes it goes on to alias. The headers
// are appended to headers, which it returns.
func convert(dst *frame.Record, headers []frame.Header, topic string, rec *kgo.Record) []frame.Header {
	*dst = frame.Record{
		Topic:     topic,
		Partition: rec.Partition,
		Offset:    rec.Offset,
		Time:      millis(rec),
		Key:       rec.Key,
		Value:     rec.Value,
	}
	if len(rec.Headers) == 0 {
		return headers
	}
	from := len(headers)
	for i := range rec.Headers {
		headers = append(headers, frame.Header{Name: rec.Headers[i].Key, Value: rec.Headers[i].Value})
	}
	dst.Headers = headers[from:len(headers):len(headers)]
	return headers
}

// millis is the timestamp of a record as the producer, or the broker, wrote it:
// milliseconds since 1970, negative for none.
//
// The library keeps milliseconds times 10^6 in 64 bits, which wrap beyond the
// year 2262. That far are those who write microseconds by mistake, and what was
// left of their times looked like others. 10^6 is 2^6 times 15625, so 58 bits
// come back: four million years either way.
func millis(rec *kgo.Record) int64 {
	const inverse = 76480200929599801 // of 15625, modulo 2^58
	if rec.Timestamp.IsZero() {
		return -1
	}
	nanos := rec.Timestamp.UnixNano()
	return (nanos >> 6 * inverse) << 6 >> 6
}

// appendTo gives the records to a topic's sinks, empties the batch and returns
// the offset after its last record.
func (b *batch) appendTo(tp *topic, partition int32) (next int64) {
	next = b.recs[len(b.recs)-1].Offset + 1
	tp.append(partition, b.recs)
	// Nothing of the fetch may stay reachable from here.
	clear(b.recs)
	clear(b.headers)
	b.recs, b.headers = b.recs[:0], b.headers[:0]
	if cap(b.headers) > headersKeptMax {
		b.headers = nil
	}
	return next
}
