package kafkatail

import (
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/frame"
)

// batchOf is the head of a batch with no record.
func batchOf(base int64, delta int32, producer int64, attrs uint16) []byte {
	b := make([]byte, atRecords)
	binary.BigEndian.PutUint64(b[atBase:], uint64(base))
	binary.BigEndian.PutUint32(b[atLength:], atRecords-12)
	b[atMagic] = 2
	binary.BigEndian.PutUint16(b[atAttrs:], attrs)
	binary.BigEndian.PutUint32(b[atDelta:], uint32(delta))
	binary.BigEndian.PutUint64(b[atProducer:], uint64(producer))
	return b
}

func TestCutBatch(t *testing.T) {
	one := batchOf(7, 2, -1, 0)
	long := append(batchOf(10, 0, -1, 0), "records"...)
	binary.BigEndian.PutUint32(long[atLength:], uint32(len(long)-12))
	negative := batchOf(0, 0, -1, 0)
	binary.BigEndian.PutUint32(negative[atLength:], 1<<31)
	for _, tc := range []struct {
		name        string
		in          []byte
		first, rest int
	}{
		{"nothing", nil, 0, 0},
		{"one", one, atRecords, 0},
		{"two", append(append([]byte(nil), long...), one...), len(long), atRecords},
		{"one and a part", append(append([]byte(nil), one...), long[:30]...), atRecords, 30},
		{"a part", long[:len(long)-1], 0, len(long) - 1},
		{"no magic", one[:atMagic], 0, atMagic},
		{"a negative length", negative, 0, atRecords},
	} {
		first, rest := cutBatch(tc.in)
		if len(first) != tc.first || len(rest) != tc.rest || (first == nil) != (tc.first == 0) {
			t.Errorf("%s: cut into %d and %d bytes, want %d and %d", tc.name, len(first), len(rest), tc.first, tc.rest)
		}
	}
	if !isBatch(one) || baseOffset(one) != 7 || endOffset(one) != 10 {
		t.Errorf("the batch holds [%d, %d)", baseOffset(one), endOffset(one))
	}
}

// What a producer wrote in an aborted transaction is held until its marker,
// whatever others do, and in whatever order brokers list them.
func TestAborts(t *testing.T) {
	rp := new(kmsg.FetchResponseTopicPartition)
	for _, x := range [][2]int64{{1, 30}, {1, 10}, {2, 12}} {
		rp.AbortedTransactions = append(rp.AbortedTransactions, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: x[0], FirstOffset: x[1]})
	}
	a := abortsOf(rp)
	marker := func(producer, offset int64, kind byte) func(*testing.T) {
		return func(*testing.T) {
			a.end(&kgo.Record{ProducerID: producer, Offset: offset, Key: []byte{0, 0, 0, kind}})
		}
	}
	batch := func(producer, base int64, attrs uint16, want bool) func(*testing.T) {
		return func(t *testing.T) {
			if got := a.hold(batchOf(base, 0, producer, attrs)); got != want {
				t.Errorf("a batch of producer %d at %d: %v, want %v", producer, base, got, want)
			}
		}
	}
	const commit, abort = 1, 0
	for _, step := range []func(*testing.T){
		batch(1, 9, attrTransactional, false), // a transaction before
		marker(1, 9, commit),
		batch(1, 10, attrTransactional, true),
		batch(1, 11, 0, false), // not of a transaction
		batch(2, 12, attrTransactional, true),
		batch(3, 13, attrTransactional, false),
		batch(1, 14, attrTransactional, true),
		marker(1, 15, abort),
		batch(1, 16, attrTransactional, false),
		batch(2, 17, attrTransactional, true),
		marker(1, 18, commit),
		marker(2, 19, abort),
		marker(2, 20, abort), // of a transaction that wrote nothing here
		batch(2, 21, attrTransactional, false),
		batch(1, 30, attrTransactional, true),
		marker(1, 31, abort),
		batch(1, 32, attrTransactional, false),
	} {
		step(t)
	}
}

// FuzzTell feeds the walk over a fetch whatever a broker might send: it ends
// without a panic, and what it says fits what it told.
func FuzzTell(f *testing.F) {
	tail, err := New(Config{decompressBytesMax: 1 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	h, err := tail.newPast(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(h.close)
	f.Fuzz(func(t *testing.T, batches []byte, from, logStart, producer, first int64) {
		if from < 0 {
			return
		}
		seal(batches)
		rp := &kmsg.FetchResponseTopicPartition{
			LogStartOffset: logStart, RecordBatches: batches,
			AbortedTransactions: []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: producer, FirstOffset: first}},
		}
		var offsets []int64
		span, err := h.tell(t.Context(), place{"a", 0}, from, rp, func(r *frame.Record) { offsets = append(offsets, r.Offset) })
		if err != nil {
			return
		}
		if span.Start > from || span.Next < from || span.Bytes > len(batches) {
			t.Errorf("from %d: %+v of %d bytes", from, span, len(batches))
		}
		next := span.Start
		for _, o := range offsets {
			if o < next || o >= span.Next {
				t.Fatalf("told offset %d after %d in [%d, %d)", o, next-1, span.Start, span.Next)
			}
			next = o + 1
		}
	})
}

// seal makes checksums right, so that what is behind them is met.
func seal(b []byte) {
	for {
		first, rest := cutBatch(b)
		if first == nil {
			return
		}
		if isBatch(first) {
			binary.BigEndian.PutUint32(first[17:], crc32.Checksum(first[21:], crc32.MakeTable(crc32.Castagnoli)))
		}
		b = rest
	}
}
