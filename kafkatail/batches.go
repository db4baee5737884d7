package kafkatail

import (
	"encoding/binary"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Where the fields of a record batch are (Kafka protocol, RecordBatch). The
// first three are in the messages of brokers before 0.11 too.
const (
	atBase     = 0  // int64: offset of the first record; of a message, its own or its last one
	atLength   = 8  // int32: bytes behind this field
	atMagic    = 16 // int8: 2 for a batch
	atAttrs    = 21 // int16
	atDelta    = 23 // int32: last offset - base, also when compaction removed the last record
	atProducer = 43 // int64
	atRecords  = 61

	attrTransactional = 1 << 4
	attrControl       = 1 << 5
)

// cutBatch splits off the first batch of what a fetch brought; nil if there is
// no whole one. Brokers cut the last one short.
func cutBatch(b []byte) (first, rest []byte) {
	if len(b) <= atMagic {
		return nil, b
	}
	n := atLength + 4 + int64(int32(binary.BigEndian.Uint32(b[atLength:])))
	if n <= atMagic || n > int64(len(b)) {
		return nil, b
	}
	return b[:n:n], b[n:]
}

// isBatch reports whether b, which cutBatch returned, has the fields of a batch.
func isBatch(b []byte) bool { return len(b) >= atRecords && b[atMagic] == 2 }

func baseOffset(batch []byte) int64 { return int64(binary.BigEndian.Uint64(batch[atBase:])) }

// endOffset is the offset behind the batch.
func endOffset(batch []byte) int64 {
	return baseOffset(batch) + int64(int32(binary.BigEndian.Uint32(batch[atDelta:]))) + 1
}

func hasAttr(batch []byte, attr uint16) bool {
	return binary.BigEndian.Uint16(batch[atAttrs:])&attr != 0
}

// aborts tells the batches of aborted transactions in one fetch from others:
// the first offset of each, by producer, lowest first. A producer has one
// transaction at a time, so a marker ends its lowest.
//
// The library does the same for a whole fetch; we take one batch at a time.
type aborts map[int64][]int64

func abortsOf(rp *kmsg.FetchResponseTopicPartition) aborts {
	if len(rp.AbortedTransactions) == 0 {
		return nil
	}
	a := make(aborts)
	for _, t := range rp.AbortedTransactions {
		a[t.ProducerID] = append(a[t.ProducerID], t.FirstOffset)
	}
	for _, first := range a {
		slices.Sort(first) // not every broker does
	}
	return a
}

// hold reports whether a batch belongs to an aborted transaction.
func (a aborts) hold(batch []byte) bool {
	if len(a) == 0 || !hasAttr(batch, attrTransactional) {
		return false
	}
	first := a[int64(binary.BigEndian.Uint64(batch[atProducer:]))]
	return len(first) > 0 && baseOffset(batch) >= first[0]
}

// end takes note of a control record; an abort marker ends a transaction.
func (a aborts) end(rec *kgo.Record) {
	abort := len(rec.Key) >= 4 && rec.Key[2] == 0 && rec.Key[3] == 0 // int16 version, int16 type
	if first := a[rec.ProducerID]; abort && len(first) > 0 && rec.Offset >= first[0] {
		a[rec.ProducerID] = first[1:]
	}
}
